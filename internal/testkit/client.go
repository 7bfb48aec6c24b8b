package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// ClientOptions say what client to make.
type ClientOptions struct {
	URL     string
	Version int // of socket.io-client: 4 (default), 3 or 2
	// Namespace to join; "" is the main one.
	Namespace string
	// Share makes it one more namespace on that client's connection, which is as URL, Version and
	// Transports say there.
	Share *Client
	// Token is sent as auth.token (for version 2, as the query parameter `token`).
	Token string
	// Auth is sent beside it.
	Auth map[string]any
	// AuthSequence makes `auth` a function: one entry for each attempt to
	// connect, the last one for all later ones.
	AuthSequence []map[string]any
	// Transports is the client's option; nil: polling, then an upgrade.
	Transports []string
	// Options are any of the client's own.
	Options map[string]any
	// Acks says how events that ask for an acknowledgement are answered; "*" is
	// the rule for the rest. Without a rule: AckNow.
	Acks map[string]AckRule
}

// AckRule is how a client acknowledges an event.
type AckRule struct{ rule any }

// The rules. AckByHand keeps the acknowledgement until Client.Ack gives it.
var (
	AckNow    = AckRule{"now"}
	AckNever  = AckRule{"never"}
	AckByHand = AckRule{"hand"}
)

// AckAfter acknowledges late.
func AckAfter(d time.Duration) AckRule { return AckRule{map[string]int64{"after": d.Milliseconds()}} }

// MarshalJSON is the driver's spelling.
func (r AckRule) MarshalJSON() ([]byte, error) { return json.Marshal(r.rule) }

// Heard is something that a client has heard. Beside the server's events there are the
// client's own, connect [{id}], disconnect [reason], connect_error [{message, data}],
// and what its connection does: $open [{transport, sid}], $upgrade [transport],
// $close [reason], $heartbeat, $reconnect_attempt, $reconnect, $reconnect_failed.
type Heard struct {
	N     int // its place among all that this client has heard, from 0
	Event string
	Args  []json.RawMessage // without the acknowledgement
}

// Decode reads the first argument. It panics where the test is wrong about the shape.
func Decode[T any](h Heard) T {
	var v T
	if len(h.Args) == 0 {
		panic(fmt.Sprintf("%s came without an argument", h.Event))
	}
	if err := json.Unmarshal(h.Args[0], &v); err != nil {
		panic(fmt.Sprintf("%s came with %s: %v", h.Event, h.Args[0], err))
	}
	return v
}

// Client is an official Socket.IO client. Safe for concurrent use.
type Client struct {
	js      *JS
	id      int
	version int

	mu    sync.Mutex // guards what follows
	heard []Heard
	news  chan struct{} // closed and replaced when something is heard
}

// Client makes a client that is not connected yet.
func (js *JS) Client(t testing.TB, opts ClientOptions) *Client {
	t.Helper()
	if opts.Version == 0 {
		opts.Version = 4
	}
	options := map[string]any{"reconnectionDelay": 50, "reconnectionDelayMax": 250}
	if opts.Transports != nil {
		options["transports"] = opts.Transports
	}
	for name, value := range opts.Options {
		options[name] = value
	}
	auth := map[string]any{}
	if opts.Token != "" {
		auth["token"] = opts.Token
	}
	for name, value := range opts.Auth {
		auth[name] = value
	}
	c := &Client{js: js, version: opts.Version, news: make(chan struct{})}
	js.mu.Lock()
	js.nextID++
	c.id = js.nextID
	js.clients[c.id] = c
	js.mu.Unlock()
	request := map[string]any{
		"op": "open", "client": c.id, "url": opts.URL, "version": opts.Version, "options": options,
		"auth": auth, "authSequence": opts.AuthSequence, "acks": opts.Acks, "namespace": opts.Namespace,
	}
	if opts.Share != nil {
		request["share"], request["version"] = opts.Share.id, opts.Share.version
	}
	_, err := js.call(Context(t), request)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return c
}

// Connected makes a client and returns when it is connected.
func (js *JS) Connected(t testing.TB, opts ClientOptions) *Client {
	t.Helper()
	c := js.Client(t, opts)
	ctx := Context(t)
	if err := c.Connect(ctx); err != nil {
		t.Fatalf("connect: %v", err)
	}
	return c
}

func (c *Client) hear(h Heard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, h)
	close(c.news)
	c.news = make(chan struct{})
}

