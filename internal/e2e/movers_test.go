package e2e

import (
	"context"
	"testing"
	"time"

	"xabar/internal/testkit"
	"xabar/rooms"
)

// movers are two users who leave and come while something is broken, and those who
// should know of it: one on each node.
type movers struct {
	leaves, comes *page
	watchers      []*page
	present       []string // ids of everybody else
}

// newMovers makes one more group of everybody, so that all may see each other.
func (b *broken) newMovers() *movers {
	b.t.Helper()
	m := &movers{leaves: b.nodes[2].page("leaves"), comes: b.nodes[2].page("comes")}
	for i, node := range b.nodes {
		m.watchers = append(m.watchers, node.page("watcher"+string(rune('0'+i))))
	}
	ids := []string{m.leaves.user.User.ID, m.comes.user.User.ID}
	for _, k := range b.talks {
		m.present = append(m.present, k.sender.user.User.ID)
		for _, p := range k.devices() {
			if p != k.laptop {
				m.present = append(m.present, p.user.User.ID)
			}
		}
	}
	for _, p := range m.watchers[1:] {
		ids = append(ids, p.user.User.ID)
	}
	m.watchers[0].must("conversation:open", obj{"title": "everybody", "memberIds": append(ids, m.present...)})
	if err := m.comes.Disconnect(testkit.Context(b.t)); err != nil {
		b.t.Fatal(err)
	}
	eventually(b.t, "who will come is not there yet", func() bool { return m.wrong(false) == "" })
	return m
}

// move has one leave and one come, on a node whose process is never broken.
func (m *movers) move(t *testing.T, ctx context.Context) {
	if err := m.leaves.Disconnect(ctx); err != nil {
		t.Errorf("leave: %v", err)
	}
	if err := m.comes.Connect(ctx); err != nil {
		t.Errorf("come: %v", err)
	}
}

// check waits until everybody knows who is there, which is within the TTL, and the
// moment that a leave has to be no blip.
func (m *movers) check(b *broken) {
	b.t.Helper()
	started, wrong := time.Now(), ""
	eventually(b.t, "everybody knows who is there", func() bool {
		wrong = m.wrong(true)
		return wrong == "" || time.Since(started) > presenceTTL+rooms.PresenceGrace
	})
	if wrong != "" {
		b.t.Errorf("after %v %s", time.Since(started).Round(time.Millisecond), wrong)
	}
}

// wrong says who is told what is not so; "" if all is well.
func (m *movers) wrong(moved bool) string {
	leaves, comes := m.leaves.user.User.ID, m.comes.user.User.ID
	for _, w := range m.watchers {
		for _, p := range w.must("presence", obj{"userIds": append([]string{leaves, comes}, m.present...)}).Presence {
			want := true
			switch p.UserID {
			case leaves:
				want = !moved
			case comes:
				want = moved
			}
			if p.Online != want {
				return w.user.User.Name + " is told of " + p.UserID + " what is not so"
			}
		}
	}
	return ""
}
