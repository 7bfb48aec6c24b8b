package events

import (
	"context"
	"sync/atomic"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// catchUp brings one socket, of a client that does not sync, what lies beyond its
// user's delivered position in one conversation: windows of chat.PageLimit, the
// next one when the last message of the one before is acknowledged. While it runs the
// conversation's live messages are held back from the socket; they are in the
// store, where its windows find them.
//
// When no acknowledgement comes in time, live messages go on and the catch-up
// rests. Should the acknowledgement come after all, from a client on a slow network,
// it goes on up to the first message that went live: late, but without a hole.
//
// Its fields belong to the conversation's worker.
type catchUp struct {
	hub          *Hub
	c            *client
	conversation chat.ID
	held         int64        // sent up to here
	until        int64        // the first seq that went live while it rested; 0: none
	awaited      atomic.Int64 // the seq whose acknowledgement brings the next window; 0: none
	moved        atomic.Int64 // Unix nanoseconds of the last acknowledgement
}

// catchUpTimeout is how long a catch-up waits for the next acknowledgement before
// it takes the client for one that gives none. It is longer than the timeout of a
// single message, so that the moment of a reconnect does not end it.
func catchUpTimeout(ackTimeout time.Duration) time.Duration { return 2 * ackTimeout }

func (u *catchUp) progress() time.Time { return time.Unix(0, u.moved.Load()) }

// acknowledged is called on the socket's reader.
func (u *catchUp) acknowledged(seq int64) {
	u.moved.Store(time.Now().UnixNano())
	if u.awaited.CompareAndSwap(seq, 0) {
		u.post(func(w *worker) {
			if _, waits := w.catches[u]; waits {
				delete(w.catches, u)
				u.next()
			} else if u.c.resume(u) {
				u.next()
			}
		})
	}
}

func (u *catchUp) post(do func(*worker)) {
	if err := u.hub.post(context.Background(), u.conversation, job{do: do}); err != nil {
		u.hub.log.Debug("a catch-up ends with the hub", u.c.who(), "error", err)
	}
}

// next reads a window in the pool and hands it to the worker.
func (u *catchUp) next() {
	after := u.held
	u.hub.reads.run(func() {
		if u.c.closed.Load() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		page, err := u.hub.service.History(ctx, u.c.caller(), chat.HistoryQuery{
			ConversationID: u.conversation, AfterSeq: &after, Limit: chat.PageLimit,
		})
		var translated [][]byte
		if view := u.c.view; view != nil && err == nil && len(page.Messages) > 0 {
			if translated, err = view.pageArgs(ctx, u.c, u.conversation, page.Messages); translated == nil {
				page = chat.HistoryPage{} // the dialect shows nothing of it
			}
		}
		u.post(func(w *worker) { w.catchUpWindow(u, page, translated, err) })
	})
}

// catchUpWindow sends a window, translated if the client has a dialect. After the last
// one live messages go on.
func (w *worker) catchUpWindow(u *catchUp, page chat.HistoryPage, translated [][]byte, err error) {
	switch {
	case u.c.closed.Load():
		return
	case chat.CodeOf(err) == chat.CodeNotFound: // no longer a member
		w.endCatchUp(u)
		return
	case err != nil:
		// The client comes back by itself, and the catch-up with it.
		w.hub.log.Warn("a catch-up failed; the connection is closed", u.c.who(), "error", err)
		u.c.socket.Conn().Close()
		return
	}
	sent := 0
	for i := range page.Messages {
		var args []byte
		if translated != nil {
			args = translated[i]
		}
		if w.sendCaughtUp(u, &page.Messages[i], args) {
			sent++
		}
	}
	if s := w.streams[u.conversation]; !page.HasMore && (s == nil || s.last <= u.held) {
		w.endCatchUp(u)
		return
	}
	if sent == 0 {
		u.next() // nothing to wait for: what went out live meanwhile comes with the next read
		return
	}
	u.moved.Store(time.Now().UnixNano())
	u.awaited.Store(u.held)
	w.catches[u] = struct{}{}
}

// sendCaughtUp says whether the client was asked to acknowledge the message.
func (w *worker) sendCaughtUp(u *catchUp, m *chat.Message, translated []byte) bool {
	d := w.hub.newDelivery(m, u.held)
	prepared, asks, err := u.prepare(d, m, translated)
	if err != nil {
		w.hub.log.Error("a message could not be encoded", u.c.who(), "conversation", m.ConversationID, "seq", m.Seq, "error", err)
		return false
	}
	u.held = m.Seq
	d.catchUp = u
	if asks {
		d.waiting.Add(1)
		w.hub.pendingAcks.Add(1)
	}
	_, err = u.c.socket.QueuePrepared(prepared)
	if !asks {
		return false
	}
	if err != nil {
		w.hub.pendingAcks.Add(-1)
		d.start(w, 0)
		return false
	}
	d.start(w, 1)
	return true
}

func (u *catchUp) prepare(d *delivery, m *chat.Message, translated []byte) (p *socketio.Prepared, asks bool, err error) {
	if u.c.view == nil {
		p, err = d.prepare(m.AppendJSON(nil))
		return p, true, err
	}
	if p, asks, err = u.c.view.prepareMessage(d, translated); err == nil && asks {
		d.encoded = append(d.encoded, p)
	}
	return p, asks, err
}

// endCatchUp lets live messages through, but those that the catch-up has sent.
func (w *worker) endCatchUp(u *catchUp) {
	s := w.streams[u.conversation]
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if u.until > 0 || s != nil && s.last >= u.held {
		u.c.unhold(u.conversation)
	} else if hold := u.c.held[u.conversation]; hold != nil {
		hold.catching, hold.floor = nil, u.held
	}
}

// restCatchUp lets live messages through while the client owes an acknowledgement.
func (w *worker) restCatchUp(u *catchUp) {
	delete(w.catches, u)
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	hold := u.c.held[u.conversation]
	if hold == nil { // it was let through when the catch-up rested before
		hold = &holdback{}
		u.c.held[u.conversation] = hold
		u.c.holding.Add(1)
	}
	hold.catching, hold.resting, hold.floor = nil, u, u.held
}

// resume goes on with a catch-up that rests. Where something went live meanwhile it
// ends before that, and live messages are not held back again.
func (c *client) resume(u *catchUp) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	hold := c.held[u.conversation]
	if c.closed.Load() || hold == nil || hold.resting != u {
		return false
	}
	hold.resting = nil
	if u.until == 0 {
		hold.catching = u
	}
	return true
}
