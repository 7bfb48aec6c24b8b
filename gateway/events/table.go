package events

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// action is what an event does, without its socket's event: dialects run it too, with
// a payload that they have translated. One of the two is set.
type action struct {
	// start returns at once; reply is called exactly once, maybe before, and must not
	// block.
	start func(c *client, payload json.RawMessage, reply func(answer any, err error))
	// read waits for the database.
	read func(ctx context.Context, c *client, payload json.RawMessage) (answer any, err error)
}

// registerEvents is the table of everything that a client may emit. An event that
// stands here needs a row in docs/protocol.md and one in gateway/dialect's vocabulary.
func (h *Hub) registerEvents() {
	// These answer in the order of the events, from the store's queues.
	queued(h, "message:send", (*client).send, appendSent)
	queued(h, "message:delivered", (*client).markDelivered, appendDelivered)
	queued(h, "message:read", (*client).markRead, appendRead)

	// These read the database, several of one socket at a time.
	reading(h, "history", (*client).history)
	reading(h, "sync", (*client).syncPositions)
	reading(h, "members", (*client).members)
	reading(h, "conversations", (*client).conversations)
	reading(h, "conversation:open", (*client).openConversation)
	reading(h, "receipts", (*client).receipts)
	reading(h, "contacts", (*client).contacts)
	reading(h, "presence", (*client).presence)
	reading(h, "auth:refresh", (*client).refresh)

	typing := h.event("typing")
	h.ns.Handle("typing", h.only(typing, func(c *client, e *socketio.Event) {
		raw, err := payloadOf(e)
		if err == nil {
			c.typing(raw)
		}
		typing.Answered(countOf(err), 0)
	}))
	h.actions["typing"] = action{start: func(c *client, payload json.RawMessage, _ func(any, error)) { c.typing(payload) }}
	other := h.event(OtherEvents)
	h.ns.HandleUnknown(h.only(other, func(_ *client, e *socketio.Event) {
		other.Answered(chat.CodeUnknownEvent, 0)
		h.answer(nil, e, nil, chat.Errorf(chat.CodeUnknownEvent, ""))
	}))
}

// only lets an event through that is within the socket's limits. The events of a
// socket that speaks a dialect go to that: its names may be ours.
func (h *Hub) only(counts EventMetrics, handle func(*client, *socketio.Event)) func(*socketio.Event) {
	return func(e *socketio.Event) {
		c := clientOf(e.Socket())
		if c.view != nil {
			c.view.receive(c, e)
			return
		}
		if !h.limited(c, counts, e) {
			handle(c, e)
		}
	}
}

// answers are buffers for the answers of events that come with every message.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// keptAnswer is up to how many bytes such a buffer is used again.
const keptAnswer = 16 << 10

// queued registers an event whose handler returns at once and answers later,
// through done, which it calls exactly once. encode appends the whole answer.
func queued[Req, Res any](h *Hub, event string, handle func(*client, context.Context, Req, func(Res, error)), encode func([]byte, Res) []byte) {
	counts := h.event(event)
	h.ns.Handle(event, h.only(counts, func(c *client, e *socketio.Event) {
		start := now()
		req, err := decodeEvent[Req](e)
		if err != nil {
			counts.Answered(countOf(err), start.passed())
			h.answer(nil, e, nil, err)
			return
		}
		ctx, span := c.trace(context.Background(), event)
		handle(c, ctx, req, func(res Res, err error) {
			counts.Answered(countOf(err), start.passed())
			chat.EndSpan(span, err)
			if err != nil {
				h.answer(span, e, nil, err)
				return
			}
			buf := answers.Get().(*[]byte)
			*buf = encode((*buf)[:0], res)
			h.answer(span, e, *buf, nil) // which copies it
			if cap(*buf) <= keptAnswer {
				answers.Put(buf)
			}
		})
	}))
	h.actions[event] = action{start: func(c *client, payload json.RawMessage, reply func(any, error)) {
		req, err := decode[Req](payload)
		if err != nil {
			reply(nil, err)
			return
		}
		ctx, span := c.trace(context.Background(), event)
		handle(c, ctx, req, func(res Res, err error) {
			chat.EndSpan(span, err)
			reply(res, err)
		})
	}}
}

// reading registers an event whose handler waits for the database. It runs in the
// hub's pool; a socket that has too many waiting is not read until one is done.
func reading[Req, Res any](h *Hub, event string, handle func(*client, context.Context, Req) (Res, error)) {
	counts := h.event(event)
	h.ns.Handle(event, h.only(counts, func(c *client, e *socketio.Event) {
		start := now()
		req, err := decodeEvent[Req](e)
		if err != nil {
			counts.Answered(countOf(err), start.passed())
			h.answer(nil, e, nil, err)
			return
		}
		c.read(func(ctx context.Context, err error) {
			ctx, span := c.trace(ctx, event)
			var answer json.RawMessage
			if err == nil {
				var res Res
				if res, err = handle(c, ctx, req); err == nil {
					answer, err = okAnswer(res)
				}
			}
			counts.Answered(countOf(err), start.passed())
			chat.EndSpan(span, err)
			h.answer(span, e, answer, err)
		})
	}))
	h.actions[event] = action{read: func(ctx context.Context, c *client, payload json.RawMessage) (answer any, err error) {
		req, err := decode[Req](payload)
		if err != nil {
			return nil, err
		}
		ctx, span := c.trace(ctx, event)
		answer, err = handle(c, ctx, req)
		chat.EndSpan(span, err)
		return answer, err
	}}
}

