package proxy

import (
	"context"
	"encoding/json"
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
// nobody says anything for two minutes (CASES 41).
func TestOfficialClientsThroughProxies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, b := range balancers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			url := b.start(t, c.nodes)
			for _, kind := range kinds {
				t.Run(kind.name, func(t *testing.T) {
					t.Parallel()
					from, to := c.apart(t, url, b.name+" "+kind.name, kind.opts)
					for _, p := range []*page{from, to} {
						p.settlesOn(kind.transport)
					}
					conversation := talk(from, to)
					idle(from, to)
					from.must("message:send", obj{"conversationId": conversation, "clientMsgId": "after the pause", "text": "Salam!"})
					to.hears(messages + 1)
				})
			}
		})
	}
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

// talk is everything that two users do, and returns their conversation.
func talk(from, to *page) (conversation string) {
	t := from.t
	ctx := testkit.Context(t)
	conversation = from.must("message:send", obj{"toUserId": to.user.User.ID, "clientMsgId": "m1", "text": "1"}).Message.ConversationID
	batch := make([]any, 0, messages-1)
	for i := 2; i <= messages; i++ {
		batch = append(batch, obj{"conversationId": conversation, "clientMsgId": fmt.Sprint("m", i), "text": fmt.Sprint(i)})
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
		t.Errorf("heard %v", seqs)
	}
	from.hearsSeq("message:delivered", messages)
	to.must("message:read", obj{"conversationId": conversation, "seq": messages})
	from.hearsSeq("message:read", messages)
	if err := to.Send(ctx, "typing", obj{"conversationId": conversation}); err != nil {
		t.Fatal(err)
	}
	if _, err := from.WaitFor(ctx, "typing", nil); err != nil {
		t.Fatal(err)
	}
	if got := to.must("history", obj{"conversationId": conversation, "limit": 50}).Messages; len(got) != messages {
		t.Errorf("a history of %d", len(got))
	}
	return conversation
}

// idle returns when heartbeats alone have kept both connections for more than 120 s.
func idle(pages ...*page) {
	t := pages[0].t
	const beats = 5 // every 25 s
	ctx, cancel := context.WithTimeout(t.Context(), beats*25*time.Second+testkit.Patience)
	defer cancel()
	const event = "$heartbeat"
	start, before := time.Now(), make([]int, len(pages))
	for i, p := range pages {
		before[i] = len(p.Events(event))
	}
	for i, p := range pages {
		if _, err := p.WaitCount(ctx, event, before[i]+beats); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 100*time.Second {
		t.Errorf("%d heartbeats in %v", beats, took)
	}
	for _, p := range pages {
		if gone := p.Events("disconnect"); len(gone) > 0 {
			reason, _ := json.Marshal(gone[0].Args)
			t.Errorf("%s was disconnected: %s", p.user.User.Name, reason)
		}
	}
}
