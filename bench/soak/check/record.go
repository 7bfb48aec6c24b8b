package check

import (
	"hash/maphash"
	"strconv"
	"sync"

	"xabar/chat"
)

// Print stands for everything in a message that must be the same for all who hold it.
// 0 is no message.
type Print uint64

var printSeed = maphash.MakeSeed()

// PrintOf takes a message's print.
func PrintOf(m *chat.Message) Print {
	var h maphash.Hash
	h.SetSeed(printSeed)
	_, _ = h.Write(m.ID[:]) // none of these can fail
	_, _ = h.Write(m.ConversationID[:])
	_, _ = h.Write(m.SenderID[:])
	var buf [96]byte
	b := strconv.AppendInt(buf[:0], m.Seq, 10)
	b = strconv.AppendInt(append(b, ' '), m.Version, 10)
	b = strconv.AppendInt(append(b, ' '), m.CreatedAt.UnixMilli(), 10)
	if m.ReplyToSeq != nil {
		b = strconv.AppendInt(append(b, ' '), *m.ReplyToSeq, 10)
	}
	_, _ = h.Write(b)
	_, _ = h.WriteString(" " + m.ClientMsgID + " ")
	_, _ = h.WriteString(m.Text)
	return Print(max(h.Sum64(), 1))
}

// Record is what one device holds, over all its connections. Safe for concurrent use.
type Record struct {
	Device string
	User   chat.ID
	faults *Faults

	mu    sync.Mutex // guards the fields below
	lists map[chat.ID]*list
}

// list is a conversation's messages.
type list struct {
	prints     []Print // by seq - 1
	count      int
	contiguous int64 // all seqs up to here are held
	position   int64 // the device knows that it lacks nothing up to here
}

// NewRecord makes an empty record.
func NewRecord(device string, user chat.ID, faults *Faults) *Record {
	return &Record{Device: device, User: user, faults: faults, lists: map[chat.ID]*list{}}
}

func (r *Record) list(conversation chat.ID) *list {
	l := r.lists[conversation]
	if l == nil {
		l = &list{}
		r.lists[conversation] = l
	}
	return l
}

func (l *list) at(seq int64) Print {
	if seq < 1 || seq > int64(len(l.prints)) {
		return 0
	}
	return l.prints[seq-1]
}

// maxSeq bounds what a wrong seq can make the record allocate.
const maxSeq = 1 << 24

// Keep takes a message in, and says whether it is new.
func (r *Record) Keep(m *chat.Message) bool {
	if m.Seq < 1 || m.Seq > maxSeq {
		r.faults.Add(Invented, "%s was given seq %d of %s", r.Device, m.Seq, m.ConversationID)
		return false
	}
	print := PrintOf(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.list(m.ConversationID)
	if before := l.at(m.Seq); before != 0 {
		if before != print {
			r.faults.Add(Different, "%s was given two messages as seq %d of %s; the second is %q", r.Device, m.Seq, m.ConversationID, m.ClientMsgID)
		}
		return false
	}
	for int64(len(l.prints)) < m.Seq {
		l.prints = append(l.prints, 0)
	}
	l.prints[m.Seq-1] = print
	l.count++
	for l.at(l.contiguous+1) != 0 {
		l.contiguous++
	}
	return true
}

// Count is how many messages are held.
func (r *Record) Count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lists {
		n += l.count
	}
	return n
}

// Has says whether a message is held.
func (r *Record) Has(conversation chat.ID, seq int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list(conversation).at(seq) != 0
}

// Contiguous is the seq up to which all are held.
func (r *Record) Contiguous(conversation chat.ID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list(conversation).contiguous
}

// Advance says that nothing is missing up to seq, held or a hole.
func (r *Record) Advance(conversation chat.ID, seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.list(conversation)
	l.position = max(l.position, seq)
}

// Position is what Advance has said, or all that is held without a gap if that is more.
func (r *Record) Position(conversation chat.ID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.list(conversation)
	return max(l.position, l.contiguous)
}

// Positions are those of all conversations of which something is held.
func (r *Record) Positions() map[chat.ID]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	positions := make(map[chat.ID]int64, len(r.lists))
	for id, l := range r.lists {
		positions[id] = max(l.position, l.contiguous)
	}
	return positions
}

// Order is what one connection has heard live.
type Order struct {
	record *Record
	// caughtUp says that the server catches the connection up: where an acknowledgement
	// was late, older messages may come behind newer ones, in rising seq among themselves.
	caughtUp bool

	mu    sync.Mutex // guards heard
	heard map[chat.ID]*heard
}

type heard struct {
	high, late int64
	seen       map[int64]struct{} // where the server catches up
}

// NewOrder starts a connection of the record's device.
func NewOrder(record *Record, caughtUp bool) *Order {
	return &Order{record: record, caughtUp: caughtUp, heard: map[chat.ID]*heard{}}
}

// Hear takes a live message, in the order in which they come.
func (o *Order) Hear(conversation chat.ID, seq int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.heard[conversation]
	if h == nil {
		h = &heard{seen: map[int64]struct{}{}}
		o.heard[conversation] = h
	}
	name, faults := o.record.Device, o.record.faults
	if o.caughtUp {
		if _, twice := h.seen[seq]; twice {
			faults.Add(Doubled, "%s heard seq %d of %s twice on one connection", name, seq, conversation)
			return
		}
		h.seen[seq] = struct{}{}
	}
	switch {
	case seq > h.high:
		h.high = seq
	case seq == h.high:
		faults.Add(Doubled, "%s heard seq %d of %s twice on one connection", name, seq, conversation)
	case o.caughtUp && seq > h.late:
		h.late = seq
	default:
		faults.Add(Reordered, "%s heard seq %d of %s after %d on one connection", name, seq, conversation, max(h.late, h.high))
	}
}

// High are the highest seqs heard.
func (o *Order) High() map[chat.ID]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	high := make(map[chat.ID]int64, len(o.heard))
	for id, h := range o.heard {
		high[id] = h.high
	}
	return high
}
