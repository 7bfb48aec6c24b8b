package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"xabar/chat"
	"xabar/persistence/groupcommit"
)

type sendItem = groupcommit.Item[chat.SendMessage, chat.SendResult]

// Send implements chat.MessageStore.
func (s *Store) Send(ctx context.Context, cmd chat.SendMessage, done func(chat.SendResult, error)) {
	s.sends.Enqueue(ctx, groupcommit.Key(cmd.ConversationID), cmd, done)
}

// execSends stores a batch. The statement looks for repeats in the database only,
// so a batch is cut before an item that repeats one of its own.
func (s *Store) execSends(ctx context.Context, _ int, batch []*sendItem) {
	for len(batch) > 0 {
		n, copies := cutRepeats(batch)
		s.runSends(ctx, batch[:n], copies)
		for again, first := range copies {
			answerLike(again, first)
		}
		batch = batch[n:]
	}
}

type sendKey struct {
	sender chat.ID
	id     string
}

// cutRepeats finds how many items from the front can go together. A plain repeat
// of one among them (copies: repeat to first) needs no look-up at all.
func cutRepeats(batch []*sendItem) (n int, copies map[*sendItem]*sendItem) {
	if len(batch) == 1 {
		return 1, nil
	}
	seen := make(map[sendKey]*sendItem, len(batch))
	for i, it := range batch {
		key := sendKey{it.Req.SenderID, it.Req.ClientMsgID}
		first, repeated := seen[key]
		if !repeated {
			seen[key] = it
			continue
		}
		if first.Req.ConversationID != it.Req.ConversationID || !equal(first.Req.ReplyToSeq, it.Req.ReplyToSeq) {
			return i, copies
		}
		if copies == nil {
			copies = map[*sendItem]*sendItem{}
		}
		copies[it] = first
	}
	return len(batch), copies
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

func answerLike(again, first *sendItem) {
	again.Err = first.Err
	if first.Err == nil {
		again.Res = chat.SendResult{Message: first.Res.Message, Duplicate: true}
	}
}

// runSends runs the statement for the items that copies doesn't answer.
func (s *Store) runSends(ctx context.Context, items []*sendItem, copies map[*sendItem]*sendItem) {
	sorted := make([]*sendItem, 0, len(items))
	for _, it := range items {
		if copies[it] == nil {
			sorted = append(sorted, it)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *sendItem) int {
		return bytes.Compare(a.Req.ConversationID[:], b.Req.ConversationID[:])
	})
	s.storeSends(ctx, sorted)
}

// storeSends stores sorted items, or sets their errors. An item that the database
// can't take makes the statement fail as a whole; halving finds it.
func (s *Store) storeSends(ctx context.Context, items []*sendItem) {
	b := &sendBatch{items: items, ids: make([]chat.ID, len(items)), sent: make([]sentItem, len(items))}
	for i := range b.ids {
		b.ids[i] = chat.NewID()
	}
	err := again(ctx, func() error { return s.sendOnce(ctx, b) })
	switch {
	case err == nil:
		err = b.answer(ctx, s)
	case badData(err) && len(items) > 1:
		half := len(items) / 2
		s.storeSends(ctx, items[:half])
		s.storeSends(ctx, items[half:])
		return
	case hasState(err, stateCheckViolation):
		err = textError(items[0].Req.Text)
	}
	if err != nil {
		for _, it := range items {
			it.Res, it.Err = chat.SendResult{}, err
		}
	}
}

// textError is for a text that passed no check but the database's.
func textError(text string) error {
	if text == "" {
		return chat.Errorf(chat.CodeTextEmpty, "")
	}
	return chat.Errorf(chat.CodeTextTooLong, "")
}

// sendOnce runs a statement that stores b, and reads its rows.
func (s *Store) sendOnce(ctx context.Context, b *sendBatch) error {
	b.reset()
	if b.plain() {
		if err := s.sendOne(ctx, b); err != nil || b.good > 0 {
			return err
		}
	}
	return runBinary(ctx, s.write, sendStatement, b.params(s), b.read)
}

// params are sendSQL's.
func (b *sendBatch) params(s *Store) [][]byte {
	n := len(b.items)
	ids, convs, senders := newArray(oidUUID, n, 16), newArray(oidUUID, n, 16), newArray(oidUUID, n, 16)
	clientIDs, texts, replies := newArray(oidText, n, 40), newArray(oidText, n, 160), newArray(oidInt8, n, 8)
	system := newArray(oidBool, n, 1)
	for i, it := range b.items {
		ids.id(b.ids[i])
		convs.id(it.Req.ConversationID)
		senders.id(it.Req.SenderID)
		clientIDs.text(it.Req.ClientMsgID)
		texts.text(it.Req.Text)
		replies.optional(it.Req.ReplyToSeq)
		system.bool(it.Req.System)
	}
	return [][]byte{
		ids.b, convs.b, senders.b, clientIDs.b, texts.b, replies.b, system.b,
		timestamp(s.now()), s.leaseFrom(), seconds(chat.OutboxLease), integer(chat.ReceiptMembers),
	}
}

// leaseFrom is when a lease starts: by the database's clock, which all nodes
// share (NULL), unless the Store was given a clock of its own.
func (s *Store) leaseFrom() []byte {
	if s.opts.Clock == (chat.SystemClock{}) {
		return nil
	}
	return timestamp(s.now())
}

func seconds(d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(nil, math.Float64bits(d.Seconds()))
}

func integer(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// sendBatch is a sorted batch and what the statement says of it.
type sendBatch struct {
	items    []*sendItem
	ids      []chat.ID // the messages'
	sent     []sentItem
	numbered map[chat.ID]*numbered
	good     int // items that were to be inserted
	inserted int
}

// sentItem is a rowItem.
type sentItem struct {
	status          int64
	delivered, read int64    // the sender's positions before
	peer            *chat.ID // of a direct conversation
	stored          chat.Message
}

// numbered is a rowConversation.
type numbered struct {
	lastSeq, version, n, run int64
	memberCount              int
	at                       chat.Time
	leadMoved                bool
	used                     int64   // how many of the n have been answered
	numbers                  []int64 // of the messages, by seq; 0 for a hole
}

// number notes the one that a message was given.
func (c *numbered) number(seq, number int64) {
	if c.numbers == nil {
		c.numbers = make([]int64, c.n)
	}
	c.numbers[seq-1-(c.lastSeq-c.n)] = number
}

// numberOf is that of the k-th message; 0 if it became a hole.
func (c *numbered) numberOf(k int64) int64 {
	if c.numbers == nil {
		return 0
	}
	return c.numbers[k-1]
}

func (b *sendBatch) reset() {
	b.numbered = map[chat.ID]*numbered{}
	b.good, b.inserted = 0, 0
	clear(b.sent)
}

// read takes one row of the answer.
func (b *sendBatch) read(r row) {
	switch r.int(0) {
	case rowItem:
		b.readItem(int(r.int(1))-1, r)
	case rowConversation:
		b.numbered[r.id(8)] = &numbered{
			lastSeq: r.int(1), version: r.int(2), memberCount: int(r.int(3)), n: r.int(4), run: r.int(5), at: r.time(11),
		}
	case rowLead:
		// The row's conversation has come before: UNION ALL answers in its order.
		b.numbered[r.id(8)].leadMoved = true
	case rowInserted:
		c := b.numbered[r.id(8)]
		c.number(r.int(1), r.int(15))
		b.inserted++
	}
}

func (b *sendBatch) readItem(i int, r row) {
	it := sentItem{status: r.int(2), delivered: r.int(3), read: r.int(4), peer: r.optionalID(8)}
	switch it.status {
	case statusGood:
		b.good++
	case statusRepeat:
		req := &b.items[i].Req
		it.stored = chat.Message{
			ID: r.id(9), ConversationID: r.id(10), Seq: r.int(5), Version: r.int(6), ReplyToSeq: r.optional(7),
			CreatedAt: r.time(11), EditedAt: r.optionalTime(12), DeletedAt: r.optionalTime(13), Text: string(r[14]), Number: r.int(15),
			SenderID: req.SenderID, ClientMsgID: req.ClientMsgID,
		}
	}
	b.sent[i] = it
}

// answer fills in the results.
func (b *sendBatch) answer(ctx context.Context, s *Store) error {
	for i, it := range b.items {
		switch got := &b.sent[i]; got.status {
		case statusGood:
			it.Res, it.Err = b.result(i)
		case statusRepeat:
			it.Res, it.Err = repeated(got.stored, it.Req.ConversationID)
		case statusStranger:
			it.Err = chat.Errorf(chat.CodeNotFound, "")
		case statusBlocked:
			it.Err = chat.Errorf(chat.CodeForbidden, "")
		case statusNoSuchReply:
			it.Err = chat.InvalidArgument("replyToSeq", "replyToSeq must be a message of the conversation")
		}
	}
	if b.inserted < b.good {
		return b.answerRaced(ctx, s)
	}
	return nil
}

// repeated is the answer to a repeat: the message as first stored.
func repeated(stored chat.Message, asked chat.ID) (chat.SendResult, error) {
	if stored.ConversationID != asked {
		return chat.SendResult{}, chat.Errorf(chat.CodeConflict, "this clientMsgId was used in another conversation")
	}
	return chat.SendResult{Message: stored, Duplicate: true}, nil
}

// result is a good item's; the items of a conversation come in rising seq.
func (b *sendBatch) result(i int) (chat.SendResult, error) {
	req, got := &b.items[i].Req, &b.sent[i]
	c := b.numbered[req.ConversationID]
	if c == nil { // gone since the statement looked at the membership
		return chat.SendResult{}, chat.Errorf(chat.CodeNotFound, "")
	}
	c.used++
	base := c.lastSeq - c.n
	res := chat.SendResult{
		Message: chat.Message{
			ID: b.ids[i], ConversationID: req.ConversationID, Seq: base + c.used, Version: c.version - c.n + c.used,
			SenderID: req.SenderID, ClientMsgID: req.ClientMsgID, Text: req.Text, ReplyToSeq: req.ReplyToSeq, CreatedAt: c.at,
			Number: c.numberOf(c.used),
		},
		Kind: chat.Group, MemberCount: c.memberCount,
	}
	if got.peer != nil {
		res.Kind, res.MemberIDs = chat.Direct, pair(req.SenderID, *got.peer)
	}
	res.Sender = senderMove(c, got, c.used)
	res.Sender.Kind, res.Sender.MemberIDs, res.Sender.MemberCount = res.Kind, res.MemberIDs, res.MemberCount
	return res, nil
}

// senderMove is how the k-th message of the batch moved its sender's positions:
// the first run of one sender's messages moves them if its first one does.
func senderMove(c *numbered, got *sentItem, k int64) chat.PositionResult {
	base := c.lastSeq - c.n
	move := chat.PositionResult{
		OldDelivered: got.delivered, NewDelivered: got.delivered,
		OldRead: got.read, NewRead: got.read, LastSeq: base + k,
	}
	if !c.leadMoved || k > c.run {
		return move
	}
	move.NewDelivered, move.NewRead, move.At = base+k, base+k, c.at
	if k > 1 {
		move.OldDelivered, move.OldRead = base+k-1, base+k-1
	}
	return move
}

// pair is both members, in the order of their ids.
func pair(a, b chat.ID) []chat.ID {
	if bytes.Compare(a[:], b[:]) > 0 {
		a, b = b, a
	}
	return []chat.ID{a, b}
}

// answerRaced corrects the answers of messages that another node stored at the
// same moment: what they numbered stays a hole, what is stored is the answer.
func (b *sendBatch) answerRaced(ctx context.Context, s *Store) error {
	stored := make([]*chat.Message, len(b.items))
	senders, clientIDs := newArray(oidUUID, len(b.items), 16), newArray(oidText, len(b.items), 40)
	for _, it := range b.items {
		senders.id(it.Req.SenderID)
		clientIDs.text(it.Req.ClientMsgID)
	}
	err := again(ctx, func() error {
		return runBinary(ctx, s.write, racedStatement, [][]byte{senders.b, clientIDs.b}, func(r row) {
			i := r.int(0) - 1
			stored[i] = &chat.Message{
				ID: r.id(1), ConversationID: r.id(2), Seq: r.int(3), Version: r.int(4), Text: string(r[5]), ReplyToSeq: r.optional(6),
				CreatedAt: r.time(7), EditedAt: r.optionalTime(8), DeletedAt: r.optionalTime(9), Number: r.int(10),
				SenderID: b.items[i].Req.SenderID, ClientMsgID: b.items[i].Req.ClientMsgID,
			}
		})
	})
	if err != nil {
		return err // committed or not: the repeat tells each
	}
	for i, it := range b.items {
		switch {
		case b.sent[i].status != statusGood, it.Err != nil, stored[i] != nil && stored[i].ID == b.ids[i]:
		case stored[i] == nil: // won by a message that has been erased since
			it.Res, it.Err = chat.SendResult{}, chat.Errorf(chat.CodeUnavailable, "")
		default:
			it.Res, it.Err = repeated(*stored[i], it.Req.ConversationID)
		}
	}
	return nil
}
