// Package steady is a user whose device stays connected whatever happens to nodes and
// databases: it comes back, at another node if need be, syncs, and repeats what was not
// answered, as docs/protocol.md asks of clients. It keeps what it holds, and notes what a
// server must not do to it: messages again or out of order, and two messages under one seq.
package steady

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"xabar/chat"
	"xabar/internal/testkit/lightclient"
)

// Options of Start.
type Options struct {
	URLs  []string // of nodes; the first one is tried first, the next after each failure
	Token string
	// Plain names its positions as bare seqs, and no epoch, as clients of before the epochs do.
	Plain bool
	// Quiet neither syncs nor acknowledges: it is for Ask alone.
	Quiet bool
}

// User is one device of a user. Its methods may be called from any goroutine.
type User struct {
	opts    Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows
	client   *lightclient.Client
	up       chan struct{} // closed while it is connected and synced
	syncing  bool
	early    []chat.Message // live ones that came during a sync
	epoch    string
	rooms    map[chat.ID]*room
	faults   []string
	lives    int // connections that were synced
	resets   int // conversations that it was told to drop
	gone     int
	restored bool // it was told that everything is of another history
}

// room is what it holds of a conversation.
type room struct {
	messages map[int64]chat.Message
	held     int64 // everything up to here
	heard    int64 // the last live seq of this connection
}

// pause is between two tries: the official client's reconnectionDelay, shorter.
const pause = 50 * time.Millisecond

// answerTimeout is how long it waits for an answer before it repeats.
const answerTimeout = 5 * time.Second

// Start begins to connect; Stop ends it.
func Start(ctx context.Context, opts Options) *User {
	u := &User{opts: opts, rooms: map[chat.ID]*room{}, up: make(chan struct{})}
	u.ctx, u.cancel = context.WithCancel(ctx)
	u.running.Go(u.run)
	return u
}

// Stop disconnects it and waits for its goroutine.
func (u *User) Stop() {
	u.cancel()
	u.running.Wait()
}

func (u *User) run() {
	for try := 0; u.ctx.Err() == nil; try++ {
		if u.live(u.opts.URLs[try%len(u.opts.URLs)]) {
			try-- // it was there: that node first
		}
		select {
		case <-time.After(pause):
		case <-u.ctx.Done():
		}
	}
}

// live is one connection. It says whether it got as far as being synced.
func (u *User) live(url string) (synced bool) {
	u.mu.Lock()
	u.syncing, u.early = true, nil
	for _, r := range u.rooms {
		r.heard = 0
	}
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(u.ctx, 2*answerTimeout)
	defer cancel()
	client, err := lightclient.Dial(ctx, lightclient.Options{
		URL: url, Auth: map[string]any{"token": u.opts.Token, "sync": true}, Event: u.event,
	})
	if err != nil {
		return false
	}
	defer client.Close()
	if !u.opts.Quiet {
		if err := u.sync(ctx, client); err != nil {
			return false
		}
	}
	u.mu.Lock()
	u.client = client
	u.lives++
	close(u.up)
	u.mu.Unlock()
	select {
	case <-client.Done():
	case <-u.ctx.Done():
	}
	u.mu.Lock()
	u.client, u.up = nil, make(chan struct{})
	u.mu.Unlock()
	return true
}

func (u *User) event(name string, args []byte, acknowledge func()) {
	switch name {
	case "session":
		var session struct {
			Epoch string `json:"epoch"`
		}
		if json.Unmarshal(args, &session) == nil {
			u.begin(session.Epoch)
		}
	case "message":
		var m chat.Message
		if err := json.Unmarshal(args, &m); err != nil {
			u.fault("a message that is none: %.100s", args)
			return
		}
		u.mu.Lock()
		if u.syncing {
			u.early = append(u.early, m)
		} else {
			u.hear(m)
		}
		u.mu.Unlock()
	}
	if acknowledge != nil && !u.opts.Quiet {
		acknowledge()
	}
}

