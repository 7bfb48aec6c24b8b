package postgres

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xabar/chat"
)

// laterQueue is the queue behind laterMoves: it moves one member's position.
type laterQueue struct {
	mu        sync.Mutex // guards what follows
	moves     []chat.PositionMove
	delivered int64
}

func (q *laterQueue) enqueue(_ context.Context, m chat.PositionMove, done func(chat.PositionResult, error)) {
	q.mu.Lock()
	q.moves = append(q.moves, m)
	r := chat.PositionResult{OldDelivered: q.delivered, NewDelivered: q.delivered}
	if m.After <= q.delivered {
		r.NewDelivered = max(q.delivered, m.UpTo)
	}
	q.delivered = r.NewDelivered
	q.mu.Unlock()
	done(r, nil)
}

func (q *laterQueue) written() []chat.PositionMove {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.moves)
}

func TestLaterMovesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		user, conversation := chat.NewID(), chat.NewID()
		q := &laterQueue{delivered: 4}
		l := newLaterMoves(q.enqueue)
		var results []chat.PositionResult
		add := func(after, upTo int64) bool {
			move := chat.PositionMove{Kind: chat.Delivered, UserID: user, ConversationID: conversation, After: after, UpTo: upTo}
			return l.add(t.Context(), move, func(r chat.PositionResult, err error) {
				if err != nil {
					t.Error(err)
				}
				results = append(results, r)
			})
		}
		for _, m := range [][2]int64{{5, 6}, {6, 7}, {4, 5}} { // in any order, as devices acknowledge
			if !add(m[0], m[1]) {
				t.Errorf("%v is not kept", m)
			}
		}
		if add(9, 10) {
			t.Error("what begins beyond a gap is kept with what is before it")
		}
		if moves := q.written(); len(moves) > 0 {
			t.Errorf("%v was written at once", moves)
		}
		time.Sleep(moveGather)
		synctest.Wait()
		if moves := q.written(); len(moves) != 1 || moves[0].After != 4 || moves[0].UpTo != 7 {
			t.Fatalf("%+v was written", moves)
		}
		want := []chat.PositionResult{{OldDelivered: 4, NewDelivered: 7}, {OldDelivered: 7, NewDelivered: 7}, {OldDelivered: 7, NewDelivered: 7}}
		if !slices.EqualFunc(results, want, func(a, b chat.PositionResult) bool {
			return a.OldDelivered == b.OldDelivered && a.NewDelivered == b.NewDelivered
		}) {
			t.Errorf("answered were %+v", results)
		}
		before := time.Now()
		if !add(7, 8) {
			t.Error("nothing is kept after the first time")
		}
		l.hurry(chat.NewID())
		if q.delivered != 7 {
			t.Error("another user's device has left, and the move was written")
		}
		l.hurry(user)
		if q.delivered != 8 {
			t.Errorf("the device has left, and the position is at %d", q.delivered)
		}
		if !add(8, 9) {
			t.Error("nothing is kept after the device has left")
		}
		l.close()
		if q.delivered != 9 || time.Since(before) != 0 {
			t.Errorf("closing left the position at %d after %v", q.delivered, time.Since(before))
		}
		if add(9, 10) {
			t.Error("something is kept after the end")
		}
	})
}

func TestOnlyDeliveriesAreKeptForLater(t *testing.T) {
	t.Parallel()
	l := newLaterMoves((&laterQueue{}).enqueue)
	defer l.close()
	move := chat.PositionMove{Kind: chat.Read, UserID: chat.NewID(), ConversationID: chat.NewID(), UpTo: 3}
	if l.add(t.Context(), move, func(chat.PositionResult, error) {}) {
		t.Error("a read position waits")
	}
}
