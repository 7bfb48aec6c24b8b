package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"xabar/bench/soak/check"
	"xabar/chat"
	"xabar/internal/sioclient"
)

// errNoAnswer: the connection ended, or was silent for too long.
var errNoAnswer = errors.New("no answer")

// reply is any answer of the server.
type reply struct {
	OK    bool
	Error *struct {
		Code         string
		Message      string
		Retryable    bool
		RetryAfterMs int
	}
	Message       *chat.Message
	Duplicate     bool
	Messages      []chat.Message
	HasMore       bool
	LastSeq       int64
	Conversation  *chat.Conversation
	Conversations json.RawMessage
	UnreadTotal   int64
	Presence      []chat.PresenceState
	NextCursor    *string
}

// obj is a payload.
type obj = map[string]any

// connection is one connection of a device.
type connection struct {
	d      *device
	node   *node
	life   int // of the node
	client *sioclient.Client
	order  *check.Order
	ended  chan struct{} // closed when it has ended
	why    error         // after ended

	mu     sync.Mutex // guards the fields below
	synced bool       // live messages leave no gap behind them
	deaf   chan struct{}
	silent bool // it acknowledges nothing any more
	late   sync.WaitGroup
}

// dial connects the device to the node that it prefers now.
func (d *device) dial(ctx context.Context) (*connection, error) {
	n := d.s.cluster.nodes[d.at]
	c := &connection{d: d, node: n, life: n.child.number(), order: check.NewOrder(d.record, !d.sync), ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	client, err := sioclient.Dial(ctx, sioclient.Options{
		URL: "http://" + n.ways[d.way].Addr, Polling: d.polling, Auth: d.auth, Handler: c,
	})
	if err != nil {
		var refused *sioclient.ConnectError
		if errors.As(err, &refused) {
			d.s.faults.Add(check.Refused, "%s was refused by %s: %s", d.name, n.name, refused.Data)
		}
		return nil, err
	}
	c.client = client
	if c.life == n.child.number() {
		d.s.stats.connectedTo(lifeOf{n.number, c.life})
	} else {
		c.life = -1 // the node was started again meanwhile: which one it is is not known
	}
	return c, nil
}

// close ends the connection without a goodbye.
func (c *connection) close() {
	c.hearAgain()
	c.client.Close()
	c.late.Wait()
}

// sayGoodbye tells the server, and waits a moment for it to close.
func (c *connection) sayGoodbye() {
	if c.client.Goodbye() != nil {
		return // it has ended
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	}
}

// Closed implements sioclient.Handler.
func (c *connection) Closed(_ *sioclient.Client, err error) {
	c.why = err
	close(c.ended)
}

// Event implements sioclient.Handler.
func (c *connection) Event(client *sioclient.Client, name, args []byte, ack int64) {
	c.wait()
	s := c.d.s
	switch string(name) {
	case "message":
		var m chat.Message
		if err := json.Unmarshal(args, &m); err != nil {
			s.faults.Add(check.Different, "%s was given a message that is none: %.200s: %v", c.d.name, args, err)
			return
		}
		c.hear(&m)
		c.acknowledge(client, ack)
	case "message:delivered", "message:read":
		var p position
		if err := json.Unmarshal(args, &p); err != nil {
			s.faults.Add(check.Different, "%s was given a position that is none: %.200s: %v", c.d.name, args, err)
			return
		}
		p.read = string(name) == "message:read"
		s.world.announce(p)
	case "session:closing":
		var closing struct{ Code string }
		if json.Unmarshal(args, &closing) == nil {
			s.stats.count(&s.stats.closings, closing.Code)
		}
	case "session":
		var session struct{ User chat.User }
		if json.Unmarshal(args, &session) == nil {
			c.d.user.learn(session.User.ID)
		}
	}
}

// hear takes a live message.
func (c *connection) hear(m *chat.Message) {
	s := c.d.s
	c.order.Hear(m.ConversationID, m.Seq)
	if c.d.record.Keep(m) {
		s.stats.heard.Add(1)
	} else {
		s.stats.again.Add(1)
	}
	c.mu.Lock()
	synced := c.synced
	c.mu.Unlock()
	if synced {
		c.d.record.Advance(m.ConversationID, m.Seq)
	}
}

// acknowledge answers a message: at once, or now and then later than the server waits.
func (c *connection) acknowledge(client *sioclient.Client, ack int64) {
	if ack < 0 {
		return
	}
	c.mu.Lock()
	silent := c.silent
	c.mu.Unlock()
	if silent {
		return
	}
	send := func() { _ = client.Ack(ack, nil) } // its failure is the connection's end, which is heard of
	if !c.d.tardy.Load() {
		send()
		return
	}
	c.late.Add(1)
	time.AfterFunc(1500*time.Millisecond, func() {
		defer c.late.Done()
		send()
	})
}

// wait holds the reader up while the device is deaf.
func (c *connection) wait() {
	c.mu.Lock()
	deaf := c.deaf
	c.mu.Unlock()
	if deaf != nil {
		<-deaf
	}
}

// isDeaf says that the connection does not read now.
func (c *connection) isDeaf() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaf != nil
}

// stopReading lets what the server writes pile up, until hearAgain.
func (c *connection) stopReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf == nil {
		c.deaf = make(chan struct{})
	}
}

func (c *connection) hearAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf != nil {
		close(c.deaf)
		c.deaf = nil
	}
}

// emit sends an event; the channel gets its answer, if one comes.
func (c *connection) emit(event string, payload any) (<-chan *reply, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	answers := make(chan *reply, 1)
	err = c.client.Emit(event, body, func(args []byte) {
		var r reply
		if err := json.Unmarshal(bytes.Clone(args), &r); err != nil {
			c.d.s.faults.Add(check.Different, "%s: %s was answered %.200s: %v", c.d.name, event, args, err)
			return
		}
		answers <- &r
	})
	return answers, err
}

// await waits for an answer.
func (c *connection) await(ctx context.Context, answers <-chan *reply, patience time.Duration) (*reply, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-answers:
		c.d.s.stats.answeredIn(lifeOf{c.node.number, c.life})
		return r, nil
	case <-c.ended:
		return nil, errNoAnswer
	case <-timer.C:
		return nil, errNoAnswer
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask emits and waits for a success. A refusal that a correct client must not get is a
// fault.
func (c *connection) ask(ctx context.Context, event string, payload any) (*reply, error) {
	answers, err := c.emit(event, payload)
	if err != nil {
		return nil, err
	}
	r, err := c.await(ctx, answers, c.d.patience)
	if err != nil {
		return nil, err
	}
	if !r.OK {
		c.refused(event, r)
		return nil, fmt.Errorf("%s: %w", event, errTold)
	}
	return r, nil
}

// refused looks at an answer that is no success.
func (c *connection) refused(event string, r *reply) {
	s := c.d.s
	if r.Error == nil {
		s.faults.Add(check.Refused, "%s: %s was answered with neither success nor error", c.d.name, event)
		return
	}
	s.stats.count(&s.stats.refusals, event+" "+r.Error.Code)
	if !r.Error.Retryable {
		s.faults.Add(check.Refused, "%s: %s was refused: %s %s", c.d.name, event, r.Error.Code, r.Error.Message)
	}
}
