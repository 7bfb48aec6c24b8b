package check

import (
	"time"

	"xabar/chat"
)

// Snapshot is what the database holds at one moment.
type Snapshot struct {
	Conversations map[chat.ID]*Conversation
	// Outbox is how many events wait to be fanned out.
	Outbox int
	// Due are the waits for notifications.
	Due []Due
	// Strays are rows that nothing owns, or that contradict another: how many there are, by
	// what they are.
	Strays map[string]int
}

// Conversation is a stored conversation.
type Conversation struct {
	ID                   chat.ID
	Kind                 chat.Kind
	LastSeq, Version     int64
	MemberCount          int
	Members              map[chat.ID]Member
	Messages             []Message // by seq
	UserLow, UserHigh    chat.ID   // of a direct conversation
	HoleAtEnd, HoleCount int64     // seqs that no message has; set by Check
}

// Member is a member's row.
type Member struct{ Joined, Delivered, Read int64 }

// Message is a stored message.
type Message struct {
	Seq, Number int64
	Sender      chat.ID
	ClientMsgID string
	CreatedAt   time.Time
	Print       Print
}

// Due is a wait for a notification.
type Due struct {
	User, Conversation chat.ID
	Seq                int64
	WakeAt             time.Time
}

// Check checks what the database says of itself. With rest, nothing may be under way: the
// outbox is empty, and so are the waits for notifications, as everything is delivered.
func (db *Snapshot) Check(faults *Faults, rest bool) {
	pairs := map[[2]chat.ID]chat.ID{}
	for _, c := range db.Conversations {
		c.check(faults)
		if c.Kind != chat.Direct {
			continue
		}
		pair := [2]chat.ID{c.UserLow, c.UserHigh}
		if other, twice := pairs[pair]; twice {
			faults.Add(Doubled, "%s and %s are conversations of the same two", other, c.ID)
		}
		pairs[pair] = c.ID
	}
	for what, n := range db.Strays {
		if n != 0 {
			faults.Add(Storage, "%d %s", n, what)
		}
	}
	if !rest {
		return
	}
	if db.Outbox != 0 {
		faults.Add(Storage, "%d events are left in the outbox", db.Outbox)
	}
	for _, d := range db.Due {
		faults.Add(Storage, "a wait for a notification of %s about seq %d of %s is left, though everything was read; it ends at %s",
			d.User, d.Seq, d.Conversation, d.WakeAt.Format(time.TimeOnly))
	}
}

func (c *Conversation) check(faults *Faults) {
	var last Message
	for _, m := range c.Messages {
		switch {
		case m.Seq == last.Seq:
			faults.Add(Doubled, "seq %d of %s is stored twice", m.Seq, c.ID)
		case m.Seq < last.Seq || m.Number <= last.Number:
			faults.Add(Reordered, "%s: seq %d (number %d) after seq %d (number %d)", c.ID, m.Seq, m.Number, last.Seq, last.Number)
		case m.CreatedAt.Before(last.CreatedAt):
			faults.Add(Reordered, "%s: seq %d was created %v before seq %d", c.ID, m.Seq, last.CreatedAt.Sub(m.CreatedAt), last.Seq)
		}
		last = m
	}
	c.HoleAtEnd = c.LastSeq - last.Seq
	c.HoleCount = c.LastSeq - int64(len(c.Messages))
	// A repeat that lost a race on another node leaves the number that it took: a hole. Its
	// conversation then ends in it until the next message.
	if c.HoleAtEnd < 0 {
		faults.Add(Storage, "%s: lastSeq is %d, and there is a seq %d", c.ID, c.LastSeq, last.Seq)
	}
	if c.Version < c.LastSeq {
		faults.Add(Storage, "%s: version %d is below lastSeq %d", c.ID, c.Version, c.LastSeq)
	}
	if c.MemberCount != len(c.Members) || c.Kind == chat.Direct && len(c.Members) != 2 {
		faults.Add(Storage, "%s: %d members are counted and %d are there", c.ID, c.MemberCount, len(c.Members))
	}
	for user, m := range c.Members {
		if m.Read < 0 || m.Joined < 0 || m.Delivered < m.Read || m.Delivered > c.LastSeq {
			faults.Add(Positions, "%s: %s has joined after %d, received up to %d and read up to %d of %d", c.ID, user, m.Joined, m.Delivered, m.Read, c.LastSeq)
		}
	}
}