// do runs an operation that answers nothing.
func (c *Client) do(ctx context.Context, op string, more map[string]any) error {
	_, err := c.call(ctx, op, more)
	return err
}

func (c *Client) call(ctx context.Context, op string, more map[string]any) (json.RawMessage, error) {
	request := map[string]any{"op": op, "client": c.id}
	for name, value := range more {
		request[name] = value
	}
	return c.js.call(ctx, request)
}

// Connect begins to connect and returns when it has, or with the refusal
// (*Refused).
func (c *Client) Connect(ctx context.Context) error {
	from := c.Mark()
	if err := c.do(ctx, "connect", nil); err != nil {
		return err
	}
	h, err := c.WaitAfter(ctx, from, "", func(h Heard) bool {
		return h.Event == "connect" || h.Event == "connect_error"
	})
	if err != nil {
		return err
	}
	if h.Event == "connect_error" {
		refused := Decode[Refused](h)
		return &refused
	}
	return nil
}

// StartConnecting begins to connect and does not wait.
func (c *Client) StartConnecting(ctx context.Context) error { return c.do(ctx, "connect", nil) }

// Refused is a connect_error.
type Refused struct {
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (r *Refused) Error() string { return fmt.Sprintf("connect_error: %s %s", r.Message, r.Data) }

// Disconnect ends the connection as a page does that is done; the client does not
// come back by itself.
func (c *Client) Disconnect(ctx context.Context) error { return c.do(ctx, "disconnect", nil) }

// Kill cuts the connection without a goodbye; the client comes back by itself.
func (c *Client) Kill(ctx context.Context) error { return c.do(ctx, "kill", nil) }

// Close ends the client for good.
func (c *Client) Close(ctx context.Context) error {
	defer func() {
		c.js.mu.Lock()
		delete(c.js.clients, c.id)
		c.js.mu.Unlock()
	}()
	return c.do(ctx, "close", nil)
}

// Pause stops reading the stream of a websocket, Resume goes on.
func (c *Client) Pause(ctx context.Context) error { return c.do(ctx, "pause", nil) }

// Resume ends a Pause.
func (c *Client) Resume(ctx context.Context) error { return c.do(ctx, "resume", nil) }

// SetAuth changes what the next connect sends.
func (c *Client) SetAuth(ctx context.Context, auth map[string]any) error {
	return c.do(ctx, "auth", map[string]any{"auth": auth})
}

// SetAcks changes how events are acknowledged from now on.
func (c *Client) SetAcks(ctx context.Context, acks map[string]AckRule) error {
	return c.do(ctx, "acks", map[string]any{"acks": acks})
}

// Ack gives an acknowledgement that AckByHand kept.
func (c *Client) Ack(ctx context.Context, h Heard, args ...any) error {
	if args == nil {
		args = []any{}
	}
	return c.do(ctx, "ack", map[string]any{"n": h.N, "args": args})
}

// State is what the client says of itself.
type State struct {
	ID        string `json:"id"`
	Connected bool   `json:"connected"`
	Active    bool   `json:"active"` // it comes back by itself
	Transport string `json:"transport"`
	EngineID  string `json:"engineId"`
}

// State asks the client.
func (c *Client) State(ctx context.Context) (State, error) {
	var s State
	answer, err := c.call(ctx, "state", nil)
	if err == nil {
		err = json.Unmarshal(answer, &s)
	}
	return s, err
}

// Emit emits an event with arguments and returns the first argument of its
// acknowledgement; an error when none comes before ctx's deadline.
func (c *Client) Emit(ctx context.Context, event string, args ...any) (json.RawMessage, error) {
	return c.emit(ctx, false, event, args)
}

// EmitNative is Emit by the client's own timeout and, where its options say so,
// retries (version 4).
func (c *Client) EmitNative(ctx context.Context, event string, args ...any) (json.RawMessage, error) {
	return c.emit(ctx, true, event, args)
}

func (c *Client) emit(ctx context.Context, native bool, event string, args []any) (json.RawMessage, error) {
	answer, err := c.call(ctx, "emit", map[string]any{
		"event": event, "args": orEmpty(args), "native": native, "timeoutMs": untilDeadline(ctx),
	})
	if err != nil {
		return nil, err
	}
	return firstOf(answer)
}

// Answer is what became of one emit of EmitAll: the first argument of its
// acknowledgement, or an error.
type Answer struct {
	Value json.RawMessage
	Err   error
}

// EmitAll emits an event once for each payload in one turn of the event loop, waiting
// for nothing in between, and returns what became of each, in their order.
func (c *Client) EmitAll(ctx context.Context, event string, payloads ...any) ([]Answer, error) {
	batch := make([][]any, len(payloads))
	for i, payload := range payloads {
		batch[i] = []any{payload}
	}
	raw, err := c.call(ctx, "emitAll", map[string]any{
		"event": event, "batch": batch, "timeoutMs": untilDeadline(ctx),
	})
	if err != nil {
		return nil, err
	}
	var results []struct {
		Answer json.RawMessage `json:"answer"`
		Error  string          `json:"error"`
	}
	if err := json.Unmarshal(raw, &results); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(results))
	for i, result := range results {
		if result.Error != "" {
			answers[i].Err = errors.New(result.Error)
			continue
		}
		answers[i].Value, answers[i].Err = firstOf(result.Answer)
	}
	return answers, nil
}

