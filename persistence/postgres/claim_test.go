package postgres

import (
	"testing"

	"pgregory.net/rapid"

	"xabar/chat"
)

// apply is what moveSQL does with a claim.
func (c *claim) apply(delivered, read, lastSeq int64) (int64, int64) {
	delivered = max(delivered, min(c.sure, lastSeq))
	if delivered >= c.after {
		delivered = max(delivered, min(c.upTo, lastSeq))
	}
	return max(delivered, min(c.read, lastSeq)), max(read, min(c.read, lastSeq))
}

// TestClaims: moves said as claims end where the moves one by one would.
func TestClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lastSeq := rapid.Int64Range(0, 12).Draw(t, "lastSeq")
		read := rapid.Int64Range(0, lastSeq).Draw(t, "read")
		delivered := rapid.Int64Range(read, lastSeq).Draw(t, "delivered")
		moves := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *moveItem {
			after := rapid.Int64Range(0, 12).Draw(t, "after")
			m := chat.PositionMove{Kind: chat.Delivered, After: after, UpTo: rapid.Int64Range(after, 14).Draw(t, "upTo")}
			if rapid.Bool().Draw(t, "reads") {
				m = chat.PositionMove{Kind: chat.Read, UpTo: m.UpTo}
			}
			return &moveItem{Req: m}
		}), 1, 8).Draw(t, "moves")

		wantDelivered, wantRead := delivered, read
		for _, it := range moves {
			wantDelivered, wantRead = step(wantDelivered, wantRead, it.Req, lastSeq)
		}
		gotDelivered, gotRead := delivered, read
		said := 0
		for _, round := range rounds(moves) {
			if len(round) != 1 {
				t.Fatalf("one member has %d claims in a round", len(round))
			}
			c := round[0]
			gotDelivered, gotRead = c.apply(gotDelivered, gotRead, lastSeq)
			said += len(c.moves)
		}
		if said != len(moves) || gotDelivered != wantDelivered || gotRead != wantRead {
			t.Fatalf("%d of %d moves; got %d, %d, want %d, %d", said, len(moves), gotDelivered, gotRead, wantDelivered, wantRead)
		}
	})
}
