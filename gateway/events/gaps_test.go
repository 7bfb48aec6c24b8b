package events

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xabar/chat"
)

// A model of what claims mean: the set of seqs that devices hold beyond the
// position.
func TestGapClaimsAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table gapTable
		table.init()
		key := gapKey{user: chat.NewID(), conversation: chat.NewID()}
		held := map[int64]bool{}
		position := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) {
				after := position + rapid.Int64Range(0, 40).Draw(t, "after")
				upTo := after + rapid.Int64Range(1, 5).Draw(t, "length")
				if !table.keep(key, gapClaim{after: after, upTo: upTo}) {
					t.Skip("beyond the bound")
				}
				for seq := after + 1; seq <= upTo; seq++ {
					held[seq] = true
				}
			},
			"move": func(t *rapid.T) {
				position += rapid.Int64Range(0, 6).Draw(t, "by")
				claim, ok := table.reached(key, position)
				if want := held[position+1]; ok != want {
					t.Fatalf("at %d the table says %v, %+v", position, ok, claim)
				}
				for ok {
					if claim.upTo <= position {
						t.Fatalf("a claim %+v at %d claims nothing", claim, position)
					}
					position = claim.upTo
					claim, ok = table.reached(key, position)
				}
				if held[position+1] {
					t.Fatalf("%d is held, the position stays at %d", position+1, position)
				}
			},
			"": func(t *rapid.T) {
				list := table.claims[key]
				if len(list) > maxGapClaims {
					t.Fatalf("%d claims", len(list))
				}
				if !slices.IsSortedFunc(list, func(a, b gapClaim) int { return int(a.upTo - b.after) }) {
					t.Fatalf("claims overlap: %+v", list)
				}
			},
		})
	})
}

func TestGapTableIsBounded(t *testing.T) {
	var table gapTable
	table.init()
	key := gapKey{user: chat.NewID()}
	for i := range int64(maxGapClaims) {
		if !table.keep(key, gapClaim{after: 10 * i, upTo: 10*i + 1}) {
			t.Fatalf("claim %d was refused", i)
		}
	}
	if table.keep(key, gapClaim{after: 10_000, upTo: 10_001}) {
		t.Error("a claim beyond the bound was kept")
	}
	table.forget(key.user)
	if table.len() != 0 {
		t.Errorf("%d claims are left", table.len())
	}
}
