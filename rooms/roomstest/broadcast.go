package roomstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xabar/gateway/socketio"
)

func exerciseRooms(b *bench) {
	a, both, c, none := b.join("a"), b.join("a", "c"), b.join("c"), b.join()
	for i, n := range b.nodes {
		b.ok(n.To("a").Emit("to a", i))
		a.expect(b, fmt.Sprintf(`2["to a",%d]`, i))
		both.expect(b, fmt.Sprintf(`2["to a",%d]`, i))
		b.ok(n.To("a").In("c", "a", "empty").Emit("once", i)) // each socket once
		for _, p := range []*player{a, both, c} {
			p.expect(b, fmt.Sprintf(`2["once",%d]`, i))
		}
		b.ok(n.Emit("all", i))
		for _, p := range b.clients {
			p.expect(b, fmt.Sprintf(`2["all",%d]`, i))
		}
		b.ok(n.To("empty").Emit("nobody"))
	}
	both.socket.Leave("a")
	both.socket.Leave("a")
	b.ok(a.socket.Join("a", "a")) // twice is once
	b.ok(a.node.To("a").Emit("left"))
	a.expect(b, `2["left"]`)
	b.settle(a, both, c, none)
	if got := sorted(both.socket.Rooms()); !slices.Equal(got, sorted([]string{both.socket.ID(), "c"})) {
		b.Errorf("rooms %v", got)
	}
}

func exerciseExcept(b *bench) {
	a, both, c, none := b.join("a"), b.join("a", "c"), b.join("c"), b.join()
	for _, n := range b.nodes {
		b.ok(n.Except("a").Emit("not a"))
		c.expect(b, `2["not a"]`)
		none.expect(b, `2["not a"]`)
		b.ok(n.To("a").Except("c").Emit("a, not c"))
		a.expect(b, `2["a, not c"]`)
		b.ok(n.To("a", "c").Except(both.socket.ID(), "empty").Emit("not both"))
		a.expect(b, `2["not both"]`)
		c.expect(b, `2["not both"]`)
		b.ok(n.To("a").Except("a").Emit("nobody"))
	}
	b.ok(both.socket.To("a", "c").Emit("from both"))
	a.expect(b, `2["from both"]`)
	c.expect(b, `2["from both"]`)
	b.ok(both.socket.Broadcast().Emit("all but me"))
	for _, p := range []*player{a, c, none} {
		p.expect(b, `2["all but me"]`)
	}
	b.settle(b.clients...)
}

func exerciseOwnID(b *bench) {
	p, q := b.join("a"), b.join()
	for _, n := range b.nodes {
		b.ok(n.To(p.socket.ID()).Emit("mine"))
		p.expect(b, `2["mine"]`)
		b.ok(n.To("a", p.socket.ID()).Emit("once"))
		p.expect(b, `2["once"]`)
	}
	b.settle(p, q)
	// another socket may join the room of an id, and the id's own socket may leave it
	b.ok(q.socket.Join(p.socket.ID()))
	b.ok(q.node.To(p.socket.ID()).Local().Emit("shared"))
	q.expect(b, `2["shared"]`)
	if q.node == p.node {
		p.expect(b, `2["shared"]`)
	}
	p.socket.Leave(p.socket.ID())
	if slices.Contains(p.socket.Rooms(), p.socket.ID()) {
		b.Error("the socket is still in the room of its id")
	}
	b.ok(p.node.To(p.socket.ID()).Local().Emit("left"))
	if q.node == p.node {
		q.expect(b, `2["left"]`)
	}
	b.ok(p.socket.Join(p.socket.ID()))
	b.settle(p)
}

func exerciseOrder(b *bench) {
	p, q := b.join("a"), b.join("a")
	const n = 300
	for i := range n {
		b.ok(b.nodes[0].To("a").Emit("n", i))
	}
	for i := range n {
		p.expect(b, fmt.Sprintf(`2["n",%d]`, i))
		q.expect(b, fmt.Sprintf(`2["n",%d]`, i))
	}
}