// begin drops what is of another history.
func (u *User) begin(epoch string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.opts.Plain && u.epoch != "" && epoch != "" && epoch != u.epoch {
		u.restored = true
		u.resets += len(u.rooms)
		u.rooms = map[chat.ID]*room{}
		u.epoch = epoch
	}
}

// hear takes a live message. Call it with mu.
func (u *User) hear(m chat.Message) {
	r := u.room(m.ConversationID)
	if m.Seq <= r.heard {
		u.faults = append(u.faults, fmt.Sprintf("heard seq %d behind %d", m.Seq, r.heard))
	}
	r.heard = m.Seq
	u.keep(r, m)
}

// keep takes a message into what it holds. Call it with mu.
func (u *User) keep(r *room, m chat.Message) {
	if known, ok := r.messages[m.Seq]; ok && known.ID != m.ID {
		u.faults = append(u.faults, fmt.Sprintf("seq %d is %q and %q", m.Seq, known.Text, m.Text))
	}
	r.messages[m.Seq] = m
	r.advance()
}

func (r *room) advance() {
	for {
		if _, ok := r.messages[r.held+1]; !ok {
			return
		}
		r.held++
	}
}

func (u *User) room(id chat.ID) *room {
	r := u.rooms[id]
	if r == nil {
		r = &room{messages: map[int64]chat.Message{}}
		u.rooms[id] = r
	}
	return r
}

func (u *User) fault(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults = append(u.faults, fmt.Sprintf(format, args...))
}

type failure struct {
	Code      chat.Code `json:"code"`
	Message   string    `json:"message"`
	Retryable bool      `json:"retryable"`
}

func (f *failure) Error() string { return string(f.Code) + ": " + f.Message }

// ask asks once, on this connection.
func ask(ctx context.Context, client *lightclient.Client, event string, payload, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var raw json.RawMessage
	if err := client.Ask(ctx, event, payload, &raw); err != nil {
		return err
	}
	var answer struct {
		OK    bool     `json:"ok"`
		Error *failure `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if !answer.OK {
		return answer.Error
	}
	return json.Unmarshal(raw, into)
}

// Ask asks until there is an answer. Errors: what a repeat does not heal, and ctx's.
func (u *User) Ask(ctx context.Context, event string, payload, into any) error {
	for {
		u.mu.Lock()
		client, up := u.client, u.up
		u.mu.Unlock()
		if client != nil {
			err := ask(ctx, client, event, payload, into)
			var refused *failure
			if err == nil || errors.As(err, &refused) && !refused.Retryable {
				return err
			}
			up = nil // not at once
		}
		select {
		case <-up:
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", event, ctx.Err())
		}
	}
}

// Send sends until it is answered, and holds the message.
func (u *User) Send(ctx context.Context, conversation chat.ID, id, text string) (chat.Message, error) {
	var answer struct {
		Message chat.Message `json:"message"`
	}
	payload := map[string]any{"conversationId": conversation, "clientMsgId": id, "text": text}
	if err := u.Ask(ctx, "message:send", payload, &answer); err != nil {
		return chat.Message{}, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keep(u.room(conversation), answer.Message)
	return answer.Message, nil
}

// Ready waits until it is connected and synced.
func (u *User) Ready(ctx context.Context) error {
	u.mu.Lock()
	up := u.up
	u.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Messages are those that it holds of a conversation, rising in seq.
func (u *User) Messages(conversation chat.ID) []chat.Message {
	u.mu.Lock()
	defer u.mu.Unlock()
	held := u.room(conversation).messages
	list := make([]chat.Message, 0, len(held))
	for _, seq := range slices.Sorted(maps.Keys(held)) {
		list = append(list, held[seq])
	}
	return list
}

// Told is what it has been told and has noticed.
type Told struct {
	Lives    int  // connections
	Resets   int  // conversations that it had to drop
	Gone     int  // that are not its user's any more
	Restored bool // that everything it held was of another history
	Faults   []string
}

// Told gives what has happened so far.
func (u *User) Told() Told {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Told{u.lives, u.resets, u.gone, u.restored, slices.Clone(u.faults)}
}

// Token is what it shows at each connection.
func (u *User) Token() string { return u.opts.Token }
