package events_test

import (
	"fmt"
	"testing"

	"xabar/gateway/dialect"
	"xabar/gateway/events"
	"xabar/gateway/socketio/socketiotest"
)

// BenchmarkEchoBesideDialects is BenchmarkEcho on a node that speaks dialects too: what
// they cost whoever speaks none. Compare its cpu-ns/message with that of BenchmarkEcho.
func BenchmarkEchoBesideDialects(b *testing.B) {
	store := newQuickStore()
	url := startQuick(b, store, events.Config{Dialects: shippedDialects(b)})
	echoStandard(b, store, url)
}

// BenchmarkEchoInDialect is the same between two clients of uz.
func BenchmarkEchoInDialect(b *testing.B) {
	store := newQuickStore()
	url := startQuick(b, store, events.Config{Dialects: shippedDialects(b)})
	connect := func(user string) *socketiotest.Client {
		c := socketiotest.Dial(b, url, socketiotest.Options{})
		c.Connect("/uz", fmt.Sprintf(`{"token":%q}`, user))
		return c
	}
	from, to := connect("1"), connect("2")
	echo(b, from, to, func(i int) string {
		return fmt.Sprintf(`2/uz,%d["yoz",{"kimga":2,"mijoz_id":"m%d","matn":"a message of common length, say"}]`, i, i)
	}, `["xabar",{`)
}

func shippedDialects(b *testing.B) *dialect.Set {
	set, err := dialect.Load("")
	if err != nil {
		b.Fatal(err)
	}
	return set
}
