package chat

import (
	"context"
	"time"
)

// Maintenance is what operators do to a Store from outside the gateway, while it
// runs. Stores that can are asked for by this interface.
type Maintenance interface {
	// Prune deletes up to limit messages that were created before the given time,
	// the oldest of each conversation first, in short transactions. Seqs and positions
	// stay: what is gone is a hole. It looks at a bounded number of conversations, from
	// the cursor on ("" is the beginning), and returns how many messages it deleted
	// and where to go on; "" when it has seen all. Errors: invalid_argument (cursor).
	Prune(ctx context.Context, before time.Time, cursor string, limit int) (deleted int, next string, err error)
}

// pruneStep is how many messages one step of PruneAll deletes at most.
const pruneStep = 1000

// PruneAll prunes step by step until everything created before the given time is
// gone, and returns how many messages that were. An interrupted run is simply
// started again. progress, if not nil, hears of every step.
func PruneAll(ctx context.Context, m Maintenance, before time.Time, progress func(deleted int)) (total int, err error) {
	for cursor := ""; ; {
		n, next, err := m.Prune(ctx, before, cursor, pruneStep)
		total += n
		if err != nil {
			return total, err
		}
		if progress != nil && n > 0 {
			progress(n)
		}
		if next == "" {
			return total, nil
		}
		cursor = next
	}
}
