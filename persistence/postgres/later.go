package postgres

import (
	"context"
	"sync"
	"time"

	"xabar/chat"
)

const (
	// moveGather is how long the move of a position that nobody is told of is kept, to be written with
	// what the member acknowledges meanwhile. In a large group a row for each member and message is what
	// a message would cost most. What a crash takes along, the next catch-up brings again.
	moveGather = 500 * time.Millisecond
	// maxLater members' moves are kept; those of others are written at once.
	maxLater = 100_000
	// laterTogether of them are given to the queue before it is waited for: others shall find room there.
	laterTogether = 1024
)

// laterMoves keeps one move for each member. It has no goroutine but its timer's, while there is
// something to write; close waits for that.
type laterMoves struct {
	enqueue func(context.Context, chat.PositionMove, func(chat.PositionResult, error))

	mu      sync.Mutex // guards what follows
	moves   map[memberKey]*laterMove
	of      map[chat.ID][]memberKey // those of a user
	timer   *time.Timer             // runs while there are moves
	closed  bool
	writing sync.WaitGroup // timers that run

	turn sync.Mutex // held while moves are written, not under mu
}

// laterMove is what several moves mean together, and who asked for them.
type laterMove struct {
	ctx  context.Context // the first one's, without its end
	move chat.PositionMove
	done []func(chat.PositionResult, error)
}

func newLaterMoves(enqueue func(context.Context, chat.PositionMove, func(chat.PositionResult, error))) *laterMoves {
	return &laterMoves{enqueue: enqueue, moves: map[memberKey]*laterMove{}, of: map[chat.ID][]memberKey{}}
}

// add keeps a move, or says that it has to be written now: it does not touch what is kept of the
// member, or there is no room.
func (l *laterMoves) add(ctx context.Context, move chat.PositionMove, done func(chat.PositionResult, error)) bool {
	key := keyOf(move)
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.moves[key]; kept != nil {
		return kept.join(move, done)
	}
	if l.closed || len(l.moves) >= maxLater || move.Kind != chat.Delivered {
		return false
	}
	l.moves[key] = &laterMove{context.WithoutCancel(ctx), move, []func(chat.PositionResult, error){done}}
	l.of[move.UserID] = append(l.of[move.UserID], key)
	if l.timer == nil {
		l.writing.Add(1)
		l.timer = time.AfterFunc(moveGather, l.flush)
	}
	return true
}

// join takes a move in that goes on where this one ends, or the other way round.
func (m *laterMove) join(move chat.PositionMove, done func(chat.PositionResult, error)) bool {
	if move.Kind != m.move.Kind || move.After > m.move.UpTo || m.move.After > move.UpTo {
		return false
	}
	m.move.After, m.move.UpTo = min(m.move.After, move.After), max(m.move.UpTo, move.UpTo)
	m.done = append(m.done, done)
	return true
}

// answer tells everybody who asked: the first that the position moved, the others where it is by then.
func (m *laterMove) answer(result chat.PositionResult, err error) {
	for i, done := range m.done {
		if i == 1 {
			result.OldDelivered, result.OldRead, result.At = result.NewDelivered, result.NewRead, chat.Time{}
		}
		done(result, err)
	}
}

func (l *laterMoves) flush() {
	defer l.writing.Done()
	l.write(l.take())
}

func (l *laterMoves) take() map[memberKey]*laterMove {
	l.mu.Lock()
	defer l.mu.Unlock()
	moves := l.moves
	l.moves, l.of, l.timer = map[memberKey]*laterMove{}, map[chat.ID][]memberKey{}, nil
	return moves
}

// hurry writes what is kept of a user. It does not wait for it.
func (l *laterMoves) hurry(user chat.ID) {
	l.mu.Lock()
	keys := l.of[user]
	moves := make([]*laterMove, len(keys))
	for i, key := range keys {
		moves[i] = l.moves[key]
		delete(l.moves, key)
	}
	delete(l.of, user)
	l.mu.Unlock()
	for _, m := range moves {
		l.enqueue(m.ctx, m.move, m.answer)
	}
}

// write returns when all has been answered.
func (l *laterMoves) write(moves map[memberKey]*laterMove) {
	l.turn.Lock()
	defer l.turn.Unlock()
	var waiting sync.WaitGroup
	n := 0
	for _, m := range moves {
		waiting.Add(1)
		l.enqueue(m.ctx, m.move, func(result chat.PositionResult, err error) {
			m.answer(result, err)
			waiting.Done()
		})
		if n++; n%laterTogether == 0 {
			waiting.Wait()
		}
	}
	waiting.Wait()
}

// close writes what is kept; add keeps nothing any more.
func (l *laterMoves) close() {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil && l.timer.Stop() {
		l.writing.Done()
	}
	l.mu.Unlock()
	l.write(l.take())
	l.writing.Wait()
}
