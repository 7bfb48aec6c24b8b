package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"xabar/internal/testkit/lightclient"
)

// crowd is pairs of users, each with a direct conversation, whose first sends to
// their second.
type crowd struct {
	pairs []*pair
	done  atomic.Int64 // messages stored, answered, acknowledged by the recipient, and known so to the sender
	ctx   context.Context

	mu  sync.Mutex // guards err
	err error
}

// pair sends its next message when the last one has arrived.
type pair struct {
	crowd              *crowd
	sender, recipient  *lightclient.Client
	conversation       string
	number             atomic.Int64
	arrived            chan struct{} // holds one
	answered, received atomic.Int64  // seqs
	told               atomic.Int64  // the last seq that the pair was through with
}

// text is as long as chat messages are.
const text = "Salom! Ertaga soat uchda uchrashamizmi? Men kutubxona oldida kutaman, kech qolma."

func startCrowd(ctx context.Context, n int, senders, recipients *node) (*crowd, error) {
	c := &crowd{ctx: ctx}
	for i := range n {
		p := &pair{crowd: c, arrived: make(chan struct{}, 1)}
		c.pairs = append(c.pairs, p)
		recipient := fmt.Sprint("recipient", i)
		var err error
		if p.recipient, err = recipients.connect(ctx, recipient, nil); err != nil {
			return c, err
		}
		if p.sender, err = senders.connect(ctx, fmt.Sprint("sender", i), p.event); err != nil {
			return c, err
		}
		var opened struct {
			OK           bool
			Conversation struct{ ID string }
		}
		err = p.sender.Ask(ctx, "conversation:open", map[string]any{"userId": recipient}, &opened)
		if err == nil && !opened.OK {
			err = errors.New("a conversation was not opened")
		}
		if err != nil {
			return c, err
		}
		p.conversation = opened.Conversation.ID
	}
	return c, nil
}

func (c *crowd) close() {
	for _, p := range c.pairs {
		for _, client := range []*lightclient.Client{p.sender, p.recipient} {
			if client != nil {
				client.Close()
			}
		}
	}
}

func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *crowd) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// event is what the sender hears, on its reader.
func (p *pair) event(name string, args []byte, acknowledge func()) {
	if acknowledge != nil {
		acknowledge()
	}
	if name == "message:delivered" {
		p.received.Store(number(args, `"seq":`))
		p.look()
	}
}

// number takes a number out of JSON; a decoder would cost more than the gateway.
func number(text []byte, after string) (n int64) {
	_, rest, _ := bytes.Cut(text, []byte(after))
	for _, digit := range rest {
		if digit < '0' || digit > '9' {
			break
		}
		n = 10*n + int64(digit-'0')
	}
	return n
}

// look sees whether the message under way is through. It runs on the sender's reader.
func (p *pair) look() {
	seq := p.answered.Load()
	if seq == p.told.Load() || p.received.Load() < seq {
		return
	}
	p.told.Store(seq)
	p.crowd.done.Add(1)
	p.arrived <- struct{}{}
}

func (p *pair) send() {
	id := fmt.Sprint(p.number.Add(1))
	payload := json.RawMessage(`{"conversationId":"` + p.conversation + `","clientMsgId":"` + id + `","text":"` + text + `"}`)
	err := p.sender.Emit("message:send", payload, func(answer []byte) {
		if !bytes.HasPrefix(answer, []byte(`{"ok":true`)) {
			p.crowd.fail(fmt.Errorf("a send was answered %s", answer))
			return
		}
		p.answered.Store(number(answer, `"seq":`))
		p.look()
	})
	if err != nil {
		p.crowd.fail(err)
	}
}

// run has every pair send, one message after the other, for the time; each waits for
// pause between two, if that is not 0.
func (c *crowd) run(d, pause time.Duration) error {
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i, p := range c.pairs {
		running.Go(func() { p.talk(stop, pause, time.Duration(i)*pause/time.Duration(len(c.pairs))) })
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	}
	close(stop)
	running.Wait()
	return errors.Join(c.failure(), c.ctx.Err())
}

// lost is how long a message may be under way.
const lost = 20 * time.Second

func (p *pair) talk(stop <-chan struct{}, pause, offset time.Duration) {
	next := time.NewTimer(offset)
	defer next.Stop()
	late := time.NewTimer(lost)
	defer late.Stop()
	for {
		select {
		case <-stop:
			return
		case <-next.C:
		}
		sent := time.Now()
		p.send()
		late.Reset(lost)
		select {
		case <-p.arrived:
		case <-late.C:
			p.crowd.fail(errors.New("a message has not come through"))
			return
		}
		next.Reset(max(0, pause-time.Since(sent)))
	}
}
