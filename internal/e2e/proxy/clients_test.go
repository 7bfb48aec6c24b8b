package proxy

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"xabar/internal/testkit"
)

// kinds are the official clients and the ways in which they connect.
var kinds = []struct {
	name      string
	transport string // in the end
	opts      testkit.ClientOptions
}{
	{"polling", "polling", testkit.ClientOptions{Transports: []string{"polling"}}}, // CASES 42
	{"websocket", "websocket", testkit.ClientOptions{Transports: []string{"websocket"}}},
	{"upgrade", "websocket", testkit.ClientOptions{}},
	{"upgrade-3", "websocket", testkit.ClientOptions{Version: 3}},
	{"upgrade-2", "websocket", testkit.ClientOptions{Version: 2}},
}

// Messages, receipts, typing and history between two nodes, by each transport and through each proxy; then
// nobody says anything for two minutes (CASES 41), in all of them at the same time, and all goes on.
func TestOfficialClientsThroughProxies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var talks []*conversation
	for _, b := range balancers {
		url := b.start(t, c.nodes)
		for _, kind := range kinds {
			name := b.name + " " + kind.name
			k := &conversation{name: name}
			k.from, k.to = c.apart(t, url, name, kind.opts)
			for _, p := range []*page{k.from, k.to} {
				p.settlesOn(kind.transport)
			}
			k.talk(t)
			talks = append(talks, k)
		}
	}
	idle(t, talks)
	for _, k := range talks {
		k.from.must("message:send", obj{"conversationId": k.id, "clientMsgId": "after the pause", "text": "Salam!"})
		k.to.hears(messages + 1)
	}
}

// conversation is two users who are connected in the same way.
type conversation struct {
	name     string
	from, to *page
	id       string
}

// settlesOn waits for the transport.
func (p *page) settlesOn(transport string) {
	p.t.Helper()
	eventually(p.t, "the transport is "+transport, func() bool {
		state, err := p.State(testkit.Context(p.t))
		if err != nil {
			p.t.Fatal(err)
		}
		return state.Transport == transport
	})
}

const messages = 50

// talk is everything that two users do.
func (k *conversation) talk(t *testing.T) {
	t.Helper()
	ctx, from, to := testkit.Context(t), k.from, k.to
	k.id = from.must("message:send", obj{"toUserId": to.user.User.ID, "clientMsgId": "m1", "text": "1"}).Message.ConversationID
	batch := make([]any, 0, messages-1)
	for i := 2; i <= messages; i++ {
		batch = append(batch, obj{"conversationId": k.id, "clientMsgId": fmt.Sprint("m", i), "text": fmt.Sprint(i)})
	}
	if _, err := from.EmitAll(ctx, "message:send", batch...); err != nil {
		t.Fatal(err)
	}
	to.hears(messages)
	var seqs []int64
	for _, h := range to.Events("message") {
		seqs = append(seqs, testkit.Decode[struct{ Seq int64 }](h).Seq)
	}
	if len(seqs) != messages || !slices.IsSorted(seqs) {
		t.Errorf("%s: heard %v", k.name, seqs)
	}
	from.hearsSeq("message:delivered", messages)
	to.must("message:read", obj{"conversationId": k.id, "seq": messages})
	from.hearsSeq("message:read", messages)
	if err := to.Send(ctx, "typing", obj{"conversationId": k.id}); err != nil {
		t.Fatal(err)
	}
	if _, err := from.WaitFor(ctx, "typing", nil); err != nil {
		t.Fatal(err)
	}
	if got := to.must("history", obj{"conversationId": k.id, "limit": 50}).Messages; len(got) != messages {
		t.Errorf("%s: a history of %d", k.name, len(got))
	}
}

// idle returns when heartbeats alone have kept all connections for more than 120 s.
func idle(t *testing.T, talks []*conversation) {
	t.Helper()
	const (
		event = "$heartbeat"
		beats = 6 // one every 25 s
	)
	ctx, cancel := context.WithTimeout(t.Context(), beats*25*time.Second+testkit.Patience)
	defer cancel()
	start, before := time.Now(), map[*page]int{}
	for _, k := range talks {
		for _, p := range []*page{k.from, k.to} {
			before[p] = len(p.Events(event))
		}
	}
	for _, k := range talks {
		for _, p := range []*page{k.from, k.to} {
			if _, err := p.WaitCount(ctx, event, before[p]+beats); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
			if gone := p.Events("disconnect"); len(gone) > 0 {
				t.Errorf("%s was disconnected: %s", p.user.User.Name, gone[0].Args)
			}
		}
	}
	if took := time.Since(start); took < 2*time.Minute {
		t.Errorf("%d heartbeats in %v: nobody was idle for long", beats, took)
	}
}
