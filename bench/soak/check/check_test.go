package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xabar/chat"
)

var (
	ada, bob     = chat.NewID(), chat.NewID()
	conversation = chat.NewID()
	born         = chat.At(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
)

// message is Ada's message of this seq.
func message(seq int64) chat.Message {
	return chat.Message{
		ID: chat.ID{15: byte(seq)}, ConversationID: conversation, Seq: seq, Version: seq, SenderID: ada,
		ClientMsgID: fmt.Sprint("m", seq), Text: "salom", CreatedAt: chat.At(born.Add(time.Duration(seq) * time.Second)), Number: seq,
	}
}

// sound is a deployment in which five messages have been sent and all is well.
type sound struct {
	faults *Faults
	db     *Snapshot
	sends  *Sends
	bobs   *Record
}

func newSound() *sound {
	f := &Faults{}
	c := &Conversation{
		ID: conversation, Kind: chat.Direct, LastSeq: 5, Version: 5, MemberCount: 2, UserLow: ada, UserHigh: bob,
		Members: map[chat.ID]Member{ada: {Delivered: 5, Read: 5}, bob: {Delivered: 5, Read: 3}},
	}
	s := &sound{faults: f, db: &Snapshot{Conversations: map[chat.ID]*Conversation{conversation: c}}, sends: NewSends(f), bobs: NewRecord("bob/0", bob, f)}
	for seq := int64(1); seq <= 5; seq++ {
		m := message(seq)
		c.Messages = append(c.Messages, Message{Seq: seq, Number: seq, Sender: ada, ClientMsgID: m.ClientMsgID, CreatedAt: m.CreatedAt.Time, Print: PrintOf(&m)})
		s.sends.Attempt(ada, conversation, m.ClientMsgID)
		s.sends.Acknowledged(&m)
		s.bobs.Keep(&m)
	}
	return s
}

func (s *sound) conversation() *Conversation { return s.db.Conversations[conversation] }

// check asks everything.
func (s *sound) check() {
	s.db.Check(s.faults, true)
	s.db.CompareRecord(s.bobs, s.faults)
	s.db.CompareDelivered(bob, []*Record{s.bobs}, s.faults)
	s.sends.Compare(s.db)
}

func view() chat.Conversation {
	last := message(5)
	return chat.Conversation{ID: conversation, LastSeq: 5, LastDeliveredSeq: 5, LastReadSeq: 3, Unread: 2, LastMessage: &last}
}

func TestWhatIsSeededIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(s *sound)
		want   []Kind
	}{
		"nothing": {func(*sound) {}, nil},
		"a device lacks a message": {func(s *sound) {
			s.bobs = without(s, 3)
			s.conversation().Members[bob] = Member{Delivered: 2, Read: 2}
		}, []Kind{Lost}},
		"a position claims what no device holds": {func(s *sound) { s.bobs = without(s, 3) }, []Kind{Lost, Positions}},
		"an acknowledged message is not stored": {func(s *sound) {
			c := s.conversation()
			c.Messages = slices.Delete(c.Messages, 2, 3)
		}, []Kind{Invented, Lost}},
		"one send is stored twice": {func(s *sound) {
			c := s.conversation()
			m := c.Messages[4]
			m.Seq, m.Number = 6, 6
			c.Messages, c.LastSeq, c.Version = append(c.Messages, m), 6, 6
			s.bobs = nil
		}, []Kind{Doubled}},
		"a seq is stored twice": {func(s *sound) {
			c := s.conversation()
			c.Messages = slices.Insert(c.Messages, 2, c.Messages[1])
		}, []Kind{Doubled}},
		"messages are stored in another order": {func(s *sound) {
			c := s.conversation()
			c.Messages[1].Number, c.Messages[2].Number = 3, 2
		}, []Kind{Reordered}},
		"time goes back": {func(s *sound) { s.conversation().Messages[3].CreatedAt = born.Time }, []Kind{Reordered}},
		"a text is stored otherwise than it was acknowledged": {func(s *sound) { s.conversation().Messages[3].Print++ }, []Kind{Different}},
		"a message that nobody has sent": {func(s *sound) {
			m := message(6)
			c := s.conversation()
			c.Messages = append(c.Messages, Message{Seq: 6, Number: 6, Sender: bob, ClientMsgID: m.ClientMsgID, CreatedAt: m.CreatedAt.Time, Print: PrintOf(&m)})
			c.LastSeq, c.Version = 6, 6
			s.bobs.Keep(&m)
		}, []Kind{Invented}},
		"a device holds what is not stored":      {func(s *sound) { m := message(6); s.bobs.Keep(&m) }, []Kind{Invented}},
		"a device is given two texts of one seq": {func(s *sound) { m := message(4); m.Text = "xayr"; s.bobs.Keep(&m) }, []Kind{Different}},
		"two answers to one send":                {func(s *sound) { m := message(4); m.Seq = 9; s.sends.Acknowledged(&m) }, []Kind{Different}},
		"a send without an answer":               {func(s *sound) { s.sends.Attempt(ada, conversation, "never") }, []Kind{Stuck}},
		"lastSeq below a seq":                    {func(s *sound) { s.conversation().LastSeq = 4 }, []Kind{Storage, Positions}},
		"read beyond received":                   {func(s *sound) { s.conversation().Members[bob] = Member{Delivered: 3, Read: 4} }, []Kind{Positions}},
		"received beyond the end":                {func(s *sound) { s.conversation().Members[bob] = Member{Delivered: 6, Read: 3} }, []Kind{Positions}},
		"an outbox row is left":                  {func(s *sound) { s.db.Outbox = 1 }, []Kind{Storage}},
		"a wait for a notification is left": {func(s *sound) {
			s.db.Due = []Due{{User: bob, Conversation: conversation, Seq: 5, WakeAt: born.Time}}
		}, []Kind{Storage}},
		"an orphan":               {func(s *sound) { s.db.Strays = map[string]int{"messages of no conversation": 1} }, []Kind{Storage}},
		"a member is not counted": {func(s *sound) { s.conversation().MemberCount = 3 }, []Kind{Storage}},
		"two conversations of the same two": {func(s *sound) {
			c := *s.conversation()
			c.ID, c.Messages, c.LastSeq, c.Members = chat.NewID(), nil, 0, map[chat.ID]Member{ada: {}, bob: {}}
			s.db.Conversations[c.ID] = &c
		}, []Kind{Doubled}},
		"a list with a wrong count": {func(s *sound) {
			v := view()
			v.Unread = 1
			s.db.CompareView(bob, []chat.Conversation{v}, 1, s.faults)
		}, []Kind{Different}},
		"a list that lacks a conversation": {func(s *sound) { s.db.CompareView(bob, nil, 0, s.faults) }, []Kind{Lost}},
		"a total that is no sum": {func(s *sound) {
			s.db.CompareView(bob, []chat.Conversation{view()}, 3, s.faults)
		}, []Kind{Different}},
		"a list as it should be": {func(s *sound) { s.db.CompareView(bob, []chat.Conversation{view()}, 2, s.faults) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSound()
			test.breaks(s)
			if s.bobs == nil {
				s.bobs = without(s, 0)
			}
			s.check()
			expect(t, s.faults, test.want...)
		})
	}
}

