package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"xabar/chat"
)

var sendCases = map[string]func(*env){
	"send/Stored": func(e *env) {
		a, b, c := e.pair()
		res, err := e.trySend(a, c, "X1", "salom 🙂")
		e.ok(err, "Send")
		m := res.Message
		if m.Seq != 1 || m.Version != 1 || m.SenderID != a || m.ConversationID != c || m.ClientMsgID != "X1" || m.Text != "salom 🙂" ||
			m.ID == (chat.ID{}) || !m.CreatedAt.Equal(chat.At(e.Clock.Now()).Time) || m.ReplyToSeq != nil || m.EditedAt != nil || m.DeletedAt != nil {
			e.Errorf("stored %+v", m)
		}
		if res.Duplicate || res.Kind != chat.Direct || res.MemberCount != 2 || len(res.MemberIDs) != 2 ||
			!slices.Contains(res.MemberIDs, a) || !slices.Contains(res.MemberIDs, b) {
			e.Errorf("answered %+v", res)
		}
		page, err := e.store.History(e.ctx, b, chat.HistoryQuery{ConversationID: c})
		e.ok(err, "History")
		if len(page.Messages) != 1 || page.Messages[0] != m {
			e.Errorf("history %+v, want %+v", page.Messages, m)
		}
		if v := e.view(b, c); v.LastMessage == nil || *v.LastMessage != m || v.LastSeq != 1 || v.Version != 1 || v.Unread != 1 {
			e.Errorf("the peer sees %+v", v)
		}
	},
	"send/Group": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1], u[2])
		res := e.send(u[1], c, "X1")
		if res.Kind != chat.Group || res.MemberIDs != nil || res.MemberCount != 3 || res.Message.Seq != 1 {
			e.Errorf("answered %+v", res)
		}
	},
	"send/RepeatInSequence": func(e *env) {
		a, b, c := e.pair()
		first := e.send(a, c, "X1")
		second := e.send(a, c, "X2")
		for range 2 {
			again, err := e.trySend(a, c, "X1", "another text")
			e.ok(err, "the repeat")
			if !again.Duplicate || again.Message != first.Message {
				e.Errorf("the repeat: %+v, want %+v", again, first.Message)
			}
			if again.Kind != "" || again.MemberIDs != nil || again.MemberCount != 0 || again.Sender.NewDelivered != 0 {
				e.Errorf("the rest of a repeat's answer is not zero: %+v", again)
			}
			e.Clock.Step(10 * time.Minute)
		}
		if other := e.send(b, c, "X1"); other.Duplicate || other.Message.Seq != 3 {
			e.Errorf("another sender's X1: %+v", other)
		}
		if n, err := e.Statements.CountMessages(c); err != nil || n != 3 || second.Message.Seq != 2 {
			e.Errorf("%d rows, %v; want 3", n, err)
		}
	},
	"send/RepeatAtOnce": func(e *env) {
		second := e.open(Tuning{})
		a, _, c := e.pair()
		var pending []<-chan sent
		for i := range 40 {
			store := e.store
			if i%2 == 1 {
				store = second
			}
			pending = append(pending, start(e.ctx, store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: "X1", Text: fmt.Sprint(i)}))
		}
		originals := 0
		var message chat.Message
		for i, p := range pending {
			s := wait(e, p)
			e.ok(s.err, "Send %d", i)
			if !s.Duplicate {
				originals++
			}
			if i == 0 {
				message = s.Message
			} else if s.Message != message {
				e.Errorf("answers differ: %+v and %+v", s.Message, message)
			}
		}
		if n, err := e.Statements.CountMessages(c); err != nil || n != 1 || originals != 1 {
			e.Errorf("%d rows, %v, %d originals; want 1", n, err, originals)
		}
	},
	"send/RepeatOnAnotherStore": func(e *env) {
		a, _, c := e.pair()
		first := e.send(a, c, "X1")
		e.store = e.open(Tuning{})
		if again := e.send(a, c, "X1"); !again.Duplicate || again.Message != first.Message {
			e.Errorf("the repeat on another node: %+v", again)
		}
		if next := e.send(a, c, "X2"); next.Message.Seq <= first.Message.Seq {
			e.Errorf("seq %d after %d", next.Message.Seq, first.Message.Seq)
		}
	},
	"send/RepeatInAnotherConversation": func(e *env) {
		a, _, c := e.pair()
		other := e.direct(a, e.user("x"))
		e.send(a, c, "X1")
		_, err := e.trySend(a, other, "X1", "text")
		e.code(chat.CodeConflict, err, "the same id elsewhere")
		if v := e.view(a, other); v.LastSeq != 0 {
			e.Errorf("a conflict took a number")
		}
	},
	"send/RepeatAfterLeaving": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1], u[2])
		first := e.send(u[1], c, "X1")
		e.ok(e.store.RemoveMember(e.ctx, u[1], c, u[1]), "leaving")
		if again := e.send(u[1], c, "X1"); !again.Duplicate || again.Message != first.Message {
			e.Errorf("the repeat: %+v", again)
		}
	},
	"send/Blocked": func(e *env) {
		a, b, c := e.pair()
		first := e.send(a, c, "X1")
		e.ok(e.store.Block(e.ctx, b, a), "Block")
		_, err := e.trySend(a, c, "X2", "text")
		e.code(chat.CodeForbidden, err, "Send of the blocked")
		_, err = e.trySend(b, c, "Y1", "text")
		e.code(chat.CodeForbidden, err, "Send of the blocking")
		if again := e.send(a, c, "X1"); again.Message != first.Message {
			e.Errorf("the repeat: %+v", again)
		}
		g := e.group(a, b)
		e.send(a, g, "X3") // direct conversations only
	},
	"send/Reply": func(e *env) {
		u := e.users(3)
		c := e.group(u[0], u[1])
		e.fill(u[0], c, 2)
		reply := func(sender chat.ID, id string, to int64) sent {
			return wait(e, start(e.ctx, e.store, chat.SendMessage{
				SenderID: sender, ConversationID: c, ClientMsgID: id, Text: "re", ReplyToSeq: &to,
			}))
		}
		s := reply(u[1], "R1", 1)
		e.ok(s.err, "reply")
		if s.Message.ReplyToSeq == nil || *s.Message.ReplyToSeq != 1 {
			e.Errorf("stored %+v", s.Message)
		}
		for _, to := range []int64{0, -1, 99} {
			s := reply(u[1], "R2", to)
			e.code(chat.CodeInvalidArgument, s.err, "reply to %d", to)
			if got := chat.AsError(s.err).Field; got != "replyToSeq" {
				e.Errorf("field %q", got)
			}
		}
		_, err := e.store.AddMembers(e.ctx, u[0], c, []chat.ID{u[2]})
		e.ok(err, "AddMembers")
		e.code(chat.CodeInvalidArgument, reply(u[2], "R3", 1).err, "reply to what was before one's joining")
		e.code(chat.CodeNotFound, reply(e.user("x"), "R4", 1).err, "reply of a stranger")
		if v := e.view(u[0], c); v.LastSeq != 3 {
			e.Errorf("a refused reply took a number: %d", v.LastSeq)
		}
		page, err := e.store.History(e.ctx, u[1], chat.HistoryQuery{ConversationID: c, Limit: 1})
		if err != nil || len(page.Messages) != 1 || page.Messages[0].ReplyToSeq == nil || *page.Messages[0].ReplyToSeq != 1 {
			e.Errorf("history %+v, %v", page.Messages, err)
		}
	},
	"send/DatabaseChecksText": func(e *env) {
		a, _, c := e.pair()
		for name, text := range map[string]string{
			"empty": "", "2001 characters": strings.Repeat("🙂", 2001),
		} {
			if err := e.Statements.InsertText(c, a, text); err == nil {
				e.Errorf("the database took a text of %s", name)
			}
		}
		e.ok(e.Statements.InsertText(c, a, strings.Repeat("🙂", 2000)), "2000 characters outside the BMP")
	},
	"send/BadItemFailsAlone": func(e *env) {
		a, b, c := e.pair()
		release := e.Stall(e.T)
		first := start(e.ctx, e.store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: "0", Text: "x"})
		var good, bad []<-chan sent
		for i := range 10 { // they wait for the first and share a batch
			good = append(good, start(e.ctx, e.store, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: fmt.Sprint("g", i), Text: "x"}))
			bad = append(bad, start(e.ctx, e.store, chat.SendMessage{SenderID: b, ConversationID: c, ClientMsgID: fmt.Sprint("b", i), Text: ""}))
			bad = append(bad, start(e.ctx, e.store, chat.SendMessage{SenderID: b, ConversationID: c, ClientMsgID: fmt.Sprint("n", i), Text: "a\x00b"}))
			bad = append(bad, start(e.ctx, e.store, chat.SendMessage{SenderID: b, ConversationID: chat.NewID(), ClientMsgID: fmt.Sprint("s", i), Text: "x"}))
		}
		release()
		e.ok(wait(e, first).err, "the first")
		last := int64(1)
		for _, p := range good {
			s := wait(e, p)
			e.ok(s.err, "a good one among bad ones")
			if s.Message.Seq <= last {
				e.Errorf("seq %d after %d", s.Message.Seq, last)
			}
			last = s.Message.Seq
		}
		for i, p := range bad {
			s := wait(e, p)
			if s.err == nil || chat.AsError(s.err).Code.Retryable() {
				e.Errorf("bad item %d: %v; want an error that a retry does not heal", i, s.err)
			}
		}
		if n, err := e.Statements.CountMessages(c); err != nil || n != 11 {
			e.Errorf("%d rows, %v; want 11", n, err)
		}
	},
}

