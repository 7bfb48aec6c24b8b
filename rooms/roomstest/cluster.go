package roomstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xabar/gateway/socketio"
)

// together are the cases of two nodes.
var together = map[string]func(b *bench){
	"local":            exerciseLocal,
	"server side":      exerciseServerSide,
	"server side acks": exerciseServerSideAcks,
}

func exerciseLocal(b *bench) {
	here, there := b.join("a"), b.join("a")
	b.ok(b.nodes[0].To("a").Local().Emit("local"))
	here.expect(b, `2["local"]`)
	b.ok(here.socket.Local().Emit("nobody: the only other is elsewhere"))
	all, err := b.nodes[0].Local().AllSockets(b.Context())
	if b.ok(err); len(all) != 1 || all[0] != here.socket.ID() {
		b.Errorf("local sockets %v", all)
	}
	b.settle(here, there)
}

func exerciseServerSide(b *bench) {
	heard := make(chan string, 10)
	b.nodes[0].OnServerSide("hello", func(socketio.Args, func(...any) error) { b.Error("a node heard itself") })
	b.nodes[1].OnServerSide("hello", func(a socketio.Args, ack func(...any) error) {
		heard <- fmt.Sprint(string(a.Arg(0).Raw()), a.Len(), ack == nil)
	})
	b.ok(b.nodes[0].ServerSideEmit("hello", "é", 2))
	select {
	case got := <-heard:
		if got != `"é"2 true` {
			b.Errorf("heard %s", got)
		}
	case <-time.After(10 * time.Second):
		b.Error("the other node heard nothing")
	}
	if err := b.nodes[0].ServerSideEmit("connection"); !errors.Is(err, socketio.ErrReservedEvent) {
		b.Errorf("a reserved name: %v", err)
	}
}

func exerciseServerSideAcks(b *bench) {
	b.nodes[1].OnServerSide("q", func(a socketio.Args, ack func(...any) error) {
		if err := ack(a.Arg(0), "answer"); err != nil {
			b.Error(err)
		}
	})
	b.nodes[1].OnServerSide("silent", func(socketio.Args, func(...any) error) {})
	answers, err := b.nodes[0].ServerSideEmitWithAck(b.Context(), "q", 7)
	if b.ok(err); len(answers) != 1 || string(answers[0].Arg(0).Raw()) != "7" {
		b.Errorf("answers %v", answers)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 200*time.Millisecond)
	defer cancel()
	if answers, err := b.nodes[0].ServerSideEmitWithAck(ctx, "silent"); len(answers) != 0 || !errors.Is(err, socketio.ErrAckTimeout) {
		b.Errorf("answers %v, %v; want ErrAckTimeout", answers, err)
	}
}