// without is a record of all that is stored but one seq.
func without(s *sound, seq int64) *Record {
	r := NewRecord("bob/0", bob, s.faults)
	for _, m := range s.conversation().Messages {
		if m.Seq == seq {
			continue
		}
		stored := message(m.Seq)
		r.Keep(&stored)
		r.lists[conversation].prints[m.Seq-1] = m.Print
	}
	return r
}

// expect compares the kinds of faults, in any order.
func expect(t *testing.T, f *Faults, want ...Kind) {
	t.Helper()
	var got []Kind
	for _, found := range f.List() {
		got = append(got, found.Kind)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v:\n%s", got, want, f)
	}
}

func TestOrderOfAConnection(t *testing.T) {
	for name, test := range map[string]struct {
		seqs     []int64
		caughtUp bool
		want     []Kind
	}{
		"rising, with a hole":        {[]int64{1, 2, 5, 6}, false, nil},
		"twice":                      {[]int64{1, 2, 2}, false, []Kind{Doubled}},
		"an old one again":           {[]int64{1, 2, 3, 1}, false, []Kind{Reordered}},
		"back":                       {[]int64{1, 3, 2}, false, []Kind{Reordered}},
		"caught up behind live ones": {[]int64{1, 2, 9, 10, 3, 4, 11, 5}, true, nil},
		"caught up in a wrong order": {[]int64{1, 2, 9, 4, 3}, true, []Kind{Reordered}},
		"caught up with what came":   {[]int64{1, 2, 9, 2}, true, []Kind{Doubled}},
		"one that syncs is given nothing behind live ones": {[]int64{1, 2, 9, 3}, false, []Kind{Reordered}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Faults{}
			o := NewOrder(NewRecord("bob/0", bob, f), test.caughtUp)
			for _, seq := range test.seqs {
				o.Hear(conversation, seq)
			}
			expect(t, f, test.want...)
		})
	}
}

func TestGhostsInPresenceAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		entries, truth Online
		want           []Kind
	}{
		"as it is":                {Online{ada: 1, bob: 2}, Online{ada: 1, bob: 2}, nil},
		"a ghost":                 {Online{ada: 1, bob: 1}, Online{ada: 1}, []Kind{Presence}},
		"a ghost on one of nodes": {Online{ada: 2}, Online{ada: 1}, []Kind{Presence}},
		"somebody is not seen":    {Online{ada: 1}, Online{ada: 1, bob: 1}, []Kind{Presence}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Faults{}
			ComparePresence(test.entries, test.truth, f)
			expect(t, f, test.want...)
		})
	}
	f := &Faults{}
	CompareAnswer(ada, []chat.PresenceState{{UserID: ada, Online: true}, {UserID: bob}}, Online{ada: 1}, f)
	expect(t, f)
	CompareAnswer(ada, []chat.PresenceState{{UserID: bob, Online: true}}, Online{ada: 1}, f)
	expect(t, f, Presence)
}

func TestGrowthIsFound(t *testing.T) {
	tolerance := Tolerance{Goroutines: 10, Heap: 0.2, HeapBytes: 1 << 20}
	at := func(seconds, node, life, connections, goroutines, heapMB int) Sample {
		return Sample{At: time.Duration(seconds) * time.Second, Node: node, Life: life, Connections: connections, Goroutines: goroutines, Heap: heapMB << 20}
	}
	for name, test := range map[string]struct {
		samples []Sample
		want    []Kind
	}{
		"within the tolerance":         {[]Sample{at(1, 1, 0, 20, 100, 10), at(9, 1, 0, 20, 108, 12)}, nil},
		"goroutines":                   {[]Sample{at(1, 1, 0, 20, 100, 10), at(5, 1, 0, 20, 100, 10), at(9, 1, 0, 20, 111, 10)}, []Kind{Growth}},
		"heap":                         {[]Sample{at(1, 1, 0, 20, 100, 10), at(9, 1, 0, 20, 100, 14)}, []Kind{Growth}},
		"more connections":             {[]Sample{at(1, 1, 0, 20, 100, 10), at(9, 1, 0, 30, 130, 12)}, nil},
		"lives are not compared":       {[]Sample{at(1, 1, 0, 20, 100, 10), at(9, 1, 1, 20, 300, 90)}, nil},
		"a later life by itself":       {[]Sample{at(1, 2, 3, 20, 100, 10), at(9, 2, 3, 20, 300, 10)}, []Kind{Growth}},
		"it was more, and is less now": {[]Sample{at(1, 1, 0, 20, 100, 10), at(5, 1, 0, 20, 300, 90), at(9, 1, 0, 20, 100, 10)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Faults{}
			CompareGrowth(test.samples, tolerance, f)
			expect(t, f, test.want...)
		})
	}
	patient := tolerance
	patient.Settle = 2 * time.Second
	filling := []Sample{at(1, 1, 0, 20, 100, 10), at(2, 1, 0, 20, 100, 20), at(3, 1, 0, 20, 100, 30), at(9, 1, 0, 20, 100, 31)}
	f := &Faults{}
	CompareGrowth(filling, patient, f)
	expect(t, f)
	CompareGrowth(append(filling, at(12, 1, 0, 20, 100, 40)), patient, f)
	expect(t, f, Growth)
	CompareGrowth(filling[:2], patient, f) // there is no later one: the first is what there is
	if f.Total() != 2 {
		t.Errorf("of two samples %d faults were found:\n%s", f.Total()-1, f)
	}
	f = &Faults{}
	CompareIdle([]Sample{at(1, 1, 0, 0, 50, 5), at(1, 2, 0, 0, 60, 6)}, []Sample{at(9, 1, 0, 0, 70, 7), at(9, 2, 4, 0, 71, 7)}, tolerance, f)
	expect(t, f, Growth)
}

func TestFaultsKeepExamples(t *testing.T) {
	f, other := &Faults{}, &Faults{}
	for i := range 30 {
		other.Add(Lost, "seq %d", i)
	}
	f.Join(other)
	list := f.List()
	if len(list) != 1 || list[0].Count != 30 || f.Total() != 30 || len(list[0].Examples) != examples || f.None() {
		t.Errorf("%+v", list)
	}
	if text := f.String(); !strings.Contains(text, "30 times") || !strings.Contains(text, "seq 7") {
		t.Error(text)
	}
}
