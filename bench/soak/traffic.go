package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"xabar/bench/soak/check"
	"xabar/chat"
)

// ackTimeout is how long a client waits for the answer to a send before it repeats it.
const ackTimeout = 2 * time.Second

// outgoing is a message that was not answered yet.
type outgoing struct {
	conversation chat.ID
	id, text     string
	replyTo      int64
	attempts     int
	since        time.Time // of the first attempt
}

// What one act of a device is on average, for the rate of messages.
const messagesPerAct = 0.40 + 0.06*burst

const burst = 5

// act does one thing. An error gives the connection up.
func (d *device) act(ctx context.Context, c *connection) error {
	conversation, ok := d.s.world.pick(d.user.index, d.rng)
	if !ok {
		return nil
	}
	switch p := d.rng.Float64(); {
	case p < 0.40:
		d.compose(conversation)
		return d.sendPending(ctx, c)
	case p < 0.46:
		for range burst {
			d.compose(conversation)
		}
		return d.sendPending(ctx, c)
	case p < 0.61:
		d.s.stats.typed.Add(1)
		return c.client.Emit("typing", fmt.Appendf(nil, `{"conversationId":%q}`, conversation), nil)
	case p < 0.71:
		return tolerate(c.readHistory(ctx, conversation))
	case p < 0.88:
		return tolerate(d.read(ctx, c, conversation))
	case p < 0.93:
		return tolerate(d.askPresence(ctx, c))
	case p < 0.933:
		return tolerate(d.open(ctx, c))
	case p < 0.96:
		if last := d.record.Contiguous(conversation); last > 0 {
			return tolerate(c.ask1(ctx, "receipts", obj{"conversationId": conversation, "seq": last}))
		}
		return nil
	case p < 0.97:
		return tolerate(c.ask1(ctx, "members", obj{"conversationId": conversation}))
	case p < 0.98:
		return tolerate(c.ask1(ctx, "conversations", obj{"limit": 10}))
	case p < 0.99: // come back, as a page that is reloaded does
		return errReload
	case d.s.opts.short: // the server finds out only after the time of a ping
		return errReload
	default: // or one that was killed
		return errNoAnswer
	}
}

// errReload: the device gives its connection up, with a goodbye.
var errReload = errors.New("reload")

// errTold: the server has answered, with an error; the connection is well.
var errTold = errors.New("refused")

func tolerate(err error) error {
	if errors.Is(err, errTold) {
		return nil
	}
	return err
}

// ask1 asks where the answer does not matter.
func (c *connection) ask1(ctx context.Context, event string, payload any) error {
	_, err := c.ask(ctx, event, payload)
	return err
}

// compose makes a message. Some are long.
func (d *device) compose(conversation chat.ID) {
	id := fmt.Sprintf("%s-%d", d.name, d.made)
	d.made++
	text := "message " + id + " " + strings.Repeat("salom ", d.rng.IntN(20))
	if d.rng.IntN(25) == 0 {
		text += strings.Repeat("uzun xabar 😀 ", 120)
	}
	o := &outgoing{conversation: conversation, id: id, text: text}
	if last := d.record.Contiguous(conversation); last > 0 && d.rng.IntN(10) == 0 {
		o.replyTo = 1 + d.rng.Int64N(last)
	}
	d.pending = append(d.pending, o)
	d.s.sends.Attempt(d.user.id, conversation, id)
}

// sendPending sends what was not answered, all together, until nothing is left. It gives
// the connection up when nothing is answered for as long as the device is patient.
func (d *device) sendPending(ctx context.Context, c *connection) error {
	heard := time.Now()
	for len(d.pending) > 0 {
		answered, wait, err := d.attempt(ctx, c)
		if err != nil {
			return err
		}
		if answered {
			heard = time.Now()
		}
		if time.Since(heard) > d.patience {
			return errNoAnswer
		}
		if wait > 0 {
			pause(ctx, wait)
		}
	}
	return nil
}

// attempt emits each pending message once and takes the answers. wait is how long the
// server wants to be left alone.
func (d *device) attempt(ctx context.Context, c *connection) (answered bool, wait time.Duration, err error) {
	answers, first, err := d.emitPending(c)
	if err != nil {
		return false, 0, err
	}
	deadline := time.Now().Add(ackTimeout)
	var left []*outgoing
	var seqs []int64
	for i, o := range d.pending {
		r, err := c.await(ctx, answers[i], max(time.Until(deadline), time.Millisecond))
		answered = answered || err == nil
		if err == nil && r.OK && r.Message != nil {
			d.acknowledged(o, r)
			first = first && !r.Duplicate
			seqs = append(seqs, r.Message.Seq)
			continue
		}
		left, first = append(left, o), false
		if err == nil {
			c.refused("message:send", r)
			wait = 100 * time.Millisecond
			if r.Error != nil {
				wait += time.Duration(r.Error.RetryAfterMs) * time.Millisecond
			}
		}
	}
	if first {
		d.checkOrder(seqs)
	}
	d.pending = left
	select {
	case <-c.ended:
		err = errNoAnswer
	default:
		err = ctx.Err()
	}
	return answered, wait, err
}

