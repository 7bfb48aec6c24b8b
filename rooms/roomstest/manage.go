package roomstest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"xabar/gateway/socketio"
)

func exerciseManagement(b *bench) {
	p, q, r := b.join("a"), b.join("a"), b.join("c")
	for i, n := range b.nodes {
		room := fmt.Sprint("new", i)
		b.ok(n.To("a").SocketsJoin(room, "second"))
		for _, c := range []*player{p, q} {
			b.await("it has joined", func() bool {
				rooms := c.socket.Rooms()
				return slices.Contains(rooms, room) && slices.Contains(rooms, "second")
			})
		}
		b.ok(n.To(room).Except(p.socket.ID()).SocketsLeave("second", room))
		b.await("it has left", func() bool {
			rooms := q.socket.Rooms()
			return !slices.Contains(rooms, room) && !slices.Contains(rooms, "second")
		})
		if !slices.Contains(p.socket.Rooms(), room) {
			b.Error("the excluded one has left too")
		}
	}
	if got := sorted(r.socket.Rooms()); !slices.Equal(got, sorted([]string{r.socket.ID(), "c"})) {
		b.Errorf("the one in another room is in %v", got)
	}
}

func exerciseFetch(b *bench) {
	p, q, r := b.join("a"), b.join("a", "c"), b.join("c")
	q.socket.SetData(map[string]any{"user": "<q>"})
	for _, n := range b.nodes {
		all, err := n.AllSockets(b.Context())
		if b.ok(err); !slices.Equal(sorted(all), ids(p, q, r)) {
			b.Errorf("all sockets: %v", all)
		}
		in, err := n.To("a", "c").Except("a").AllSockets(b.Context())
		if b.ok(err); !slices.Equal(in, ids(r)) {
			b.Errorf("sockets in c but not a: %v", in)
		}
		none, err := n.To("empty").FetchSockets(b.Context())
		if b.ok(err); len(none) != 0 {
			b.Errorf("sockets in an empty room: %v", none)
		}
		b.checkDetails(n, p, q)
		b.useRemote(n, q)
	}
}

func (b *bench) checkDetails(n *socketio.Server, p, q *player) {
	b.Helper()
	found, err := n.To("a").FetchSockets(b.Context())
	b.ok(err)
	if len(found) != 2 {
		b.Fatalf("%d sockets in a, want 2", len(found))
	}
	i := slices.IndexFunc(found, func(s *socketio.RemoteSocket) bool { return s.ID == q.socket.ID() })
	if i < 0 || found[1-i].ID != p.socket.ID() {
		b.Fatalf("wrong sockets: %v", found)
	}
	var hs socketio.Handshake
	b.ok(json.Unmarshal(found[i].Handshake, &hs))
	if string(found[i].Data) != `{"user":"<q>"}` || !slices.Equal(sorted(found[i].Rooms), sorted([]string{"a", "c", q.socket.ID()})) {
		b.Errorf("data %s, rooms %v", found[i].Data, found[i].Rooms)
	}
	if !strings.HasPrefix(hs.URL, "/socket.io/") || hs.Query["EIO"] != "4" || string(hs.Auth) != "{}" {
		b.Errorf("handshake %+v", hs)
	}
}

func (b *bench) useRemote(n *socketio.Server, q *player) {
	b.Helper()
	found, err := n.To(q.socket.ID()).FetchSockets(b.Context())
	b.ok(err)
	if len(found) != 1 {
		b.Fatalf("%d sockets with one id", len(found))
	}
	b.ok(found[0].Emit("hello"))
	q.expect(b, `2["hello"]`)
	b.ok(found[0].Join("remote"))
	b.await("it has joined", func() bool { return slices.Contains(q.socket.Rooms(), "remote") })
	b.ok(found[0].Leave("remote"))
	b.await("it has left", func() bool { return !slices.Contains(q.socket.Rooms(), "remote") })
	done := make(chan string, 1)
	go func() {
		a, err := found[0].EmitWithAck(b.Context(), "q")
		done <- fmt.Sprint(string(a.Arg(0).Raw()), err)
	}()
	q.Send("3" + q.question(b) + "[7]")
	if got := <-done; got != "7<nil>" {
		b.Errorf("answer %s", got)
	}
}

