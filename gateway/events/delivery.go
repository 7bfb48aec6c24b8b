package events

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// delivery is a message on its way to sockets of this node: one record, however
// many they are. It is the sink of their acknowledgements.
type delivery struct {
	hub          *Hub
	conversation chat.ID
	after, seq   int64                 // what an acknowledgement claims: after < seq's <= seq
	members      int                   // of the conversation; 0 if not known
	encoded      []*socketio.Prepared  // the standard event's, and each dialect's
	standard     [1]*socketio.Prepared // where encoded begins: mostly there is no other
	sent         time.Time
	waiting      atomic.Int64 // acknowledgements that may still come in time; timedOut after the time
	catchUp      *catchUp     // the catch-up that it is part of, if any
	trace        *emission    // nil: not recorded
	asked        int64        // of the worker: acknowledgements that it asked for
	missing      int64        // of the worker: those that had not come when their time was over

	mu    sync.Mutex // guards the fields below
	acked []*client  // who has acknowledged; not kept beyond maxTracked sockets
	few   [2]*client // where acked begins
	total int
}

// clockSkew is how far the clocks of nodes may differ before a socket misses a message
// that was read late, or hears one again that it was caught up with.
const clockSkew = time.Second

const (
	timedOut = -1 << 40
	// maxTracked is the number of sockets up to which a delivery knows that all have
	// acknowledged and can be forgotten early.
	maxTracked = 8
)

func (h *Hub) newDelivery(m *chat.Message, after int64) *delivery {
	d := &delivery{hub: h, conversation: m.ConversationID, after: after, seq: m.Seq, sent: time.Now()}
	d.encoded, d.acked = d.standard[:0], d.few[:0]
	return d
}

// prepare encodes the standard event for any number of sockets.
func (d *delivery) prepare(raw []byte) (*socketio.Prepared, error) {
	prepared, err := d.hub.ns.PrepareRaw("message", d, raw)
	if err != nil {
		return nil, err
	}
	d.encoded = append(d.encoded, prepared)
	return prepared, nil
}

// release forgets the acknowledgements.
func (d *delivery) release() {
	for _, prepared := range d.encoded {
		prepared.Release()
	}
}

// Ack implements socketio.AckSink on the acknowledging socket's reader. A client
// can claim only for its own user, so a forged acknowledgement harms nobody else.
func (d *delivery) Ack(s *socketio.Socket, _ socketio.Args) {
	c := clientOf(s)
	if c == nil || !d.first(c) {
		return
	}
	if d.waiting.Add(-1) >= 0 {
		d.hub.pendingAcks.Add(-1)
	}
	ctx := context.Background()
	if d.trace != nil {
		ctx = d.trace.acknowledged(ctx, c)
	}
	d.hub.claim(ctx, c, chat.Acknowledgement{
		UserID: c.user.ID, ConversationID: d.conversation, After: d.after, UpTo: d.seq,
		Socket: s.ID(), MemberCount: d.members,
	})
	if d.catchUp != nil {
		d.catchUp.acknowledged(d.seq)
	}
}

// first says whether the client has not acknowledged it before, as far as that is
// kept. A repeat claims nothing new, so beyond that it does no harm.
func (d *delivery) first(c *client) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.acked) >= maxTracked {
		return true
	}
	for _, other := range d.acked {
		if other == c {
			return false
		}
	}
	d.acked = append(d.acked, c)
	d.hub.cfg.Metrics.Acknowledged(time.Since(d.sent))
	return true
}

// complete says that every socket has acknowledged.
func (d *delivery) complete() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total <= maxTracked && len(d.acked) >= d.total
}

// timeOut ends the time for acknowledgements and returns how many did not come.
func (d *delivery) timeOut() int64 { return max(0, d.waiting.Swap(timedOut)) }

// lateAcks is how many came after timeOut.
func (d *delivery) lateAcks() int64 { return timedOut - d.waiting.Load() }

// start is called once n sockets were asked to acknowledge the message.
func (d *delivery) start(w *worker, n int) {
	if n == 0 {
		d.release()
		return
	}
	d.asked = int64(n)
	d.mu.Lock()
	d.total = n
	d.mu.Unlock()
	w.pending.push(d)
}

func (w *worker) emitMessage(e *chat.MessageStored, after int64, late bool) {
	h, m := w.hub, &e.Message
	if e.MemberIDs == nil {
		h.noteMissed(m.ConversationID, m.Seq)
	}
	if h.endsTyping {
		h.endTyping(m.ConversationID, m.SenderID, e.MemberIDs)
	}
	if e.MemberIDs != nil {
		w.emitToPair(e, after, late)
	} else {
		w.emitToGroup(e, after, late)
	}
}

func (w *worker) emitToPair(e *chat.MessageStored, after int64, late bool) {
	f := fanOut{w: w, e: e, after: after, late: late}
	for _, member := range e.MemberIDs {
		for _, c := range w.hub.users.get(member) {
			f.to(c)
		}
	}
	f.end()
}

