package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

// cluster is several nodes that share a PostgreSQL database and a Redis.
type cluster struct {
	nodes []*world
	redis *redistest.Server
}

func newCluster(t *testing.T, n int, args ...string) *cluster {
	t.Helper()
	redis := redistest.Start(t)
	return startCluster(t, redis, slices.Repeat([]string{redis.URL}, n), args)
}

// startCluster starts a node for each URL of Redis.
func startCluster(t *testing.T, redis *redistest.Server, urls, args []string) *cluster {
	t.Helper()
	c := &cluster{redis: redis}
	database, js := pgtest.Database(t), testkit.NewJS(t)
	for _, url := range urls {
		args := append([]string{"--database-url", database, "--redis-url", url, "--jwt-secret", secret}, args...)
		c.nodes = append(c.nodes, &world{t, testkit.StartGateway(t, testkit.GatewayOptions{Args: args}), js, database})
	}
	for _, node := range c.nodes {
		node.ready("ok")
	}
	return c
}

// ready waits until /readyz has this status.
func (w *world) ready(status string) {
	w.t.Helper()
	eventually(w.t, "readyz says "+status, func() bool {
		_, body := w.gateway.Get("/readyz")
		return strings.Contains(body, fmt.Sprintf(`"status":%q`, status))
	})
}

// The whole life of a message between two nodes. CASES 9, 12 and 29.
func TestTheWholeLifeOfAMessageBetweenTwoNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	a, b := c.nodes[0].page("A"), c.nodes[1].page("B", acks(testkit.AckAfter(300*time.Millisecond)))
	conversation := a.open(b)
	if _, err := b.WaitFor(testkit.Context(t), "conversation", nil); err != nil {
		t.Fatal(err)
	}
	if seqs := a.burst(conversation.ID, ids("x", 200)); !slices.Equal(seqs, upTo(200)) {
		t.Errorf("seqs are %v", seqs)
	}
	b.hears(conversation.ID, 200)
	if seqs := b.heardSeqs(conversation.ID); !slices.Equal(seqs, upTo(200)) {
		t.Errorf("B heard %v", seqs)
	}
	a.hearsPosition("message:delivered", b, 200)
	b.must("message:read", obj{"conversationId": conversation.ID, "seq": 200})
	a.hearsPosition("message:read", b, 200)
	if err := b.SendVolatile(testkit.Context(t), "typing", obj{"conversationId": conversation.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WaitFor(testkit.Context(t), "typing", nil); err != nil {
		t.Fatal(err)
	}
	// A's other device, on B's node, sees the same and has nothing unread.
	laptop := c.nodes[1].page("A")
	a.send(conversation.ID, "y1")
	laptop.hears(conversation.ID, 201)
	if view := laptop.view(conversation.ID); view.Unread != 0 {
		t.Errorf("A's unread is %d", view.Unread)
	}
}

// DESIGN guarantee 3 with the senders on different nodes.
func TestSendersOnThreeNodesReachASocketInOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	a, b, d := c.nodes[0].page("A"), c.nodes[1].page("B"), c.nodes[2].page("D")
	group := a.must("conversation:open", obj{"title": "Guruh", "memberIds": []string{b.user.User.ID, d.user.User.ID}}).Conversation
	for _, p := range []*page{b, d} {
		if _, err := p.WaitFor(testkit.Context(t), "conversation", nil); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	for _, p := range []*page{a, b, d} {
		go func() {
			defer func() { done <- struct{}{} }()
			p.burst(group.ID, ids(p.user.User.Name, 100))
		}()
	}
	for range 3 {
		<-done
	}
	for _, p := range []*page{a, b, d} {
		others := 0
		eventually(t, p.user.User.Name+" heard what the others sent", func() bool {
			others = len(p.heardSeqs(group.ID))
			return others == 200
		})
		if seqs := p.heardSeqs(group.ID); !slices.IsSorted(seqs) {
			t.Errorf("%s heard %v", p.user.User.Name, seqs)
		}
	}
	for _, p := range []*page{a, b, d} {
		eventually(t, "everything is delivered to "+p.user.User.Name, func() bool { return p.view(group.ID).LastDeliveredSeq == 300 })
	}
}

// CASES 39.
func TestARemovedMemberHearsNothingMore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	a, b, d := c.nodes[0].page("A"), c.nodes[1].page("B"), c.nodes[1].page("D")
	group := a.must("conversation:open", obj{"title": "Guruh", "memberIds": []string{b.user.User.ID, d.user.User.ID}}).Conversation
	a.send(group.ID, "x1")
	b.hears(group.ID, 1)
	d.hears(group.ID, 1)
	c.nodes[0].http(t, "DELETE", fmt.Sprintf("/conversations/%s/members/%s", group.ID, b.user.User.ID), a.user.Token, nil, 204)
	a.send(group.ID, "x2")
	if err := a.SendVolatile(testkit.Context(t), "typing", obj{"conversationId": group.ID}); err != nil {
		t.Fatal(err)
	}
	d.hears(group.ID, 2)
	if _, err := d.WaitFor(testkit.Context(t), "typing", nil); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if seqs := b.heardSeqs(group.ID); !slices.Equal(seqs, []int64{1}) || len(b.Events("typing")) != 0 {
		t.Errorf("B heard %v and %d typing events", seqs, len(b.Events("typing")))
	}
	b.refused("history", obj{"conversationId": group.ID}, chat.CodeNotFound, "")
	if _, err := b.WaitFor(testkit.Context(t), "conversation:left", nil); err != nil {
		t.Error(err)
	}
}