func exerciseDisconnect(b *bench) {
	p, q, r := b.join("a"), b.join("a"), b.join("c")
	n := b.nodes[len(b.nodes)-1]
	b.ok(n.To("a").Except(q.socket.ID()).DisconnectSockets(false))
	p.expect(b, "1")
	p.Connect("/", "") // the connection is still there
	b.ok(n.To(q.socket.ID()).DisconnectSockets(true))
	q.expect(b, "1")
	q.ExpectClose()
	b.settle(r)
	b.await("they are gone", func() bool {
		all, err := n.AllSockets(b.Context())
		return err == nil && len(all) == 2
	})
}

// alone are the cases of a node that has no others.
var alone = map[string]func(b *bench){
	"no others":    exerciseNoOthers,
	"range":        exerciseRange,
	"many rooms":   exerciseManyRooms,
	"churn":        exerciseChurn,
	"nothing left": exerciseNothingLeft,
}

func exerciseNoOthers(b *bench) {
	n := b.nodes[0]
	n.OnServerSide("hello", func(socketio.Args, func(...any) error) { b.Error("a node heard itself") })
	b.ok(n.ServerSideEmit("hello", 1))
	answers, err := n.ServerSideEmitWithAck(b.Context(), "hello")
	if b.ok(err); len(answers) != 0 {
		b.Errorf("answers %v", answers)
	}
}

// exerciseRange: the members are those at the moment of the call.
func exerciseRange(b *bench) {
	for range 5 {
		b.join("a")
	}
	outside := b.join()
	n := b.nodes[0]
	seen := map[string]int{}
	n.To("a").Range(func(s *socketio.Socket) bool {
		seen[s.ID()]++
		s.Leave("a")
		b.ok(outside.socket.Join("a"))
		return true
	})
	if len(seen) != 5 || seen[outside.socket.ID()] != 0 {
		b.Errorf("saw %v", seen)
	}
	count := 0
	n.To("a").Range(func(s *socketio.Socket) bool { count++; return true })
	if count != 1 {
		b.Errorf("then %d members, want 1", count)
	}
	count = 0
	n.Local().Range(func(s *socketio.Socket) bool { count++; return count < 3 })
	if count != 3 {
		b.Errorf("Range went on after false: %d", count)
	}
}

func exerciseManyRooms(b *bench) {
	p := b.join()
	want := []string{p.socket.ID()}
	for i := range 200 {
		room := fmt.Sprint("room", i)
		b.ok(p.socket.Join(room))
		want = append(want, room)
	}
	for i := 0; i < 200; i += 3 {
		room := fmt.Sprint("room", i)
		p.socket.Leave(room)
		want = slices.DeleteFunc(want, func(r string) bool { return r == room })
	}
	if got := sorted(p.socket.Rooms()); !slices.Equal(got, sorted(want)) {
		b.Errorf("rooms %v", got)
	}
	b.ok(b.nodes[0].To("room0", "room3").Emit("left"))
	b.ok(b.nodes[0].To("room199").Emit("still in"))
	p.expect(b, `2["still in"]`)
}

// exerciseChurn: who is in a room all the time gets everything, once, while others come and go.
func exerciseChurn(b *bench) {
	stays := []*player{b.join("a"), b.join("a")}
	var movers []*player
	for range 6 {
		movers = append(movers, b.join())
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, m := range movers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := m.socket.Join("a", "b"); err != nil {
					b.Error(err)
				}
				m.socket.Leave("a")
			}
		})
	}
	const n = 500
	for i := range n {
		b.ok(b.nodes[0].To("a").Emit("n", i))
	}
	close(stop)
	wg.Wait()
	for _, p := range stays {
		for i := range n {
			p.expect(b, fmt.Sprintf(`2["n",%d]`, i))
		}
	}
	b.settle(stays...)
}

func exerciseNothingLeft(b *bench) {
	for range 20 {
		b.join("a", "b")
	}
	n := b.nodes[0]
	for i, p := range b.clients {
		switch i % 3 {
		case 0:
			p.Drop()
		case 1:
			p.socket.Disconnect(false)
		case 2:
			p.Send("1")
		}
	}
	for _, p := range b.clients {
		b.await("it is gone", func() bool { return !p.socket.Connected() && len(p.socket.Rooms()) == 0 })
		if err := p.socket.Join("a"); err == nil {
			b.Error("a socket that is gone has joined a room")
		}
	}
	all, err := n.AllSockets(b.Context())
	if b.ok(err); len(all) != 0 {
		b.Errorf("sockets %v are left", all)
	}
	in, err := n.To("a", "b").AllSockets(b.Context())
	if b.ok(err); len(in) != 0 {
		b.Errorf("sockets %v are left in the rooms", in)
	}
}
