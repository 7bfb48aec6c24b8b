package rooms_test

import (
	"bytes"
	"encoding/base64"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"xabar/chat"
	"xabar/internal/testkit/redistest"
)

// What a newer version of the program publishes is not guessed at: it is counted, and the
// database is asked for what was missed, once for all that came together.
func TestAnEnvelopeOfANewerVersionIsRepaired(t *testing.T) {
	t.Parallel()
	server, opts := redistest.Start(t), isolated()
	n := startNode(t, server.URL, opts)
	healthy(t, n.Redis)
	alice := chat.NewID()
	n.hold(t, []chat.ID{alice}, nil)
	newer := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() {
		if err := newer.Close(); err != nil {
			t.Error(err)
		}
	})
	channel := opts.Prefix + ":1:user:" + base64.RawURLEncoding.EncodeToString(alice[:])
	start := time.Now()
	publish := func(version, kind byte, number int) {
		t.Helper()
		envelope := append([]byte{version, kind}, bytes.Repeat([]byte{0xEE}, 16)...)
		envelope = append(envelope, 0, 0, 0, 0, 0, 0, byte(number>>8), byte(number))
		// What follows would be a message if the layout were the old one.
		envelope = append(envelope, bytes.Repeat([]byte{2}, 400)...)
		if err := newer.Publish(t.Context(), channel, envelope).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const each = 100
	for i := range each {
		publish(2, 1, i)       // another layout
		publish(1, 200, i+256) // another event
	}
	eventually(t, "all are counted", func() bool { return n.Stats().Unknown == 2*each })
	eventually(t, "the database is asked", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.recovered) > 0 })
	n.mu.Lock()
	defer n.mu.Unlock()
	if since := n.recovered[0]; since.Before(start) || time.Since(start) > 10*time.Second {
		t.Errorf("a repair since %v, after %v; the first came after %v", since, time.Since(start), start)
	}
	if len(n.recovered) > 2 || len(n.remote) > 0 || n.Stats().Malformed > 0 {
		t.Errorf("%d repairs, %d events, %d malformed", len(n.recovered), len(n.remote), n.Stats().Malformed)
	}
}