// emitPending emits what was not answered. first says that nothing of it was tried before.
func (d *device) emitPending(c *connection) (answers []<-chan *reply, first bool, err error) {
	first = true
	for _, o := range d.pending {
		if o.attempts++; o.attempts > 1 {
			first = false
			d.s.stats.repeats.Add(1)
		} else {
			o.since = time.Now()
		}
		payload := obj{"conversationId": o.conversation, "clientMsgId": o.id, "text": o.text}
		if o.replyTo > 0 {
			payload["replyToSeq"] = o.replyTo
		}
		answer, err := c.emit("message:send", payload)
		if err != nil {
			return nil, false, err
		}
		answers = append(answers, answer)
	}
	return answers, first, nil
}

func (d *device) acknowledged(o *outgoing, r *reply) {
	s := d.s
	s.sends.Acknowledged(r.Message)
	d.record.Keep(r.Message)
	s.stats.answered.Add(1)
	s.stats.latency(time.Since(o.since))
	if r.Duplicate && o.attempts == 1 {
		s.faults.Add(check.Doubled, "%s: the first attempt of %q was answered as a duplicate", d.name, o.id)
	}
}

// checkOrder: sends of one socket get seqs in the order in which they were emitted.
func (d *device) checkOrder(seqs []int64) {
	for i := 1; i < len(seqs); i++ {
		if seqs[i] <= seqs[i-1] {
			d.s.faults.Add(check.Reordered, "%s: sends in one order got the seqs %v", d.name, seqs)
			return
		}
	}
}

// readHistory reads a page somewhere, and looks at it.
func (c *connection) readHistory(ctx context.Context, conversation chat.ID) error {
	d := c.d
	last := d.record.Position(conversation)
	payload := obj{"conversationId": conversation, "limit": 1 + d.rng.IntN(50)}
	up := d.rng.IntN(2) == 0
	switch {
	case up:
		payload["afterSeq"] = d.rng.Int64N(last + 1)
	case d.rng.IntN(2) == 0:
		payload["beforeSeq"] = 1 + d.rng.Int64N(last+1)
	}
	r, err := c.ask(ctx, "history", payload)
	if err != nil {
		return err
	}
	d.s.stats.pages.Add(1)
	for i := 1; i < len(r.Messages); i++ {
		if a, b := r.Messages[i-1].Seq, r.Messages[i].Seq; up && a >= b || !up && a <= b {
			d.s.faults.Add(check.Reordered, "%s: a page of history of %s has %d before %d", d.name, conversation, a, b)
		}
	}
	return nil
}

// read reads up to what is held without a gap.
func (d *device) read(ctx context.Context, c *connection, conversation chat.ID) error {
	upTo := d.record.Contiguous(conversation)
	if d.sync {
		upTo = d.record.Position(conversation)
	}
	if upTo == 0 {
		return nil
	}
	d.s.stats.reads.Add(1)
	return c.ask1(ctx, "message:read", obj{"conversationId": conversation, "seq": upTo})
}

func (d *device) askPresence(ctx context.Context, c *connection) error {
	var ids []chat.ID
	for range 10 {
		ids = append(ids, d.s.users[d.rng.IntN(len(d.s.users))].id)
	}
	return c.ask1(ctx, "presence", obj{"userIds": ids})
}

// open opens a direct conversation with somebody, who may be doing the same.
func (d *device) open(ctx context.Context, c *connection) error {
	other := d.rng.IntN(len(d.s.users))
	if other == d.user.index {
		return nil
	}
	r, err := c.ask(ctx, "conversation:open", obj{"userId": d.s.users[other].name})
	if err != nil {
		return err
	}
	if r.Conversation == nil || r.Conversation.Kind != chat.Direct {
		d.s.faults.Add(check.Different, "%s: conversation:open answered %+v", d.name, r.Conversation)
		return nil
	}
	d.s.world.addDirect(r.Conversation.ID, d.user.index, other)
	return nil
}

// flood asks for much that is not going to be read.
func (c *connection) flood(conversation chat.ID, n int) {
	body, err := json.Marshal(obj{"conversationId": conversation})
	for range n {
		if err == nil {
			err = c.client.Emit("history", body, func([]byte) {})
		}
	}
}