func exerciseBinary(b *bench) {
	p, q := b.join("a"), b.join("a")
	for _, n := range b.nodes {
		b.ok(n.To("a").Emit("file", []byte{0, 1}, map[string]any{"x": []byte{255}, "t": "é"}))
		for _, c := range []*player{p, q} {
			c.expect(b, `52-["file",{"_placeholder":true,"num":0},{"t":"é","x":{"_placeholder":true,"num":1}}]`)
			c.ExpectBinary([]byte{0, 1})
			c.ExpectBinary([]byte{255})
		}
	}
	b.settle(p, q)
}

func exerciseAcks(b *bench) {
	p, q, other := b.join("a"), b.join("a"), b.join("c")
	for _, n := range b.nodes {
		type result struct {
			all []socketio.Args
			err error
		}
		done := make(chan result, 1)
		go func() {
			all, err := n.To("a").Timeout(10*time.Second).EmitWithAck(b.Context(), "q", 1)
			done <- result{all, err}
		}()
		for i, c := range []*player{p, q} {
			id := c.question(b)
			c.Send(fmt.Sprintf(`3%s["answer %d",2]`, id, i))
			c.Send(fmt.Sprintf(`3%s["again"]`, id)) // counts once
		}
		r := <-done
		if r.err != nil || len(r.all) != 2 {
			b.Fatalf("%d answers, %v", len(r.all), r.err)
		}
		got := sorted([]string{string(r.all[0].Arg(0).Raw()), string(r.all[1].Arg(0).Raw())})
		if !slices.Equal(got, []string{`"answer 0"`, `"answer 1"`}) {
			b.Errorf("answers %v", got)
		}
		all, err := n.To("empty").Timeout(10*time.Second).EmitWithAck(b.Context(), "q")
		if len(all) != 0 || err != nil {
			b.Errorf("an empty room: %v, %v", all, err)
		}
	}
	b.settle(p, q, other)
}

// question reads the event "q" and returns its acknowledgement id.
func (p *player) question(b *bench) string {
	b.Helper()
	for {
		var id int
		m := p.Next()
		if n, err := fmt.Sscanf(m, `42%d["q"`, &id); err == nil && n == 1 {
			return fmt.Sprint(id)
		}
		if len(m) < 10 || m[:10] != `42["probe"` {
			b.Fatalf("got %q, want a question", m)
		}
	}
}

func exerciseAcksLate(b *bench) {
	p, q := b.join("a"), b.join("a")
	for _, n := range b.nodes {
		type result struct {
			n   int
			err error
		}
		done := make(chan result, 1)
		go func() {
			all, err := n.To("a").Timeout(300*time.Millisecond).EmitWithAck(b.Context(), "q")
			done <- result{len(all), err}
		}()
		p.Send("3" + p.question(b) + "[]")
		late := q.question(b)
		if r := <-done; r.n != 1 || !errors.Is(r.err, socketio.ErrAckTimeout) {
			b.Errorf("%d answers, %v; want one and ErrAckTimeout", r.n, r.err)
		}
		q.Send("3" + late + "[]")
		ctx, cancel := context.WithCancel(b.Context())
		go func() {
			_, err := n.To("a").EmitWithAck(ctx, "q")
			done <- result{0, err}
		}()
		p.question(b)
		q.question(b)
		cancel()
		if r := <-done; !errors.Is(r.err, context.Canceled) {
			b.Errorf("%v, want context.Canceled", r.err)
		}
	}
	for _, c := range []*player{p, q} {
		b.await("nothing is pending", func() bool { return c.socket.PendingAcks() == 0 })
	}
}

func exerciseNamespaces(b *bench) {
	for _, n := range b.nodes {
		n.Of("/other")
	}
	p := b.join("a")
	b.settle(p) // no probe of join's comes behind
	id := p.Connect("/other", "")
	b.ok(p.node.Of("/other").Socket(id).Join("a"))
	b.ok(p.node.To("a").Emit("main"))
	p.expect(b, `2["main"]`)
	b.ok(p.node.Of("/other").To("a").Local().Emit("other"))
	p.expect(b, `2/other,["other"]`)
	b.settle(p)
}
