package events

import (
	"time"

	"xabar/chat"
)

// Where several nodes store messages of one conversation, their events can
// overtake each other on the way here.
const (
	gapWait   = 250 * time.Millisecond // for a missing seq, before the store is asked
	maxBehind = 1024                   // messages of a conversation that wait behind a gap; then the store is asked at once
	// settled is the age at which a message cannot be on its way any more, not even by
	// an outbox that was taken over after an outage.
	settled = streamIdle
)

// stream is what a worker remembers of a conversation: the last seq that went to
// live sockets. It belongs to the worker.
type stream struct {
	id      chat.ID
	last    int64
	used    time.Time
	behind  map[int64]*chat.MessageStored // messages behind a gap
	since   time.Time                     // when the gap opened
	reading bool                          // the store is being asked
}

func (w *worker) stream(conversation chat.ID) *stream {
	s := w.streams[conversation]
	if s == nil {
		s = &stream{id: conversation}
		w.streams[conversation] = s
	}
	s.used = time.Now()
	return s
}

// messageStored shows a message to the members' sockets here, in rising seq. A
// seq at or below the last one is a repetition (an outbox taken over): it was
// shown already. What a node that runs
// alone has shown is recorded as fanned out.
func (w *worker) messageStored(e *chat.MessageStored, j job) {
	s := w.stream(e.Message.ConversationID)
	if seq := e.Message.Seq; seq > s.last {
		if w.hub.cfg.Cluster && seq > 1 && seq != s.last+1 {
			w.wait(s, e)
		} else {
			w.emitNext(s, e, false)
			w.hub.cfg.Metrics.Shown(j.at.passed())
			w.emitBehind(s)
		}
	}
	if j.foreign {
		return
	}
	if !w.hub.cfg.Cluster {
		w.hub.service.FannedOut(e)
	}
	w.senderHolds(e)
}

// emitNext shows the message that follows in the stream. One that is read from the
// store, late, is not for sockets that came after it.
func (w *worker) emitNext(s *stream, e *chat.MessageStored, late bool) {
	after := s.last
	if after == 0 {
		after = e.Message.Seq - 1
	}
	w.emitMessage(e, after, late)
	s.last = e.Message.Seq
}

// wait keeps a message until those before it have come, or the store says that
// there are none. A stream that begins asks at once: mostly what came before is
// long settled.
func (w *worker) wait(s *stream, e *chat.MessageStored) {
	if s.behind == nil {
		s.behind = map[int64]*chat.MessageStored{}
		s.since = time.Now()
		w.gapped[s] = struct{}{}
	}
	s.behind[e.Message.Seq] = e
	if s.last == 0 || len(s.behind) > maxBehind {
		w.fillGap(s)
	}
}

// emitBehind shows what no longer waits for anything.
func (w *worker) emitBehind(s *stream) {
	for e := s.behind[s.last+1]; e != nil; e = s.behind[s.last+1] {
		delete(s.behind, s.last+1)
		w.emitNext(s, e, false)
	}
	for seq := range s.behind {
		if seq <= s.last {
			delete(s.behind, seq)
		}
	}
	if len(s.behind) == 0 && s.behind != nil {
		s.behind = nil
		delete(w.gapped, s)
	}
	s.since = time.Now()
}

// first is the lowest message behind the gap.
func (s *stream) first() *chat.MessageStored {
	var first *chat.MessageStored
	for _, e := range s.behind {
		if first == nil || e.Message.Seq < first.Message.Seq {
			first = e
		}
	}
	return first
}

// fillGap asks the store for what is missing; rows that are not there are holes.
// Of a stream that begins nothing is known: what was stored lately may be missing
// too, for the sockets that were here by then.
func (w *worker) fillGap(s *stream) {
	if s.reading || len(s.behind) == 0 {
		return
	}
	s.reading = true
	e := s.first()
	r := &repair{
		hub: w.hub, conversation: s.id, kind: e.Kind, members: e.MemberIDs, memberCount: e.MemberCount,
		upTo: e.Message.Seq - 1, since: e.Message.CreatedAt.Add(-settled), done: func(s *stream) { s.reading = false },
	}
	if s.last > 0 {
		r.read(s.last + 1)
	} else {
		r.readBack(r.upTo, 1)
	}
}
