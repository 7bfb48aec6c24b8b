package rooms_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
	"xabar/internal/testkit/redistest"
	"xabar/rooms"
)

// crowd is sockets of one node that are in the rooms of many users: as many rooms, channels and
// presence entries as if each user had a socket.
type crowd struct {
	*watcher
	io      *socketio.Server
	clients []*socketiotest.Client
	sockets []*socketio.Socket
	users   []chat.ID
}

const roomsPerSocket = 500

// openCrowd makes a node with the sockets, before it is run.
func openCrowd(t *testing.T, url string, opts rooms.Options, users int) *crowd {
	t.Helper()
	n := newNode(t, url, opts) // with its bus
	c := &crowd{watcher: &watcher{Redis: n.Redis, stored: map[chat.ID][]time.Time{}}}
	c.pres = n.Presence(chat.SystemClock{}, c.store)
	c.pres.Watch(c.hear)
	c.io = socketio.NewServer(socketio.Options{
		Options: engineio.Options{Logger: slog.New(slog.DiscardHandler)}, Adapter: n.Adapters(),
	})
	server := socketiotest.Start(t, c.io)
	for len(c.sockets)*roomsPerSocket < users {
		client := socketiotest.Dial(t, server, socketiotest.Options{})
		c.clients = append(c.clients, client)
		c.sockets = append(c.sockets, c.io.Socket(client.Connect("/", "")))
	}
	for range users {
		c.users = append(c.users, chat.NewID())
	}
	return c
}

// join puts everybody into the rooms of the users.
func (c *crowd) join(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for i, s := range c.sockets {
		all.Go(func() {
			for _, user := range c.users[i*roomsPerSocket : min((i+1)*roomsPerSocket, len(c.users))] {
				if err := s.Join("user:" + user.String()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

var usedMemory = regexp.MustCompile(`used_memory:(\d+)`)

// memory is what Redis uses, when it has come to rest.
func memory(t *testing.T, server *redistest.Server) int {
	t.Helper()
	var last int
	eventually(t, "Redis is at rest", func() bool {
		found := usedMemory.FindStringSubmatch(fmt.Sprint(server.Do("INFO", "memory")))
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		rest := n-last < 4096 && last-n < 4096
		last = n
		return rest
	})
	return last
}

// channels is how many channels a deployment has in Redis.
func channels(server *redistest.Server, opts rooms.Options) int {
	n := 0
	for _, command := range []string{"CHANNELS", "SHARDCHANNELS"} {
		for _, pattern := range []string{opts.Key + "#*", opts.Prefix + ":*"} {
			n += len(server.Do("PUBSUB", command, pattern).([]any))
		}
	}
	return n
}

// TestAUserCostsLittleRedisMemory: 700 bytes at most in all, channels and presence.
func TestAUserCostsLittleRedisMemory(t *testing.T) {
	const limit = 700
	for name, sharded := range map[string]bool{"classic": false, "sharded": true} {
		for _, users := range []int{2000, 20_000} {
			t.Run(fmt.Sprint(name, " ", users), func(t *testing.T) {
				server := redistest.Start(t)
				opts := isolated()
				opts.Sharded = sharded
				c := openCrowd(t, server.URL, opts, users)
				run(t, c.Redis)
				healthy(t, c.Redis)
				before := memory(t, server)
				c.join(t)
				eventually(t, "all channels are heard", func() bool {
					return c.Stats().Subscriptions >= 2*users && channels(server, opts) >= 2*users
				})
				between := memory(t, server)
				for _, user := range c.users {
					c.connect(t, user, "a connection's id")
				}
				eventually(t, "everybody is there", func() bool {
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(c.announced) == users
				})
				after := memory(t, server)
				perUser := (after - before) / users
				t.Logf("%d users: %d bytes each in Redis, %d of them for channels, %d for presence",
					users, perUser, (between-before)/users, (after-between)/users)
				if perUser > limit {
					t.Errorf("a user costs %d bytes in Redis, more than %d", perUser, limit)
				}
			})
		}
	}
}

// TestManyUsersAreSubscribedSoon: 100,000 at the start of a node, within 10 s; with the race detector,
// which is no gateway, fewer.
func TestManyUsersAreSubscribedSoon(t *testing.T) {
	users, limit := 100_000, 10*time.Second
	if raceDetector {
		users = 10_000
	}
	for name, sharded := range map[string]bool{"classic": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			opts := isolated()
			opts.Sharded = sharded
			c := openCrowd(t, server.URL, opts, users)
			c.join(t)
			start := time.Now()
			run(t, c.Redis)
			eventually(t, "everything is heard", func() bool { return len(c.Health()) == 0 })
			took := time.Since(start)
			t.Logf("%d users, %d channels: %v", users, channels(server, opts), took.Round(time.Millisecond))
			if took > limit || channels(server, opts) < 2*users {
				t.Errorf("%d channels in %v", channels(server, opts), took)
			}
			start = time.Now()
			server.Do("CLIENT", "KILL", "TYPE", "pubsub")
			eventually(t, "there is another connection", func() bool { return c.Stats().Connects > 1 })
			healthy(t, c.Redis)
			took = time.Since(start)
			t.Logf("after the connection was killed: %v", took.Round(time.Millisecond))
			if took > limit || channels(server, opts) < 2*users {
				t.Errorf("again %d channels in %v", channels(server, opts), took)
			}
		})
	}
}

// TestChannelsReturnToBase: 10,000 users come and go.
func TestChannelsReturnToBase(t *testing.T) {
	const users = 10_000
	for name, sharded := range map[string]bool{"classic": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			opts := isolated()
			opts.Sharded = sharded
			c := openCrowd(t, server.URL, opts, users)
			run(t, c.Redis)
			healthy(t, c.Redis)
			base, subscriptions := channels(server, opts), c.Stats().Subscriptions
			memoryBefore := memory(t, server)
			c.join(t)
			eventually(t, "all channels are heard", func() bool { return channels(server, opts) == base+2*users })
			for i, client := range c.clients {
				if i%2 == 0 {
					client.Drop() // the connection is gone
				} else {
					for _, user := range c.users[i*roomsPerSocket : (i+1)*roomsPerSocket] {
						c.sockets[i].Leave("user:" + user.String())
					}
				}
			}
			eventually(t, "the channels are gone", func() bool {
				return channels(server, opts) == base && c.Stats().Subscriptions == subscriptions
			})
			t.Logf("channels: %d, %d, %d; Redis has %d kB more than before", base, base+2*users, channels(server, opts), (memory(t, server)-memoryBefore)/1024)
			if connects := c.Stats().Connects; connects != 1 {
				t.Errorf("%d pub/sub connections were made", connects)
			}
			answer := server.Do("CLIENT", "LIST", "TYPE", "pubsub").(string)
			if n := len(regexp.MustCompile(`(?m)^id=`).FindAllString(answer, -1)); n != 1 {
				t.Errorf("%d pub/sub connections", n)
			}
		})
	}
}
