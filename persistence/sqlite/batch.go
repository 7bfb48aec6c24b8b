package sqlite

import (
	"context"
	"errors"

	"xabar/chat"
	"xabar/persistence/groupcommit"
)

// request is one write: exactly one field is set.
type request struct {
	send *chat.SendMessage
	move *chat.PositionMove
	call func(*tx) (any, error) // any other change
}

// result has the field that goes with the request's.
type result struct {
	send  chat.SendResult
	move  chat.PositionResult
	value any
}

type item = groupcommit.Item[request, result]

// runBatch is the batcher's exec: one transaction for all.
func (s *Store) runBatch(_ context.Context, _ int, batch []*item) {
	closes := s.closes.take()
	err := s.commit(batch, closes)
	if err == nil {
		return
	}
	s.closes.putBack(closes)
	err = translate(background, err)
	s.log.Error("sqlite: a batch was not committed", "size", len(batch), "error", err)
	for _, it := range batch {
		it.Res, it.Err = result{}, err
	}
}

// commit runs the batch in one transaction. Its error is the whole batch's; the
// items' own are in the items.
func (s *Store) commit(batch []*item, closes []closing) error {
	// Immediate: the write lock comes first, so that nothing that the batch reads
	// can be changed by another process before it writes.
	if err := s.writer.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	t := &tx{writer: s.writer, now: chat.At(s.clock.Now())}
	if err := t.runAll(batch, closes); err != nil {
		return errors.Join(err, s.writer.run("ROLLBACK"))
	}
	if err := s.writer.run("COMMIT"); err != nil {
		return errors.Join(err, s.writer.run("ROLLBACK"))
	}
	return nil
}

// runAll runs positions first, so that a device's receipt counts for the answer
// that follows it in the same batch, then the rest in order.
func (t *tx) runAll(batch []*item, closes []closing) error {
	for _, c := range closes {
		if err := t.closeOutbox(c); err != nil {
			return err
		}
	}
	if err := t.moveAll(batch); err != nil {
		return err
	}
	for _, it := range batch {
		if it.Req.move != nil {
			continue
		}
		err := t.alone(func() (err error) {
			if it.Req.send != nil {
				it.Res.send, err = t.send(it.Req.send)
			} else {
				it.Res.value, err = it.Req.call(t)
			}
			return err
		})
		if err != nil && breaksBatch(err) {
			return err
		}
		if err != nil {
			it.Res, it.Err = result{}, translate(background, err)
		}
	}
	return nil
}

// write runs a change in the next batch and waits for it. The change returns its
// answer instead of setting variables: after a timeout it may still run.
func write[T any](ctx context.Context, s *Store, change func(*tx) (T, error)) (T, error) {
	type answer struct {
		value any
		err   error
	}
	answered := make(chan answer, 1)
	s.batcher.Enqueue(ctx, 0, request{call: func(t *tx) (any, error) { return change(t) }},
		func(res result, err error) { answered <- answer{res.value, err} })
	a := <-answered
	if a.err != nil {
		var none T
		return none, a.err
	}
	return a.value.(T), nil
}