// Holes is how many numbers no message has.
func (db *Snapshot) Holes() (n int64) {
	for _, c := range db.Conversations {
		n += c.LastSeq - int64(len(c.Messages))
	}
	return n
}

// CompareRecord says whether a device holds what the database does, and nothing else.
func (db *Snapshot) CompareRecord(r *Record, faults *Faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, c := range db.Conversations {
		member, is := c.Members[r.User]
		if !is {
			continue
		}
		l := r.list(id)
		wanted := 0
		for i := range c.Messages {
			m := &c.Messages[i]
			if m.Seq <= member.Joined {
				continue
			}
			wanted++
			switch l.at(m.Seq) {
			case m.Print:
			case 0:
				faults.Add(Lost, "%s lacks seq %d of %s (of %d; it holds %d)", r.Device, m.Seq, id, c.LastSeq, l.count)
			default:
				faults.Add(Different, "%s holds another seq %d of %s than is stored", r.Device, m.Seq, id)
			}
		}
		if l.count > wanted {
			faults.Add(Invented, "%s holds %d messages of %s, of which %d are stored", r.Device, l.count, id, wanted)
		}
	}
	for id, l := range r.lists {
		if c := db.Conversations[id]; l.count > 0 && (c == nil || !c.has(r.User)) {
			faults.Add(Invented, "%s holds messages of %s, of which its user is no member", r.Device, id)
		}
	}
}

func (c *Conversation) has(user chat.ID) bool {
	_, is := c.Members[user]
	return is
}

// CompareDelivered says whether a stored position claims a message that none of the user's
// devices holds. Records are compared after the snapshot was taken: a device holds a
// message before it acknowledges it. Own messages are held from the start.
func (db *Snapshot) CompareDelivered(user chat.ID, devices []*Record, faults *Faults) {
	for id, c := range db.Conversations {
		member, is := c.Members[user]
		if !is {
			continue
		}
		for _, m := range c.Messages {
			if m.Seq <= member.Joined || m.Seq > member.Delivered || m.Sender == user {
				continue
			}
			holds := false
			for _, r := range devices {
				holds = holds || r.Has(id, m.Seq)
			}
			if !holds {
				faults.Add(Positions, "%s: %s has received up to %d, the database says, but none of its devices holds %d", id, user, member.Delivered, m.Seq)
			}
		}
	}
}

// CompareView says whether what a user is told of a conversation is what is stored.
func (db *Snapshot) CompareView(user chat.ID, views []chat.Conversation, unreadTotal int64, faults *Faults) {
	told := map[chat.ID]bool{}
	total := int64(0)
	for i := range views {
		v := &views[i]
		c := db.Conversations[v.ID]
		if told[v.ID] {
			faults.Add(Doubled, "the list of %s has %s twice", user, v.ID)
		}
		told[v.ID] = true
		if c == nil || !c.has(user) {
			faults.Add(Invented, "the list of %s has %s", user, v.ID)
			continue
		}
		m := c.Members[user]
		total += v.Unread
		if v.LastSeq != c.LastSeq || v.LastReadSeq != m.Read || v.LastDeliveredSeq != m.Delivered || v.Unread != c.LastSeq-m.Read {
			faults.Add(Different, "%s is told of %s: last %d, received %d, read %d, unread %d; stored are %d, %d, %d", user, v.ID,
				v.LastSeq, v.LastDeliveredSeq, v.LastReadSeq, v.Unread, c.LastSeq, m.Delivered, m.Read)
		}
		if n := len(c.Messages); n > 0 && (v.LastMessage == nil || PrintOf(v.LastMessage) != c.Messages[n-1].Print) {
			faults.Add(Different, "%s is told of another last message of %s than seq %d", user, v.ID, c.Messages[n-1].Seq)
		}
	}
	for id, c := range db.Conversations {
		if c.has(user) && !told[id] {
			faults.Add(Lost, "the list of %s lacks %s", user, id)
		}
	}
	if total != unreadTotal {
		faults.Add(Different, "%s is told of %d unread messages in all, and of %d in its conversations", user, unreadTotal, total)
	}
}