func (w *worker) emitToGroup(e *chat.MessageStored, after int64, late bool) {
	f := fanOut{w: w, e: e, after: after, late: late, many: true}
	opts := socketio.BroadcastOptions{Rooms: []string{conversationRoom(e.Message.ConversationID)}}
	w.hub.rangeRooms(&opts, f.to)
	f.end()
}

// fanOut sends one message to one socket after the other. It encodes when the
// first one takes it: most nodes hold no member of most conversations.
type fanOut struct {
	w     *worker
	e     *chat.MessageStored
	after int64
	late  bool // read from the store
	many  bool
	d     *delivery

	standard *socketio.Prepared
	broken   bool // it could not be encoded
	in       inViews
	shown    int // sockets that it went to
	asked    int // and that were asked to acknowledge it
}

func (f *fanOut) to(c *client) {
	h, m := f.w.hub, &f.e.Message
	if m.SenderID != c.user.ID {
		h.unread.changed(c.user.ID)
	}
	if f.late && (c.since.After(m.CreatedAt.Add(clockSkew)) || c.holds(m.ConversationID, m.Seq)) {
		return
	}
	if c.socket.ID() == f.e.OriginSocket || !c.admit(m.ConversationID, m.Seq) {
		return
	}
	if c.view == nil {
		f.send(c, f.inStandard(), true)
	} else {
		prepared, asks := f.inView(c)
		f.send(c, prepared, asks)
	}
}

// end is called when all sockets have had their turn.
func (f *fanOut) end() {
	f.w.hub.cfg.Metrics.FannedOut(f.shown)
	if f.d == nil {
		return
	}
	if f.d.trace != nil {
		f.d.trace.emitted()
	}
	f.d.start(f.w, f.asked)
}

// delivery is made when the first socket takes the message.
func (f *fanOut) delivery() *delivery {
	if f.d == nil {
		f.d = f.w.hub.newDelivery(&f.e.Message, f.after)
		f.d.members = f.e.MemberCount
		f.d.trace = f.w.hub.traceEmission(f.e)
	}
	return f.d
}

func (f *fanOut) inStandard() *socketio.Prepared {
	if f.standard == nil && !f.broken {
		var err error
		if f.standard, err = f.delivery().prepare(f.e.JSON); err != nil {
			f.broken = true
			m := &f.e.Message
			f.w.hub.log.Error("a message could not be encoded", "conversation", m.ConversationID, "seq", m.Seq, "error", err)
		}
	}
	return f.standard
}

func (f *fanOut) send(c *client, prepared *socketio.Prepared, asks bool) {
	if prepared == nil {
		return
	}
	if asks { // counted before it can be acknowledged
		f.d.waiting.Add(1)
		f.w.hub.pendingAcks.Add(1)
	}
	if f.d.trace != nil {
		f.d.trace.emitting(c, asks)
	}
	send := c.socket.EmitPrepared
	if f.many {
		send = c.socket.QueuePrepared
	}
	_, err := send(prepared)
	if err == nil {
		f.shown++
	}
	switch {
	case asks && err != nil:
		// The socket is closed, or is being closed as slow: its catch-up brings the message.
		f.d.waiting.Add(-1)
		f.w.hub.pendingAcks.Add(-1)
		if f.d.trace != nil {
			f.d.trace.refused(c)
		}
	case asks:
		f.asked++
	}
}

// claim moves the user's delivered position over what a device has acknowledged,
// or keeps the claim until the gap before it is closed.
func (h *Hub) claim(ctx context.Context, c *client, a chat.Acknowledgement) {
	h.service.Acknowledge(ctx, a, func(r chat.PositionResult, err error) {
		switch {
		case err != nil && chat.AsError(err).Code.Retryable():
			h.gaps.postpone(c, a.ConversationID, a.After, a.UpTo)
		case err != nil:
			h.log.Debug("an acknowledgement claims nothing", c.who(), "error", err)
		case r.NewDelivered < a.After:
			h.gaps.add(c, a.ConversationID, a.After, a.UpTo)
		}
	})
}

// senderHolds keeps the sender's claim on its own message if there is a gap
// before it.
func (w *worker) senderHolds(e *chat.MessageStored) {
	m := &e.Message
	if e.OriginSocket == "" || e.Sender.NewDelivered >= m.Seq {
		return
	}
	for _, c := range w.hub.users.get(m.SenderID) {
		if c.socket.ID() == e.OriginSocket {
			w.hub.gaps.add(c, m.ConversationID, m.Seq-1, m.Seq)
			return
		}
	}
}

// deliveryQueue is first in, first out: deliveries in the order of their sending.
type deliveryQueue struct {
	items []*delivery
	head  int
}

func (q *deliveryQueue) len() int { return len(q.items) - q.head }

func (q *deliveryQueue) push(d *delivery) { q.items = append(q.items, d) }

func (q *deliveryQueue) front() *delivery {
	if q.len() == 0 {
		return nil
	}
	return q.items[q.head]
}

func (q *deliveryQueue) pop() {
	q.items[q.head] = nil
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = nil, 0
	case q.head > 1024 && q.head > len(q.items)/2:
		q.items = append(make([]*delivery, 0, q.len()), q.items[q.head:]...)
		q.head = 0
	}
}
