package loadtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"xabar/internal/sioclient"
)

// actor is a user with one connection.
type actor struct {
	run     *run
	index   int
	user    string // JSON, as others refer to it
	target  string
	polling bool
	sync    bool // it calls sync after it has connected
	auth    []byte
	ack     []byte // the arguments of its acknowledgements

	mu         sync.Mutex // guards what follows
	client     *sioclient.Client
	gone       bool      // cut on purpose
	returning  bool      // it has lost its connection, and comeBack opens another one
	lives      int       // how many times it has
	rooms      []*room   // in which it sends
	inbox      []*inbox  // the inboxes themselves belong to whoever holds mu
	early      []arrival // live messages that came before the answer to sync
	collecting bool      // whether it collects them
}

// arrival is a message that has come.
type arrival struct {
	room *room
	m    marker
	seq  int64
}

func (a *actor) name() string { return fmt.Sprintf("user %s on %s", a.user, a.target) }

// connect dials, and calls sync if it is of that kind.
func (a *actor) connect(ctx context.Context) error {
	start := time.Now()
	a.mu.Lock()
	a.collecting = a.sync
	a.gone = false
	a.mu.Unlock()
	client, err := sioclient.Dial(ctx, sioclient.Options{
		URL: a.target, Path: a.run.desc.Path, Polling: a.polling, Auth: a.auth, Handler: a,
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.client = client
	a.mu.Unlock()
	if a.sync {
		if err := a.callSync(ctx); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
	}
	a.run.recorder.record(Connected, time.Since(start))
	return nil
}

// ask emits a request and waits for its answer, which must be a success.
func (a *actor) ask(ctx context.Context, r request, pairs ...string) (answer []byte, err error) {
	answers := make(chan []byte, 1)
	if err := a.emit(r.Event, r.fill(pairs...), func(args []byte) { answers <- bytes.Clone(args) }); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	select {
	case answer = <-answers:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: no answer: %w", r.Event, ctx.Err())
	}
	if !contains(answer, a.run.desc.Okay) {
		return nil, fmt.Errorf("%s was refused: %.200s", r.Event, answer)
	}
	return answer, nil
}

// answerTimeout is for requests of the preparation and of readers.
const answerTimeout = 30 * time.Second

var errNotConnected = errors.New("not connected")

func (a *actor) emit(event string, payload []byte, onAck func([]byte)) error {
	a.mu.Lock()
	client := a.client
	a.mu.Unlock()
	if client == nil {
		return errNotConnected
	}
	return client.Emit(event, payload, onAck)
}

// cut ends the connection without a goodbye.
func (a *actor) cut() {
	a.mu.Lock()
	client := a.client
	a.client, a.gone = nil, true
	a.mu.Unlock()
	if client != nil {
		client.Close()
	}
}

// Closed implements sioclient.Handler.
func (a *actor) Closed(_ *sioclient.Client, err error) {
	a.mu.Lock()
	expected := a.gone || err == nil
	a.client = nil
	a.mu.Unlock()
	switch {
	case expected || a.run.over.Load():
	case a.run.opts.Restarts:
		a.interrupted()
	default:
		a.run.faults.add(faultBroken, "%s: %v", a.name(), err)
	}
}

// Event implements sioclient.Handler.
func (a *actor) Event(c *sioclient.Client, name, args []byte, ack int64) {
	d := a.run.desc
	switch event := string(name); event {
	case d.Message.Event:
		a.message(args)
		if ack >= 0 && !a.run.opts.NoAcks {
			_ = c.Ack(ack, a.ack) // a connection that ends says so in Closed
		}
	case d.Delivered.Event:
		a.position(d.Delivered, args, (*stream).deliveredUpTo)
	case d.ReadBy.Event:
		a.position(d.ReadBy, args, (*stream).readUpTo)
	case d.TypingBy.Event:
		a.run.recorder.record(Typed, time.Microsecond)
	}
}

// position tells the streams of this user in a conversation how far the other one is.
func (a *actor) position(e event, args []byte, tell func(*stream, int64)) {
	seq, ok := number(args, e.Seq)
	if !ok {
		a.run.faults.add(faultForeign, "%s heard %s without %s: %.200s", a.name(), e.Event, e.Seq, args)
		return
	}
	conversation := field(args, e.Conversation)
	a.mu.Lock()
	var room *room
	for _, r := range a.rooms {
		if r.id == string(conversation) {
			room = r
			break
		}
	}
	a.mu.Unlock()
	if room == nil {
		return
	}
	for _, s := range room.streams {
		if s.sender == a {
			tell(s, seq)
		}
	}
}

func (a *actor) message(args []byte) {
	d := a.run.desc
	m, ok := parseMarker(field(args, d.Message.Text), a.run.id)
	if !ok {
		return // from before this run, or from others
	}
	seq, ok := number(args, d.Message.Seq)
	if !ok {
		a.run.faults.add(faultForeign, "%s heard a message without %s: %.200s", a.name(), d.Message.Seq, args)
		return
	}
	s := a.run.stream(m.stream)
	if s == nil || s.sender == a { // its own, which it sent by the connection that it had before
		return
	}
	a.mu.Lock()
	if a.collecting {
		a.early = append(a.early, arrival{s.room, m, seq})
		a.mu.Unlock()
		return
	}
	a.mu.Unlock()
	a.accept(s, m, seq)
}

// accept puts a message into its inbox and tells the stream.
func (a *actor) accept(s *stream, m marker, seq int64) {
	a.mu.Lock()
	box := a.inboxOf(s.room)
	if seq <= box.synced {
		a.run.repeats.Add(1)
	}
	fresh := box.accept(&a.run.faults, a.name(), m, seq)
	if fresh && a.run.wantRead(s.room, m.n) {
		box.read = max(box.read, seq)
	}
	a.mu.Unlock()
	if !fresh {
		return
	}
	a.run.recorder.record(Received, a.run.since()-m.due)
	s.receivedBy(m.n)
	if s.run.wantRead(s.room, m.n) {
		_ = a.emit(a.run.desc.Read.Event, a.run.desc.Read.fill("conversation", s.room.id, "seq", strconv.FormatInt(seq, 10)),
			func(answer []byte) {
				if !contains(answer, a.run.desc.Okay) {
					a.run.noteError(a.run.desc.Read.Event, string(answer))
				}
			}) // what does not arrive is found missing at the end
	}
}

// inboxOf is called with mu.
func (a *actor) inboxOf(room *room) *inbox {
	for _, b := range a.inbox {
		if b.room == room {
			return b
		}
	}
	b := &inbox{room: room}
	a.inbox = append(a.inbox, b)
	return b
}

// objectKey is an id, which is JSON, as the key of an object: a server may number its conversations.
func objectKey(id string) string {
	if strings.HasPrefix(id, `"`) {
		return id
	}
	return `"` + id + `"`
}

// callSync asks for what came after what the inboxes hold, and takes it in before the
// live messages that came meanwhile. A message that came both ways is one.
func (a *actor) callSync(ctx context.Context) error {
	a.mu.Lock()
	positions := make(map[*room]int64, len(a.inbox))
	var named []string
	for _, b := range a.inbox {
		positions[b.room] = b.lastSeq
		named = append(named, fmt.Sprintf("%s:%d", objectKey(b.room.id), b.lastSeq))
	}
	a.mu.Unlock()
	answer, err := a.ask(ctx, a.run.desc.Sync, "positions", "{"+strings.Join(named, ",")+"}")
	if err != nil {
		return err
	}
	found, err := a.messagesIn(answer)
	if err != nil {
		return err
	}
	for {
		a.mu.Lock()
		found = append(found, a.early...)
		a.early = nil
		a.collecting = len(found) > 0
		if !a.collecting { // what comes from now on may repeat what it holds
			for _, b := range a.inbox {
				b.synced = b.lastSeq
			}
		}
		a.mu.Unlock()
		if len(found) == 0 {
			return a.confirm(positions)
		}
		slices.SortStableFunc(found, func(x, y arrival) int { return cmp.Compare(x.seq, y.seq) })
		for _, f := range found {
			a.acceptOnce(f)
		}
		found = nil
	}
}

// confirm tells the server what has come since the positions that were named.
func (a *actor) confirm(positions map[*room]int64) error {
	q := a.run.desc.Confirm
	if q.Event == "" {
		return nil
	}
	news := map[string]int64{}
	a.mu.Lock()
	for _, b := range a.inbox {
		if b.lastSeq > positions[b.room] {
			news[b.room.id] = b.lastSeq
		}
	}
	a.mu.Unlock()
	for id, seq := range news {
		err := a.emit(q.Event, q.fill("conversation", id, "seq", strconv.FormatInt(seq, 10)), func(answer []byte) {
			if !contains(answer, a.run.desc.Okay) {
				a.run.noteError(q.Event, string(answer))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// acceptOnce leaves out what the inbox holds.
func (a *actor) acceptOnce(f arrival) {
	a.mu.Lock()
	held := f.seq <= a.inboxOf(f.room).lastSeq
	a.mu.Unlock()
	if !held {
		a.accept(a.run.stream(f.m.stream), f.m, f.seq)
	}
}

// messagesIn finds our messages in an answer, wherever in it they stand.
func (a *actor) messagesIn(answer []byte) (found []arrival, err error) {
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return nil, fmt.Errorf("%.200s: %w", answer, err)
	}
	seen := map[marker]bool{} // the last message of a conversation may be told apart from the others
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			text, _ := v[a.run.desc.Message.Text].(string)
			seq, hasSeq := v[a.run.desc.Message.Seq].(float64)
			if m, ok := parseMarker([]byte(text), a.run.id); ok && hasSeq && !seen[m] {
				if s := a.run.stream(m.stream); s != nil && s.sender != a {
					seen[m] = true
					found = append(found, arrival{s.room, m, int64(seq)})
				}
			}
			for _, element := range v {
				walk(element)
			}
		}
	}
	walk(value)
	return found, nil
}

func contains(answer []byte, okay string) bool { return bytes.Contains(answer, []byte(okay)) }
