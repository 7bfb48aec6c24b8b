package steady

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/internal/testkit"
)

// Person is a user that a test has made.
type Person struct {
	*User
	ID   chat.ID
	Name string
}

// NewPerson connects a new user, whose tokens are signed with the secret, until the test ends.
func NewPerson(t testing.TB, secret, name string, opts Options) *Person {
	t.Helper()
	p := &Person{ID: chat.NewID(), Name: name}
	p.User = NewDevice(t, secret, p, opts)
	return p
}

// NewDevice connects one more device of a person.
func NewDevice(t testing.TB, secret string, p *Person, opts Options) *User {
	t.Helper()
	var err error
	if opts.Token, _, err = auth.NewMinter([]byte(secret), nil).Mint(chat.UserRef(p.ID.String()), p.Name, time.Hour); err != nil {
		t.Fatal(err)
	}
	u := Start(context.WithoutCancel(t.Context()), opts)
	t.Cleanup(u.Stop)
	if err := u.Ready(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	return u
}

// Open opens a conversation: payload is that of conversation:open.
func (p *Person) Open(t testing.TB, payload map[string]any) chat.ID {
	t.Helper()
	var answer struct {
		Conversation chat.Conversation `json:"conversation"`
	}
	if err := p.Ask(testkit.Context(t), "conversation:open", payload, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Conversation.ID
}

// Crowd is people who send all the time: each to its neighbour, in pairs, and two of them to a
// group of all.
type Crowd struct {
	People        []*Person
	Conversations map[chat.ID][]*Person

	t       testing.TB
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows
	answered map[string]Answer
	sent     int
	news     chan struct{} // closed and replaced when something was answered
}

// Answer is what a send was answered with, and when.
type Answer struct {
	Message chat.Message
	At      time.Time
	Sender  string // one person in one conversation
	N       int    // how manieth of that sender
}

// talkPause is between two messages of one sender.
const talkPause = 30 * time.Millisecond

// Talk has people, an even number of them, begin to send.
func Talk(t testing.TB, people []*Person) *Crowd {
	t.Helper()
	c := &Crowd{t: t, People: people, Conversations: map[chat.ID][]*Person{}, answered: map[string]Answer{}, news: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	c.stop = cancel
	var members []chat.ID
	for i := 0; i < len(people); i += 2 {
		a, b := people[i], people[i+1]
		c.Conversations[a.Open(t, map[string]any{"userId": b.ID})] = []*Person{a, b}
		members = append(members, a.ID, b.ID)
	}
	c.Conversations[people[0].Open(t, map[string]any{"title": "all", "memberIds": members})] = people
	for conversation, members := range c.Conversations {
		for _, p := range members[:2] {
			c.running.Go(func() { c.talk(ctx, p, conversation) })
		}
	}
	t.Cleanup(c.End)
	return c
}

// End stops the sending when everything is answered that is under way.
func (c *Crowd) End() {
	c.stop()
	c.running.Wait()
}

func (c *Crowd) talk(ctx context.Context, p *Person, conversation chat.ID) {
	tick := time.NewTicker(talkPause)
	defer tick.Stop()
	sender := p.Name + "-" + conversation.String()[24:]
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		id := fmt.Sprintf("%s-%d", sender, n)
		// The last one is answered too, whatever happens to ctx.
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), testkit.Patience)
		m, err := p.Send(bound, conversation, id, "text of "+id)
		cancel()
		if err != nil {
			c.t.Errorf("send %s: %v", id, err)
			return
		}
		c.mu.Lock()
		c.answered[id] = Answer{m, time.Now(), sender, n}
		c.sent++
		close(c.news)
		c.news = make(chan struct{})
		c.mu.Unlock()
	}
}

// Flows waits until n more messages were answered.
func (c *Crowd) Flows(n int) {
	c.t.Helper()
	ctx := testkit.Context(c.t)
	for until := -1; ; {
		c.mu.Lock()
		sent, news := c.sent, c.news
		c.mu.Unlock()
		if until < 0 {
			until = sent + n
		}
		if sent >= until || c.t.Failed() {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			c.t.Fatalf("%d messages were not answered, but %d", n, n-(until-sent))
		}
	}
}

// Answered are the answers by clientMsgId.
func (c *Crowd) Answered() map[string]Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.answered)
}

// Agree waits, after End, until everybody holds exactly what is stored, and gives that by
// clientMsgId. It fails the test for messages that are stored twice.
func (c *Crowd) Agree() map[string]chat.Message {
	c.t.Helper()
	ctx := testkit.Context(c.t)
	stored := map[string]chat.Message{}
	for conversation, people := range c.Conversations {
		for _, p := range people {
			c.agrees(ctx, p, conversation)
		}
		for _, m := range people[0].Messages(conversation) {
			if other, twice := stored[m.ClientMsgID]; twice {
				c.t.Errorf("%s is stored as %d and %d", m.ClientMsgID, other.Seq, m.Seq)
			}
			stored[m.ClientMsgID] = m
		}
	}
	return stored
}

func (c *Crowd) agrees(ctx context.Context, p *Person, conversation chat.ID) {
	c.t.Helper()
	for {
		differences, _, err := p.Differences(ctx, conversation)
		switch {
		case err == nil && len(differences) == 0:
			return
		case err != nil || ctx.Err() != nil:
			c.t.Fatalf("%s: %v, %v", p.Name, err, differences)
		}
		select {
		case <-time.After(20 * time.Millisecond): // what is under way arrives
		case <-ctx.Done():
			c.t.Fatalf("%s: %v", p.Name, differences)
		}
	}
}
