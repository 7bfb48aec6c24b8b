package events

import (
	"context"
	"time"

	"xabar/chat"
)

// job is one step of a conversation's delivery: an event that was stored, or
// something that a catch-up has to do in order with them.
type job struct {
	event   chat.Event
	foreign bool // another node stored it
	at      moment
	do      func(*worker)
}

// worker delivers the conversations of its shard, one job after the other. Its
// fields belong to its goroutine.
type worker struct {
	hub     *Hub
	jobs    chan job
	streams map[chat.ID]*stream
	gapped  map[*stream]struct{}      // those that hold messages behind a gap
	pending deliveryQueue             // deliveries whose acknowledgements may still come in time
	late    deliveryQueue             // and those for which they come late, but count
	catches map[*catchUp]struct{}     // catch-ups that wait for an acknowledgement
	telling map[chat.ID]*receiptQueue // conversations whose receipts are on their way to dialects
	swept   time.Time                 // when idle streams were last looked for
}

func newWorker(h *Hub) *worker {
	return &worker{
		hub: h, jobs: make(chan job, workerQueue),
		streams: map[chat.ID]*stream{}, gapped: map[*stream]struct{}{}, catches: map[*catchUp]struct{}{},
		telling: map[chat.ID]*receiptQueue{},
	}
}

// run handles jobs until ctx ends. The timer runs only while something can
// expire, so that an idle node sleeps.
func (w *worker) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	armed := false
	for {
		select {
		case <-ctx.Done():
			w.close()
			return
		case j := <-w.jobs:
			w.handle(j)
			w.handleMore()
		case now := <-timer.C:
			armed = false
			w.expire(now)
		}
		if !armed {
			armed = w.arm(timer)
		}
	}
}

// handleMore handles jobs that wait already: to look only there is cheaper than run's select. It
// returns now and then, so that a busy worker does not forget the time.
func (w *worker) handleMore() {
	for range 64 {
		select {
		case j := <-w.jobs:
			w.handle(j)
		default:
			return
		}
	}
}

func (w *worker) handle(j job) {
	if j.do != nil {
		j.do(w)
		return
	}
	switch e := j.event.(type) {
	case *chat.MessageStored:
		w.messageStored(e, j)
	case *chat.PositionMoved:
		w.positionMoved(e)
	case chat.ConversationChanged:
		w.conversationChanged(&e)
	}
}

// arm sets the timer for what can expire next, if anything can.
func (w *worker) arm(timer *time.Timer) bool {
	switch {
	case len(w.gapped) > 0:
		timer.Reset(gapWait / 5)
	case w.pending.len() > 0 || len(w.catches) > 0:
		timer.Reset(w.hub.cfg.AckTimeout / 4)
	case w.late.len() > 0 || len(w.streams) > 0:
		timer.Reset(lateSweep)
	default:
		return false
	}
	return true
}

// expire forgets what has had its time.
func (w *worker) expire(now time.Time) {
	cfg := &w.hub.cfg
	for d := w.pending.front(); d != nil && now.Sub(d.sent) >= cfg.AckTimeout; d = w.pending.front() {
		w.pending.pop()
		n := d.timeOut()
		w.hub.cfg.Metrics.Acks(d.asked-n, 0, 0)
		if d.missing = n; n > 0 {
			w.hub.pendingAcks.Add(-n)
			w.hub.service.Unacknowledged(d.conversation, d.seq)
		}
		if d.trace != nil {
			d.trace.over()
		}
		if d.complete() {
			d.release()
		} else {
			w.late.push(d)
		}
	}
	limit := max(1, cfg.MaxLateAcks/cfg.Workers)
	for d := w.late.front(); d != nil && (now.Sub(d.sent) >= cfg.LateAcks || w.late.len() > limit || d.complete()); d = w.late.front() {
		w.late.pop()
		late := min(d.lateAcks(), d.missing)
		w.hub.cfg.Metrics.Acks(0, late, d.missing-late)
		d.release()
	}
	for s := range w.gapped {
		if now.Sub(s.since) >= gapWait {
			w.fillGap(s)
		}
	}
	for c := range w.catches {
		if now.Sub(c.progress()) >= catchUpTimeout(cfg.AckTimeout) {
			w.restCatchUp(c)
		}
	}
	if now.Sub(w.swept) >= streamIdle {
		w.swept = now
		for id, s := range w.streams {
			if now.Sub(s.used) >= streamIdle && len(s.behind) == 0 {
				delete(w.streams, id)
			}
		}
	}
}

func (w *worker) close() {
	for _, q := range []*deliveryQueue{&w.pending, &w.late} {
		for d := q.front(); d != nil; d = q.front() {
			q.pop()
			if d.trace != nil {
				d.trace.over()
			}
			d.release()
		}
	}
}