// read runs do in the hub's pool, or at once with an error if the hub has stopped. It
// waits while the socket has too much there, and with it the socket's reader.
func (c *client) read(do func(ctx context.Context, err error)) {
	select {
	case c.slots <- struct{}{}:
	case <-c.hub.stopped:
		do(context.Background(), chat.Errorf(chat.CodeUnavailable, ""))
		return
	}
	c.hub.reads.run(func() {
		defer func() { <-c.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		do(ctx, nil)
	})
}

// payloadOf is the event's one payload, an object; none and null are an empty one.
func payloadOf(e *socketio.Event) (json.RawMessage, error) {
	payload := e.Arg(0)
	raw := payload.Raw()
	if len(raw) > 0 && raw[0] == '{' {
		return raw, nil
	}
	if e.Args().Len() == 0 || payload.IsNull() {
		return json.RawMessage("{}"), nil
	}
	return nil, chat.InvalidArgument("payload", "the payload must be an object")
}

func decodeEvent[Req any](e *socketio.Event) (Req, error) {
	raw, err := payloadOf(e)
	if err != nil {
		var none Req
		return none, err
	}
	return decode[Req](raw)
}

// decode reads a payload. What has another shape is invalid_argument with its field.
func decode[Req any](raw json.RawMessage) (Req, error) {
	var req Req
	if flat, ok := any(&req).(flatRequest); ok {
		if decodeFlat(raw, flat) {
			return req, nil
		}
		req = *new(Req)
	}
	if err := json.Unmarshal(raw, &req); err != nil {
		var wrong *json.UnmarshalTypeError
		var known *chat.Error
		switch {
		case errors.As(err, &known):
			return req, known
		case errors.As(err, &wrong) && wrong.Field != "":
			return req, chat.InvalidArgument(wrong.Field, "%s must not be a %s", wrong.Field, wrong.Value)
		}
		return req, chat.InvalidArgument("payload", "the payload is not understood")
	}
	return req, nil
}

// okAnswer puts `ok: true` before the fields of v.
func okAnswer(v any) (json.RawMessage, error) {
	fields, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	const ok = `{"ok":true`
	if len(fields) < 2 || fields[0] != '{' {
		return nil, errors.New("events: an answer is an object")
	}
	answer := append(make([]byte, 0, len(ok)+len(fields)), ok...)
	if len(fields) > 2 {
		answer = append(answer, ',')
	}
	return append(answer, fields[1:]...), nil
}

type errorAnswer struct {
	OK    bool      `json:"ok"`
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code         chat.Code `json:"code"`
	Message      string    `json:"message"`
	Retryable    bool      `json:"retryable"`
	RetryAfterMs int64     `json:"retryAfterMs,omitempty"`
	Field        string    `json:"field,omitempty"`
}

// answer calls the client's callback, if it gave one. The span is the event's, for the log.
func (h *Hub) answer(span chat.Span, e *socketio.Event, answer json.RawMessage, err error) {
	var body any = answer
	if err != nil {
		body = errorAnswer{Error: h.errorBody(span, e, err)}
	}
	h.ack(e, body)
}

// errorBody is what a client is told of an error; what it is not told is logged.
func (h *Hub) errorBody(span chat.Span, e *socketio.Event, err error) errorBody {
	known := chat.AsError(err)
	if known.Code == chat.CodeInternal {
		h.log.ErrorContext(chat.WithSpan(context.Background(), span), "an event failed", "event", h.logged(e), whose(e.Socket()), "error", err)
	}
	return errorBody{known.Code, known.Message, known.Code.Retryable(), known.RetryAfter.Milliseconds(), known.Field}
}

func (h *Hub) ack(e *socketio.Event, body any) {
	if !e.HasAck() {
		return
	}
	if err := e.Ack(body); err != nil {
		h.log.Debug("an answer was not sent", "event", h.logged(e), whose(e.Socket()), "error", err)
	}
}

// conversationID reads a required id.
func conversationID(s *string) (chat.ID, error) {
	id, ok := parseID(s)
	if !ok {
		return id, chat.InvalidArgument("conversationId", "conversationId must be a conversation's id")
	}
	return id, nil
}

func parseID(s *string) (chat.ID, bool) {
	if s == nil {
		return chat.ID{}, false
	}
	return chat.UserRef(*s).ID()
}

// userRef reads a user's id, external id or number.
func userRef(field string, raw json.RawMessage) (chat.UserRef, error) {
	text := flatReader{b: string(raw)}
	if name, ok := text.quoted(); ok && text.end() {
		ref := chat.UserRef(name)
		return ref, ref.Check(field)
	}
	var ref chat.UserRef
	if len(raw) == 0 || json.Unmarshal(raw, &ref) != nil {
		return "", chat.InvalidArgument(field, "%s must be a user's id, external id or number", field)
	}
	return ref, ref.Check(field)
}

// requiredSeq reads a seq that must be there.
func requiredSeq(seq *int64) (int64, error) {
	if seq == nil || *seq < 1 {
		return 0, chat.InvalidArgument("seq", "seq is required and starts at 1")
	}
	return *seq, nil
}

// cursor is a cursor as the wire has it: null after the last page.
func cursor(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