var orderCases = map[string]func(*env){
	"order/OneSendersCalls": func(e *env) {
		a, _, c := e.pair()
		type answer struct {
			n   int
			seq int64
			err error
		}
		const sends = 200
		answers := make(chan answer, sends)
		for n := range sends {
			e.store.Send(e.ctx, chat.SendMessage{SenderID: a, ConversationID: c, ClientMsgID: fmt.Sprint(n), Text: "x"},
				func(res chat.SendResult, err error) { answers <- answer{n, res.Message.Seq, err} })
		}
		var last int64
		for n := range sends {
			got := wait(e, answers)
			e.ok(got.err, "Send")
			if got.n != n || got.seq <= last {
				e.Fatalf("answer %d is of call %d with seq %d after %d", n, got.n, got.seq, last)
			}
			last = got.seq
		}
		if e.NoHoles && last != sends {
			e.Errorf("the last seq is %d, want %d", last, sends)
		}
	},
	"order/ManySendersOfOneConversation": func(e *env) {
		second := e.open(Tuning{})
		u := e.users(10)
		c := e.group(u[0], u[1:]...)
		var mu sync.Mutex // guards got
		got := map[chat.Store][]int64{}
		var all sync.WaitGroup
		for _, store := range []chat.Store{e.store, second} {
			for _, sender := range u {
				for n := range 5 {
					all.Add(1)
					store.Send(e.ctx, chat.SendMessage{
						SenderID: sender, ConversationID: c, ClientMsgID: fmt.Sprintf("%p%d", store, n), Text: "x",
					}, func(res chat.SendResult, err error) {
						defer all.Done()
						if err != nil {
							e.Errorf("Send: %v", err)
						}
						mu.Lock()
						defer mu.Unlock()
						got[store] = append(got[store], res.Message.Seq)
					})
				}
			}
		}
		all.Wait()
		every := slices.Concat(got[e.store], got[second])
		for _, seqs := range got {
			if !slices.IsSorted(seqs) {
				e.Errorf("one store's answers for one conversation are not in rising seq: %v", seqs)
			}
		}
		slices.Sort(every)
		if len(slices.Compact(every)) != 100 || e.NoHoles && !slices.Equal(every, count(1, 100)) {
			e.Errorf("seqs %v", every)
		}
	},
	"order/ClockStepsBack": func(e *env) {
		a, b, c := e.pair()
		first := e.send(a, c, "1")
		e.Clock.Step(-5 * time.Minute)
		second := e.send(b, c, "2")
		if second.Message.Seq <= first.Message.Seq || second.Message.CreatedAt.Before(first.Message.CreatedAt.Time) {
			e.Errorf("after a step back: %+v then %+v", first.Message, second.Message)
		}
		if v := e.view(a, c); v.UpdatedAt.Before(first.Message.CreatedAt.Time) {
			e.Errorf("updatedAt fell to %v", v.UpdatedAt)
		}
		e.Clock.Step(10 * time.Minute)
		if third := e.send(a, c, "3"); !third.Message.CreatedAt.Equal(chat.At(e.Clock.Now()).Time) {
			e.Errorf("createdAt %v when the clock has caught up, want %v", third.Message.CreatedAt, e.Clock.Now())
		}
	},
	"order/Holes": func(e *env) {
		a, b, c := e.pair()
		e.send(a, c, "1")
		e.ok(e.Statements.Hole(c), "Hole")
		if got := e.send(a, c, "3").Message.Seq; got != 3 {
			e.Fatalf("seq %d after a hole at 2", got)
		}
		page, err := e.store.History(e.ctx, b, chat.HistoryQuery{ConversationID: c})
		if err != nil || !slices.Equal(seqs(page.Messages), []int64{3, 1}) || page.LastSeq != 3 {
			e.Errorf("history %v, %v", seqs(page.Messages), err)
		}
		if got := e.view(b, c).Unread; got != 3 {
			e.Errorf("unread %d: it is a subtraction, 3", got)
		}
		e.ok(e.Statements.Hole(c), "Hole")
		v := e.view(b, c)
		if v.LastSeq != 4 || v.LastMessage == nil || v.LastMessage.Seq != 3 {
			e.Errorf("with a hole at the end: %+v", v)
		}
		between, err := e.store.MessagesBetween(e.ctx, c, 2, 4)
		if err != nil || !slices.Equal(seqs(between), []int64{3}) {
			e.Errorf("MessagesBetween %v, %v", seqs(between), err)
		}
		e.deliver(b, c, 0, 1)
		if got := e.deliver(b, c, 1, 3).NewDelivered; got != 3 {
			e.Errorf("across a hole that the caller knows: delivered %d", got)
		}
	},
}