// CASES 17.
func TestRedisStopsAndComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	a, near, far := c.nodes[0].page("A"), c.nodes[0].page("B"), c.nodes[1].page("B", simple)
	conversation := a.open(near)
	a.send(conversation.ID, "x1")
	near.hears(conversation.ID, 1)
	far.hears(conversation.ID, 1)

	c.redis.Stop()
	sent := a.burst(conversation.ID, ids("down", 20))
	if !slices.Equal(sent, between(2, 21)) {
		t.Errorf("seqs are %v", sent)
	}
	near.hears(conversation.ID, 21)
	if got := a.must("history", obj{"conversationId": conversation.ID}); got.LastSeq != 21 {
		t.Errorf("history ends at %d", got.LastSeq)
	}
	c.nodes[0].ready("degraded")
	c.redis.Restart()
	far.hears(conversation.ID, 21)
	for _, node := range c.nodes {
		node.ready("ok")
	}
	a.send(conversation.ID, "x2")
	far.hears(conversation.ID, 22)
	if seqs := far.heardSeqs(conversation.ID); !slices.Equal(seqs, upTo(22)) {
		t.Errorf("the far socket heard %v", seqs)
	}
	if n := len(far.Events("disconnect")); n != 0 {
		t.Errorf("the far socket was disconnected %d times", n)
	}
}

// CASES 32; its notifications are notify's to test.
func TestAKilledNodeLeavesNobodyOnline(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--presence-ttl", "6s")
	a := c.nodes[0].page("A")
	var ids []string
	for i := range 10 {
		p := c.nodes[1].page(fmt.Sprint("U", i), func(o *testkit.ClientOptions) { o.Options = map[string]any{"reconnection": false} })
		ids = append(ids, p.user.User.ID)
	}
	online := func() (n int) {
		for _, p := range a.must("presence", obj{"userIds": ids}).Presence {
			if p.Online {
				n++
			}
		}
		return n
	}
	eventually(t, "all are online", func() bool { return online() == 10 })
	c.nodes[1].gateway.Kill()
	eventually(t, "all are offline", func() bool { return online() == 0 })
	heard := map[string]int{}
	for _, h := range a.Events("presence") {
		if state := testkit.Decode[chat.PresenceState](h); !state.Online {
			heard[state.UserID.String()]++
		}
	}
	for id, n := range heard {
		if n > 1 {
			t.Errorf("%s was announced offline %d times", id, n)
		}
	}
}
