package events

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"xabar/chat"
	"xabar/gateway/dialect"
	"xabar/gateway/socketio"
)

// translated is a dialect's event on its way through the standard ones.
type translated struct {
	v    *view
	c    *client
	e    *socketio.Event
	form *dialect.Form // nil if the arguments fit none
	call dialect.Call

	start moment
}

// receive handles an event of a socket that speaks the dialect, on its reader.
func (v *view) receive(c *client, e *socketio.Event) {
	r := &translated{v: v, c: c, e: e, start: now()}
	if wait, ok := c.events.Take(v.hub.cfg.Limits.Events); !ok {
		v.hub.cfg.Metrics.RateLimited(LimitEvents)
		r.fail(chat.RateLimited(wait))
		return
	}
	if v.d.Client[e.Name()] == nil {
		r.fail(chat.Errorf(chat.CodeUnknownEvent, ""))
		return
	}
	args, err := decodeArgs(e.Args())
	if err == nil {
		r.form = v.d.Form(e.Name(), args)
	}
	if r.form == nil {
		r.fail(chat.InvalidArgument("payload", "the arguments are not understood"))
		return
	}
	if r.call, err = r.form.Call(v.d, args, c.remembered); err == nil {
		err = c.remember(r.call.Remember)
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.run()
}

// decodeArgs reads the arguments out of the read buffer, numbers as they are written.
func decodeArgs(args socketio.Args) ([]any, error) {
	values := make([]any, args.Len())
	for i := range values {
		decoder := json.NewDecoder(bytes.NewReader(args.Arg(i).Raw()))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// maxRemembered bounds a value that a socket is to remember, in characters.
const maxRemembered = 255

// remember keeps what later events of the socket refer to. It belongs to the reader.
// How many names there are is up to the description.
func (c *client) remember(values map[string]any) error {
	for name, v := range values {
		switch v := v.(type) {
		case string:
			if utf8.RuneCountInString(v) > maxRemembered {
				return chat.InvalidArgument(name, "%s has at most %d characters", name, maxRemembered)
			}
		case json.Number, bool, nil:
		default:
			return chat.InvalidArgument(name, "%s must be a text or a number", name)
		}
	}
	for name, v := range values {
		if c.remembered == nil {
			c.remembered = map[string]any{}
		}
		c.remembered[name] = v
	}
	return nil
}

// run does what the event asks for. What has to be looked up first is looked up in the
// pool; everything else keeps the order of the socket's events.
func (r *translated) run() {
	do := r.v.hub.actions[r.form.Event]
	switch {
	case r.form.Event == "":
		r.reply(nil, nil)
	case r.form.Event == "typing" && len(r.call.Refs) > 0:
		r.typing()
		r.count(nil)
	case r.form.Event == "typing" && do.start != nil: // it is never answered
		do.start(r.c, r.call.Payload, r.reply)
		r.count(nil)
	case len(r.call.Refs) == 0 && do.start != nil:
		do.start(r.c, r.call.Payload, r.reply)
	default:
		r.c.read(func(ctx context.Context, err error) {
			payload := r.call.Payload
			if err == nil {
				payload, err = r.lookUp(ctx)
			}
			switch {
			case err != nil:
				r.fail(err)
			case do.start != nil:
				do.start(r.c, payload, r.reply)
			default:
				answer, err := do.read(ctx, r.c, payload)
				r.replyNow(ctx, answer, err)
			}
		})
	}
}

// typing to a user: the conversation is looked up only as often as typing is passed on.
func (r *translated) typing() {
	ref, err := refOf(r.call.Refs[dialect.RefPeer])
	if err != nil || !r.c.mayType(typingKey{peer: string(ref)}, time.Now()) {
		return
	}
	r.c.typeIn(func(ctx context.Context) (chat.ID, error) {
		id, _, err := r.v.hub.service.FindDirect(ctx, r.c.caller(), ref, dialect.RefPeer)
		return id, err
	})
}

// lookUp replaces references by what they stand for. All that name a conversation must
// name the same one.
func (r *translated) lookUp(ctx context.Context) (json.RawMessage, error) {
	var conversation chat.ID
	fields := map[string]int64{}
	same := func(id chat.ID) error {
		if conversation != (chat.ID{}) && conversation != id {
			return chat.Errorf(chat.CodeNotFound, "")
		}
		conversation = id
		return nil
	}
	for name, value := range r.call.Refs {
		if value == nil && (name == dialect.RefBefore || name == dialect.RefAfter) {
			continue
		}
		id, seq, err := r.find(ctx, name, value)
		if err == nil {
			err = same(id)
		}
		if err != nil {
			return nil, err
		}
		if field := seqField[name]; field != "" {
			fields[field] = seq
		}
	}
	payload := bytes.TrimSuffix(bytes.Clone(r.call.Payload), []byte("}"))
	add := func(name, value string) {
		if len(payload) > 1 {
			payload = append(payload, ',')
		}
		payload = append(payload, `"`+name+`":`+value...)
	}
	if conversation != (chat.ID{}) {
		add("conversationId", `"`+conversation.String()+`"`)
	}
	for name, seq := range fields {
		add(name, strconv.FormatInt(seq, 10))
	}
	return append(payload, '}'), nil
}

// seqField is the field that a reference to a message stands for beside conversationId.
var seqField = map[string]string{
	dialect.RefMessage: "seq", dialect.RefBefore: "beforeSeq", dialect.RefAfter: "afterSeq",
}

func (r *translated) find(ctx context.Context, name string, value any) (conversation chat.ID, seq int64, err error) {
	service, actor := r.v.hub.service, r.c.caller()
	if name == dialect.RefPeer {
		ref, err := refOf(value)
		if err != nil {
			return chat.ID{}, 0, err
		}
		conversation, _, err = service.FindDirect(ctx, actor, ref, name)
		return conversation, 0, err
	}
	number, ok := value.(json.Number)
	n, err := number.Int64()
	if !ok || err != nil || n < 1 {
		return chat.ID{}, 0, chat.InvalidArgument(name, "%s must be a message's number", name)
	}
	m, err := service.Message(ctx, actor, n)
	if err == nil && (r.form.SkipOwn && m.SenderID == actor.User.ID || r.v.d.DirectOnly && r.isGroup(ctx, m.ConversationID)) {
		err = chat.Errorf(chat.CodeNotFound, "")
	}
	return m.ConversationID, m.Seq, err
}

func (r *translated) isGroup(ctx context.Context, conversation chat.ID) bool {
	pair, err := r.v.hub.service.Pair(ctx, r.c.caller(), conversation)
	return err == nil && pair == nil
}

func refOf(value any) (chat.UserRef, error) {
	switch v := value.(type) {
	case string:
		return chat.UserRef(v), chat.UserRef(v).Check(dialect.RefPeer)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return chat.UserRef(strconv.FormatInt(n, 10)), nil
		}
	}
	return "", chat.InvalidArgument(dialect.RefPeer, "%s must be a user's id, external id or number", dialect.RefPeer)
}

// reply shapes an answer. It does not block: what has to be looked up for it is looked
// up in the pool.
func (r *translated) reply(answer any, err error) {
	if err == nil && r.answers() && r.form.AnswerNeeds() != 0 {
		r.v.hub.reads.run(func() {
			ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
			defer cancel()
			r.replyNow(ctx, answer, nil)
		})
		return
	}
	r.replyNow(context.Background(), answer, err)
}

func (r *translated) replyNow(ctx context.Context, answer any, err error) {
	var shaped json.RawMessage
	if err == nil && r.answers() {
		shaped, err = r.shape(ctx, answer)
	}
	switch {
	case err != nil:
		r.fail(err)
		return
	case shaped != nil:
		r.v.hub.ack(r.e, shaped)
	}
	r.count(nil)
}

// count counts the event, under the standard name that it stands for.
func (r *translated) count(err error) {
	name := OtherEvents
	if r.form != nil && r.form.Event != "" {
		name = r.form.Event
	}
	r.v.hub.counts[name].Answered(countOf(err), r.start.passed())
}

// answers says whether the client waits for an answer, and the dialect has one.
func (r *translated) answers() bool { return r.e.HasAck() && r.form.HasAnswer() }

func (r *translated) shape(ctx context.Context, answer any) (json.RawMessage, error) {
	values := r.call.Values
	for name, v := range valuesOf(answer) {
		values[name] = v
	}
	if err := r.v.hub.dress(ctx, r.c.caller(), r.form.AnswerNeeds(), messagesIn(values)); err != nil {
		return nil, err
	}
	return r.form.Answer(r.v.d, values)
}

// fail answers with an error where the dialect answers at all.
func (r *translated) fail(err error) {
	r.count(err)
	body := r.v.hub.errorBody(nil, r.e, err)
	known := r.v.d.Client[r.e.Name()] != nil
	if known && (r.form != nil && !r.form.HasAnswer() || !r.v.d.Answers(r.e.Name())) {
		return
	}
	if r.form != nil && body.Field != "" {
		name := r.form.FieldName(body.Field)
		body.Message, body.Field = strings.ReplaceAll(body.Message, body.Field, name), name
	}
	shaped, ok, err := r.v.d.Failure(r.form, body.Code, valuesOf(body))
	switch {
	case err != nil:
		r.v.hub.log.Error("an error answer has no shape", "event", r.v.hub.logged(r.e), r.c.who(), "dialect", r.v.d.Name, "error", err)
	case ok:
		r.v.hub.ack(r.e, shaped)
	default:
		r.v.hub.ack(r.e, errorAnswer{Error: body})
	}
}
