package postgres

import (
	"xabar/chat"
)

// memberKey is a conversation's and a user's id: the order of locks.
type memberKey [32]byte

func keyOf(m chat.PositionMove) (k memberKey) {
	copy(k[:16], m.ConversationID[:])
	copy(k[16:], m.UserID[:])
	return k
}

// claim is several moves of one member, said as one: after everything up to sure
// is delivered and everything up to read is read, what is delivered reaches upTo if
// it is at after or beyond. It gives exactly what the moves one by one would.
type claim struct {
	key         memberKey
	sure, read  int64
	after, upTo int64 // upTo 0: no such part
	moves       []*moveItem

	// What the database said.
	found, moved          bool
	delivered, seen       int64 // before
	newDelivered, newSeen int64 // of the row as written, when moved
	lastSeq, memberCount  int64
	peer                  *chat.ID
}

// add takes the move in, if that changes nothing in what the moves mean together.
func (c *claim) add(it *moveItem) bool {
	m := it.Req
	switch {
	case m.Kind == chat.Read:
		if c.upTo > 0 { // read comes after the conditional part
			return false
		}
		c.sure, c.read = max(c.sure, m.UpTo), max(c.read, m.UpTo)
	case c.upTo == 0 && m.After <= c.sure:
		c.sure = max(c.sure, m.UpTo)
	case c.upTo == 0:
		c.after, c.upTo = m.After, m.UpTo
	case c.after <= m.After && m.After <= c.upTo: // goes on where the last one ended
		c.upTo = max(c.upTo, m.UpTo)
	case c.sure < m.After && m.After <= c.after && m.UpTo >= c.upTo: // says all of it and more
		c.after, c.upTo = m.After, m.UpTo
	default:
		return false
	}
	c.moves = append(c.moves, it)
	return true
}

// rounds sorts moves into claims and claims into statements: one statement holds
// one claim of a member at most, a member's claims keep their order.
func rounds(batch []*moveItem) [][]*claim {
	var all [][]*claim
	last := make(map[memberKey]int, len(batch)) // member: the round of its last claim
	at := make(map[memberKey]*claim, len(batch))
	for _, it := range batch {
		key := keyOf(it.Req)
		if c := at[key]; c != nil && c.add(it) {
			continue
		}
		round, again := last[key]
		if again {
			round++
		}
		if round == len(all) {
			all = append(all, nil)
		}
		c := &claim{key: key}
		c.add(it)
		last[key], at[key] = round, c
		all[round] = append(all[round], c)
	}
	return all
}

// readRow takes a row of moveSQL's answer.
func (c *claim) readRow(r row) {
	if r.int(0) == 2 {
		c.moved, c.newDelivered, c.newSeen = true, r.int(2), r.int(3)
		return
	}
	c.found, c.delivered, c.seen, c.lastSeq, c.memberCount = true, r.int(2), r.int(3), r.int(4), r.int(5)
	c.peer = r.optionalID(6)
}

// answer gives each move its own part of what the claim moved.
func (c *claim) answer(now chat.Time) {
	if !c.found {
		for _, it := range c.moves {
			it.Err = chat.Errorf(chat.CodeNotFound, "")
		}
		return
	}
	delivered, read := c.delivered, c.seen
	for _, it := range c.moves {
		res := chat.PositionResult{OldDelivered: delivered, OldRead: read, LastSeq: c.lastSeq, MemberCount: int(c.memberCount), Kind: chat.Group}
		if c.peer != nil {
			res.Kind, res.MemberIDs = chat.Direct, pair(it.Req.UserID, *c.peer)
		}
		delivered, read = step(delivered, read, it.Req, c.lastSeq)
		res.NewDelivered, res.NewRead = delivered, read
		it.Res = res
	}
	c.settle(delivered, read)
	for _, it := range c.moves {
		if r := &it.Res; r.NewDelivered > r.OldDelivered || r.NewRead > r.OldRead {
			r.At = now
		}
	}
}

// settle corrects the results where another node moved the same position at the
// same moment: what it moved beyond us is its news, not ours.
func (c *claim) settle(delivered, read int64) {
	moved := c.moved
	lost := func(final, ours, before int64) bool { return moved && final != ours || !moved && ours != before }
	if lost(c.newDelivered, delivered, c.delivered) {
		final := max(delivered, c.newDelivered)
		for _, it := range c.moves {
			it.Res.OldDelivered, it.Res.NewDelivered = final, final
		}
	}
	if lost(c.newSeen, read, c.seen) {
		final := max(read, c.newSeen)
		for _, it := range c.moves {
			it.Res.OldRead, it.Res.NewRead = final, final
		}
	}
}

// step is one move's effect on positions.
func step(delivered, read int64, m chat.PositionMove, lastSeq int64) (int64, int64) {
	upTo := min(m.UpTo, lastSeq)
	switch {
	case m.Kind == chat.Read:
		return max(delivered, upTo), max(read, upTo)
	case delivered >= m.After:
		return max(delivered, upTo), read
	default:
		return delivered, read
	}
}