// Send emits an event once for each payload, in one turn of the event loop and without an
// acknowledgement.
func (c *Client) Send(ctx context.Context, event string, payloads ...any) error {
	return c.send(ctx, false, event, payloads)
}

// SendVolatile is Send by socket.volatile.
func (c *Client) SendVolatile(ctx context.Context, event string, payloads ...any) error {
	return c.send(ctx, true, event, payloads)
}

func (c *Client) send(ctx context.Context, volatile bool, event string, payloads []any) error {
	batch := make([][]any, len(payloads))
	for i, payload := range payloads {
		batch[i] = []any{payload}
	}
	return c.do(ctx, "send", map[string]any{"event": event, "batch": batch, "volatile": volatile})
}

// Mark is the place of what will be heard next, for WaitAfter.
func (c *Client) Mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heard)
}

// WaitFor returns the first event of this name that matches, also one that was heard
// before; match nil takes any.
func (c *Client) WaitFor(ctx context.Context, event string, match func(Heard) bool) (Heard, error) {
	return c.WaitAfter(ctx, 0, event, match)
}

// WaitAfter is WaitFor among what was heard since the mark; event "" is any name.
func (c *Client) WaitAfter(ctx context.Context, mark int, event string, match func(Heard) bool) (Heard, error) {
	for {
		c.mu.Lock()
		news := c.news
		for ; mark < len(c.heard); mark++ {
			h := c.heard[mark]
			if (event == "" || h.Event == event) && (match == nil || match(h)) {
				c.mu.Unlock()
				return h, nil
			}
		}
		c.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return Heard{}, fmt.Errorf("wait for %q: %w; heard: %s", event, ctx.Err(), c.summary())
		}
	}
}

// WaitCount returns the events of this name when n of them were heard.
func (c *Client) WaitCount(ctx context.Context, event string, n int) ([]Heard, error) {
	count := 0
	_, err := c.WaitFor(ctx, event, func(Heard) bool {
		count++
		return count >= n
	})
	if n > 0 && err != nil {
		return c.Events(event), fmt.Errorf("%d of %d: %w", len(c.Events(event)), n, err)
	}
	return c.Events(event), nil
}

// Events are all of this name that were heard so far, in their order; "" is
// all.
func (c *Client) Events(event string) []Heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Heard
	for _, h := range c.heard {
		if event == "" || h.Event == event {
			found = append(found, h)
		}
	}
	return found
}

// summary names the last events, for the message of a test that waits in vain.
func (c *Client) summary() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := c.heard
	if len(heard) > 30 {
		heard = heard[len(heard)-30:]
	}
	var text strings.Builder
	for _, h := range heard {
		fmt.Fprintf(&text, "\n  %d %s %.200s", h.N, h.Event, h.Args)
	}
	return text.String()
}

func orEmpty(args []any) []any {
	if args == nil {
		return []any{}
	}
	return args
}

// firstOf is the first argument of an acknowledgement; null when there is none.
func firstOf(args json.RawMessage) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(args, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return json.RawMessage("null"), nil
	}
	return list[0], nil
}

// untilDeadline is what is left of ctx in milliseconds, a little less, so that the
// client's own word comes first.
func untilDeadline(ctx context.Context) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return Patience.Milliseconds()
	}
	return max(time.Until(deadline).Milliseconds()-50, 1)
}
