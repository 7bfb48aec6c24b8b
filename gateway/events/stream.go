package events

import (
	"context"
	"time"

	"xabar/chat"
)

// Where several nodes store messages of one conversation, their events can
// overtake each other on the way here.
const (
	gapWait   = 250 * time.Millisecond // for a missing seq, before the store is asked
	maxBehind = 1024                   // messages of a conversation that wait behind a gap; then the store is asked at once
	// settled is the age at which a message is no longer on its way: a conversation
	// whose last message is older can go on without a look at what came before.
	settled = time.Second
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
func (w *worker) messageStored(e *chat.MessageStored, foreign bool) {
	s := w.stream(e.Message.ConversationID)
	if seq := e.Message.Seq; seq > s.last {
		if w.hub.cfg.Cluster && seq > 1 && seq != s.last+1 {
			w.wait(s, e)
		} else {
			w.emitNext(s, e)
			w.emitBehind(s)
		}
	}
	if foreign {
		return
	}
	if !w.hub.cfg.Cluster {
		w.hub.service.FannedOut(e)
	}
	w.senderHolds(e)
}

// emitNext shows the message that follows in the stream.
func (w *worker) emitNext(s *stream, e *chat.MessageStored) {
	after := s.last
	if after == 0 {
		after = e.Message.Seq - 1
	}
	w.emitMessage(e, after)
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
		w.emitNext(s, e)
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
func (w *worker) fillGap(s *stream) {
	if s.reading || len(s.behind) == 0 {
		return
	}
	s.reading = true
	h, e := w.hub, s.first()
	from, upTo := s.last+1, e.Message.Seq-1
	begins := s.last == 0
	if begins {
		from = max(1, e.Message.Seq-chat.PageLimit)
	} else if upTo-from >= chat.PageLimit {
		upTo = from + chat.PageLimit - 1
	}
	h.reads.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		messages, err := h.service.MessagesBetween(ctx, s.id, from, upTo)
		j := job{do: func(w *worker) { w.gapFilled(s, e, begins, upTo, messages, err) }}
		if err := h.post(context.Background(), s.id, j); err != nil {
			h.log.Debug("a gap stays with the end of the hub", "error", err)
		}
	})
}

func (w *worker) gapFilled(s *stream, e *chat.MessageStored, begins bool, upTo int64, messages []chat.Message, err error) {
	s.reading = false
	if err != nil {
		w.hub.log.Warn("a gap could not be read; it is tried again", "conversation", s.id, "error", err)
		s.since = time.Now()
		return
	}
	if begins && s.last == 0 {
		messages = onTheirWay(messages, e.Message.CreatedAt.Time)
		if len(messages) > 0 {
			s.last = messages[0].Seq - 1
		} else {
			s.last = upTo
		}
		if len(messages) > 0 && time.Since(s.since) < gapWait {
			return // they come by themselves, or the next look finds them
		}
	}
	for i := range messages {
		if m := &messages[i]; m.Seq > s.last {
			w.emitNext(s, &chat.MessageStored{
				Message: *m, Kind: e.Kind, MemberIDs: e.MemberIDs, MemberCount: e.MemberCount, JSON: m.AppendJSON(nil),
			})
		}
	}
	s.last = max(s.last, upTo)
	w.emitBehind(s)
}

// onTheirWay are the messages just before the one of that time which may not have
// arrived here yet: the newest ones that are not settled.
func onTheirWay(messages []chat.Message, at time.Time) []chat.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		if at.Sub(messages[i].CreatedAt.Time) > settled {
			return messages[i+1:]
		}
	}
	return messages
}
