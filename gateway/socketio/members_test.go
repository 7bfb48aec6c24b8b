package socketio

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A memberList is checked against a plain set, its snapshots against copies of that set.
func TestMemberListModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l memberList
		model := map[*Socket]*member{}
		var order []*Socket
		type seen struct {
			snap snapshot
			want map[*Socket]bool
		}
		var snaps []seen
		steps := rapid.IntRange(1, 1500).Draw(t, "steps")
		ops := rapid.SliceOfN(rapid.IntRange(0, 99), steps, steps).Draw(t, "ops")
		for i, op := range ops {
			switch {
			case op < 55:
				s := new(Socket)
				m := &member{socket: s}
				l.add(m)
				model[s], order = m, append(order, s)
			case op < 95 && len(order) > 0:
				k := (i * 7919) % len(order)
				s := order[k]
				order = slices.Delete(order, k, k+1)
				l.remove(model[s])
				delete(model, s)
			default:
				want := make(map[*Socket]bool, len(model))
				for s := range model {
					want[s] = true
				}
				snaps = append(snaps, seen{l.snapshot(), want})
			}
		}
		want := make(map[*Socket]bool, len(model))
		for s, m := range model {
			want[s] = true
			if l.dir[m.index/chunkSize].members[m.index%chunkSize].member != m {
				t.Fatal("a member is not where its index says")
			}
		}
		for _, s := range append(snaps, seen{l.snapshot(), want}) {
			got := map[*Socket]bool{}
			s.snap.each(func(x *Socket) bool {
				if got[x] || !s.want[x] {
					t.Fatal("a snapshot shows a socket twice, or one that was not there")
				}
				got[x] = true
				return true
			})
			if len(got) != len(s.want) || s.snap.n != len(got) {
				t.Fatalf("a snapshot shows %d of %d members", len(got), len(s.want))
			}
		}
	})
}
