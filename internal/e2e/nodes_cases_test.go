package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/internal/testkit"
	"xabar/internal/testkit/lightclient"
)

// CASES 2: B is away from N2 for a while, and meanwhile removed from c1 on N1; C is kept
// from connecting by an operator on N1.
func TestWhatHappensOnAnotherNodeWhileAway(t *testing.T) {
	t.Parallel()
	const serverKey = "the-server-key-of-this-test"
	c := newCluster(t, 2, "--server-key", serverKey)
	a, b, d := c.nodes[0].page("A"), c.nodes[1].page("B"), c.nodes[1].page("C")
	members := []string{b.user.User.ID, d.user.User.ID}
	left := a.must("conversation:open", obj{"title": "c1", "memberIds": members}).Conversation
	kept := a.open(b)
	a.send(left.ID, "x1")
	a.send(kept.ID, "y1")
	for _, conversation := range []chat.Conversation{left, kept} {
		b.hears(conversation.ID, 1)
		a.hearsPosition("message:delivered", b, 1)
	}
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.send(left.ID, "x2")
	c.nodes[0].http(t, "DELETE", fmt.Sprintf("/conversations/%s/members/%s", left.ID, b.user.User.ID), a.user.Token, nil, 204)
	c.nodes[0].http(t, "POST", "/admin/users/"+d.user.User.ID+"/revoke", serverKey, nil, 204)
	a.send(left.ID, "x3")
	a.send(kept.ID, "y2")

	if err := b.Connect(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	got := decodeSync(t, b.must("sync", obj{"positions": obj{left.ID.String(): 1, kept.ID.String(): 1}}))
	if len(got) != 1 || got[0].Conversation.ID != kept.ID || !slices.Equal(seqsOf(got[0].Messages), []int64{2}) {
		t.Errorf("the sync brought %+v", got)
	}
	if seqs := b.heardSeqs(left.ID); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("B heard %v of c1", seqs)
	}
	b.refused("history", obj{"conversationId": left.ID}, chat.CodeNotFound, "")
	if _, err := d.WaitFor(testkit.Context(t), "disconnect", nil); err != nil {
		t.Fatal(err)
	}
	var refused *testkit.Refused
	eventually(t, "C is refused", func() bool { return errors.As(d.Connect(short(t, time.Second)), &refused) })
	if !strings.Contains(string(refused.Data), `"unauthenticated"`) {
		t.Errorf("C was told %s", refused.Data)
	}
}

// CASES 6 on two nodes.
func TestALiveMessageBeforeTheSyncOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	a, b := c.nodes[0].page("A"), c.nodes[1].page("B")
	conversation := a.open(b)
	if err := b.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.burst(conversation.ID, ids("x", 120))
	mark := b.Mark()
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WaitAfter(testkit.Context(t), mark, "session", nil); err != nil {
		t.Fatal(err)
	}
	a.send(conversation.ID, "live")
	b.hears(conversation.ID, 121)
	page := decodeSync(t, b.must("sync", obj{"positions": obj{}}))[0]
	held := seqsOf(page.Messages)
	for page.HasMore {
		more := b.must("history", obj{"conversationId": conversation.ID, "afterSeq": held[len(held)-1]})
		held, page.HasMore = append(held, seqsOf(more.Messages)...), more.HasMore
	}
	// A node to which the conversation is new shows what was stored a moment ago too: clocks
	// of nodes differ. It comes in order, and a client that keeps seqs has it once.
	live := b.heardSeqs(conversation.ID)
	if !slices.Equal(held, upTo(121)) || !slices.Equal(live, between(122-int64(len(live)), 121)) {
		t.Errorf("the sync brought %v, live came %v", held, live)
	}
	b.must("message:delivered", obj{"conversationId": conversation.ID, "seq": 121})
	a.hearsPosition("message:delivered", b, 121)
}

// CASES 33 on two nodes: also who comes back on another node has not been away.
func TestABlipOnAnotherNodeIsNoChangeOfPresence(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	a, b := c.nodes[0].page("A"), c.nodes[1].page("B")
	a.open(b)
	online := func() bool {
		return a.must("presence", obj{"userIds": []string{b.user.User.ID}}).Presence[0].Online
	}
	eventually(t, "B is online", online)
	mark, heard := b.Mark(), a.Mark()
	if err := b.Kill(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WaitAfter(testkit.Context(t), mark, "connect", nil); err != nil {
		t.Fatal(err)
	}
	elsewhere := c.nodes[0].page("B")
	if err := b.Disconnect(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	// The last of the two, and then nobody's: that is the first change that A hears.
	<-time.After(4 * time.Second) // longer than the grace: B is still there, on A's node
	if !online() {
		t.Error("B is offline while a device is connected on another node")
	}
	if err := elsewhere.Disconnect(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	h, err := a.WaitAfter(testkit.Context(t), heard, "presence", nil)
	if err != nil {
		t.Fatal(err)
	}
	if state := testkit.Decode[chat.PresenceState](h); state.Online || state.LastSeenAt == nil {
		t.Errorf("the first thing that A hears of B is %+v", state)
	}
}

// mint signs a token of a user by name.
func mint(t testing.TB, name string) string {
	t.Helper()
	token, _, err := auth.NewMinter([]byte(secret), nil).Mint(chat.UserRef(name), name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// CASES 18 with gateways; the adapter's own test does it with 10,000 users.
func TestChannelsGoWithTheirUsers(t *testing.T) {
	t.Parallel()
	const users = 300
	c := newCluster(t, 2)
	a := c.nodes[0].page("A")
	channels := func() int { return len(c.redis.Do("PUBSUB", "CHANNELS", "*").([]any)) }
	base := channels()
	subscriptions := []float64{c.nodes[0].metric("xabar_redis_subscriptions"), c.nodes[1].metric("xabar_redis_subscriptions")}
	var clients []*lightclient.Client
	var names []string
	for i := range users {
		names = append(names, fmt.Sprint("u", i))
		client, err := lightclient.Dial(testkit.Context(t), lightclient.Options{
			URL: c.nodes[i%2].gateway.URL, Auth: obj{"token": mint(t, names[i]), "sync": true},
		})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	group := a.must("conversation:open", obj{"title": "everybody", "memberIds": names}).Conversation
	eventually(t, "every user and the group have channels", func() bool { return channels() >= base+2*users })
	a.send(group.ID, "x1")
	eventually(t, "everybody has it", func() bool {
		return len(a.must("receipts", obj{"conversationId": group.ID, "seq": 1}).Receipts) > 0 && a.view(group.ID).MemberCount == users+1
	})
	var leaving sync.WaitGroup
	for _, client := range clients {
		leaving.Go(client.Close)
	}
	leaving.Wait()
	c.nodes[0].http(t, "DELETE", fmt.Sprintf("/conversations/%s/members/%s", group.ID, a.user.User.ID), a.user.Token, nil, 204)
	eventually(t, "the channels are gone", func() bool {
		return channels() == base && c.nodes[0].metric("xabar_redis_subscriptions") == subscriptions[0] &&
			c.nodes[1].metric("xabar_redis_subscriptions") == subscriptions[1]
	})
}
