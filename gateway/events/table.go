package events

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"xabar/chat"
	"xabar/gateway/socketio"
)

// registerEvents is the table of everything that a client may emit. An event that
// stands here needs a row in docs/protocol.md.
func (h *Hub) registerEvents() {
	// These answer in the order of the events, from the store's queues.
	queued(h, "message:send", (*client).send)
	queued(h, "message:delivered", (*client).markDelivered)
	queued(h, "message:read", (*client).markRead)

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

	h.ns.Handle("typing", func(e *socketio.Event) {
		if !h.limited(e) {
			clientOf(e.Socket()).typing(e)
		}
	})
	h.ns.HandleUnknown(func(e *socketio.Event) {
		if h.limited(e) {
			return
		}
		h.answer(e, nil, chat.Errorf(chat.CodeUnknownEvent, ""))
	})
}

// queued registers an event whose handler returns at once and answers later,
// through done, which it calls exactly once.
func queued[Req any](h *Hub, event string, handle func(*client, Req, func(json.RawMessage, error))) {
	h.ns.Handle(event, func(e *socketio.Event) {
		if h.limited(e) {
			return
		}
		req, err := decode[Req](e)
		if err != nil {
			h.answer(e, nil, err)
			return
		}
		handle(clientOf(e.Socket()), req, func(answer json.RawMessage, err error) { h.answer(e, answer, err) })
	})
}

// reading registers an event whose handler waits for the database. It runs in the
// hub's pool; a socket that has too many waiting is not read until one is done.
func reading[Req, Res any](h *Hub, event string, handle func(*client, context.Context, Req) (Res, error)) {
	h.ns.Handle(event, func(e *socketio.Event) {
		if h.limited(e) {
			return
		}
		req, err := decode[Req](e)
		if err != nil {
			h.answer(e, nil, err)
			return
		}
		c := clientOf(e.Socket())
		select {
		case c.slots <- struct{}{}:
		case <-h.stopped:
			h.answer(e, nil, chat.Errorf(chat.CodeUnavailable, ""))
			return
		}
		h.reads.run(func() {
			defer func() { <-c.slots }()
			ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
			defer cancel()
			res, err := handle(c, ctx, req)
			if err != nil {
				h.answer(e, nil, err)
				return
			}
			answer, err := okAnswer(res)
			h.answer(e, answer, err)
		})
	})
}

// decode reads the event's one payload. What has another shape is
// invalid_argument with its field.
func decode[Req any](e *socketio.Event) (Req, error) {
	var req Req
	payload := e.Arg(0)
	raw := payload.Raw()
	if len(raw) == 0 || raw[0] != '{' {
		if e.Args().Len() == 0 || payload.IsNull() {
			raw = json.RawMessage("{}")
		} else {
			return req, chat.InvalidArgument("payload", "the payload must be an object")
		}
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

// answer calls the client's callback, if it gave one.
func (h *Hub) answer(e *socketio.Event, answer json.RawMessage, err error) {
	var body any = answer
	if err != nil {
		known := chat.AsError(err)
		if known.Code == chat.CodeInternal {
			h.log.Error("an event failed", "event", e.Name(), "socket", e.Socket().ID(), "error", err)
		}
		body = errorAnswer{Error: errorBody{
			known.Code, known.Message, known.Code.Retryable(), known.RetryAfter.Milliseconds(), known.Field,
		}}
	}
	if !e.HasAck() {
		return
	}
	if err := e.Ack(body); err != nil {
		h.log.Debug("an answer was not sent", "event", e.Name(), "socket", e.Socket().ID(), "error", err)
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

// flag is a JSON boolean.
func flag(b bool) string { return strconv.FormatBool(b) }

// cursor is a cursor as the wire has it: null after the last page.
func cursor(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
