package socketio_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/socketio"
)

// attackMoves are what a hostile or hasty client does, in any order.
var attackMoves = []string{
	`0`, `0/a,`, `0/b,{"x":1}`, `0/dyn-1,`, `0/dyn-2,`, `0/nope,`, `1`, `1/a,`, `1/dyn-1,`,
	`2["join","r1"]`, `2["join","r2"]`, `2/a,["join","r1"]`, `2["leave","r1"]`, `2["ask"]`, `2/a,7["ask"]`,
	`2["broadcast"]`, `2/dyn-1,["broadcast"]`, `30[]`, `31["x"]`, `3/a,0[]`, `2["slow"]`,
	`51-["x",{"_placeholder":true,"num":0}]`, `b:bin`, `2["panic"]`, `garbage`, `2[`, `2["bye"]`, `2["byebye"]`,
}

func attackServer(ns *socketio.Namespace) {
	ns.Handle("join", func(ev *socketio.Event) {
		var room string
		_ = ev.Arg(0).Decode(&room)
		_ = ev.Socket().Join(room, room+"-too")
	})
	ns.Handle("leave", func(ev *socketio.Event) { ev.Socket().Leave("r1") })
	ns.Handle("ask", func(ev *socketio.Event) {
		_ = ev.Ack("x")
		_ = ev.Socket().EmitAck("question", func(socketio.Args, error) {})
		_ = ev.Socket().Timeout(time.Millisecond).EmitAck("question", func(socketio.Args, error) {})
	})
	ns.Handle("broadcast", func(ev *socketio.Event) { _ = ns.To("r1", "r2").Except("r2-too").Emit("hello", []byte("bin")) })
	ns.Handle("slow", func(*socketio.Event) { time.Sleep(time.Millisecond) })
	ns.Handle("panic", func(*socketio.Event) { panic("attack") })
	ns.Handle("bye", func(ev *socketio.Event) { ev.Socket().Disconnect(false) })
	ns.Handle("byebye", func(ev *socketio.Event) { go ev.Socket().Disconnect(true) })
}

// Whatever clients do, and however it interleaves, nothing of them stays, and who behaves is not disturbed.
func TestAttack(t *testing.T) {
	t.Parallel()
	var pending, connected atomic.Int64
	io, url := start(t, socketio.Options{ConnectTimeout: 50 * time.Millisecond, MaxPendingAcks: 8, Hooks: socketio.Hooks{
		PendingAcks: func(d int) { pending.Add(int64(d)) },
		Connect:     func(string) { connected.Add(1) },
		Disconnect:  func(string, string) { connected.Add(-1) },
	}})
	namespaces := []*socketio.Namespace{io.Namespace, io.Of("/a"), io.Of("/b")}
	for _, ns := range namespaces {
		attackServer(ns)
	}
	dynamic := io.OfPattern(regexp.MustCompile(`^/dyn-\d$`))
	dynamic.OnConnection(func(s *socketio.Socket) { _ = s.Join("r1") })
	dynamic.Handle("broadcast", func(ev *socketio.Event) { _ = ev.Socket().Namespace().Emit("hello") })
	bystander, s := joinSocket(t, io.Namespace, url)
	stop := make(chan struct{})
	var admins, attackers sync.WaitGroup
	admins.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			for _, ns := range namespaces[1:] {
				_ = ns.To("r1").SocketsJoin(fmt.Sprint("admin", i%3))
				_ = ns.To("r2").DisconnectSockets(i%2 == 0)
			}
			_, _ = io.Except(s.ID()).Timeout(3*time.Millisecond).EmitWithAck(t.Context(), "all")
		}
	})
	for seed := range 6 {
		attackers.Go(func() { attack(t, url, uint64(seed)) })
	}
	for range 50 {
		bystander.Sync()
	}
	attackers.Wait()
	close(stop)
	admins.Wait()
	bystander.Sync()
	bystander.Drop()
	eventually(t, "all are gone", func() bool {
		return io.Engine().Sockets() == 0 && connected.Load() == 0 && pending.Load() == 0 && io.Deadlines() == 0
	})
	for _, ns := range namespaces {
		if ns.Len() != 0 || len(ns.Memory().Rooms()) != 0 {
			t.Errorf("%s: %d sockets and the rooms %v are left", ns.Name(), ns.Len(), ns.Memory().Rooms())
		}
	}
	if n := len(dynamic.Children()); n != 0 {
		t.Errorf("%d dynamic namespaces are left", n)
	}
}

func attack(t *testing.T, url string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 42))
	for range 40 {
		c := dial(t, url)
		if rng.IntN(4) > 0 {
			c.Send("0")
		}
		for range rng.IntN(30) {
			move := attackMoves[rng.IntN(len(attackMoves))]
			if move[0] == 'b' {
				c.SendBinary([]byte(move))
			} else {
				c.Send(move)
			}
		}
		if rng.IntN(3) == 0 {
			c.Raw("1")
		}
		c.Close()
	}
}

// Many events, acknowledgements and disconnections leave no sink behind that was released.
func TestSinksAreForgotten(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	_, s := joinSocket(t, io.Namespace, url)
	sink := sinkFunc(func(*socketio.Socket, socketio.Args) {})
	for range 100 {
		p, err := io.Prepare("m", sink)
		must(t, err)
		_, err = s.EmitPrepared(p)
		must(t, err)
		p.Release()
	}
	if n := io.SinkCount(); n != 0 {
		t.Errorf("%d sinks are left", n)
	}
}
