package sqlite

import (
	"context"
	"sync"
	"time"

	"xabar/chat"
)

// Removals of outbox events are nobody's to wait for: they ride on the next
// batch, and make one of their own only after closeDelay.
const (
	closeDelay  = 100 * time.Millisecond
	closesBound = 16384
	closesBatch = 1024
)

// closing is an outbox event to remove, and who is to be looked at again because of
// it.
type closing struct {
	key chat.OutboxKey
	due []chat.Due
}

// closes are the outbox events to remove.
type closes struct {
	wake chan struct{} // capacity 1
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex // guards keys
	keys []closing
}

// newCloses starts the goroutine that calls flush when removals have waited for
// closeDelay; close ends it.
func newCloses(flush func()) *closes {
	c := &closes{wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go c.run(flush)
	return c
}

func (c *closes) run(flush func()) {
	defer close(c.done)
	timer := time.NewTimer(closeDelay)
	defer timer.Stop()
	timer.Stop()
	armed := false
	for {
		select {
		case <-c.wake:
			if !armed { // later ones don't put the first one off
				timer.Reset(closeDelay)
			}
			armed = true
		case <-timer.C:
			armed = false
			flush()
		case <-c.stop:
			flush()
			return
		}
	}
}

func (c *closes) close() {
	close(c.stop)
	<-c.done
}

// add keeps the keys; past the bound they are dropped, and the events are fanned
// out again by whoever claims them.
func (c *closes) add(keys ...closing) {
	if len(keys) == 0 {
		return
	}
	c.mu.Lock()
	c.keys = append(c.keys, keys[:min(len(keys), closesBound-len(c.keys))]...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// putBack keeps what a failed batch has not removed.
func (c *closes) putBack(keys []closing) { c.add(keys...) }

// take gives some of the keys to a batch.
func (c *closes) take() []closing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) <= closesBatch {
		keys := c.keys
		c.keys = nil
		return keys
	}
	keys := append([]closing(nil), c.keys[:closesBatch]...)
	c.keys = append(c.keys[:0], c.keys[closesBatch:]...)
	return keys
}

func (c *closes) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.keys)
}

// flushCloses runs batches without anything else until the removals that wait are
// taken. What fails is put back, and tried again after closeDelay.
func (s *Store) flushCloses() {
	for s.closes.waiting() > 0 {
		if err := s.change(background, func(*tx) error { return nil }); err != nil {
			return // runBatch has logged why
		}
	}
}

// CloseOutbox queues the removal.
func (s *Store) CloseOutbox(key chat.OutboxKey, due ...chat.Due) { s.closes.add(closing{key, due}) }

func (t *tx) closeOutbox(c closing) error {
	for _, due := range c.due {
		if _, err := t.schedule(due); err != nil {
			return err
		}
	}
	return t.run("DELETE FROM outbox WHERE conversation_id = ? AND seq = ?", c.key.ConversationID[:], c.key.Seq)
}

// A lease that ends later than a fresh one would was made before the clock was
// stepped back: it counts as run out.
const claimQuery = `
SELECT ` + messageColumns + `, c.kind, c.member_count, c.user_low, c.user_high
FROM outbox o
JOIN messages msg ON msg.conversation_id = o.conversation_id AND msg.seq = o.seq
JOIN conversations c ON c.id = o.conversation_id
WHERE o.leased_until <= ?1 OR o.leased_until > ?2
ORDER BY o.created_at, o.conversation_id, o.seq
LIMIT ?3`

// ClaimOutbox leases events to the caller.
func (s *Store) ClaimOutbox(ctx context.Context, limit int) ([]chat.OutboxEvent, error) {
	return write(ctx, s, func(t *tx) ([]chat.OutboxEvent, error) {
		events, err := all(background, t, scanOutboxEvent, claimQuery, t.millis(), t.lease(), max(limit, 0))
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			err := t.run("UPDATE outbox SET leased_until = ? WHERE conversation_id = ? AND seq = ?",
				t.lease(), e.Message.ConversationID[:], e.Message.Seq)
			if err != nil {
				return nil, err
			}
		}
		return events, nil
	})
}

func scanOutboxEvent(row scanner) (e chat.OutboxEvent, err error) {
	var m messageRow
	var pair pairRow
	err = row.Scan(append(m.dest(), &e.Kind, &e.MemberCount, &pair.low, &pair.high)...)
	e.Message, e.MemberIDs = m.message(), pair.ids()
	return e, err
}
