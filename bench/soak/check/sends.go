package check

import (
	"sync"

	"xabar/chat"
)

// Sends is what all clients have sent, by clientMsgId. Safe for concurrent use.
type Sends struct {
	faults *Faults

	mu   sync.Mutex // guards all
	all  map[string]*send
	done int
}

type send struct {
	sender, conversation chat.ID
	print                Print // of the answers; 0: none yet
	seq                  int64
}

// NewSends makes an empty one.
func NewSends(faults *Faults) *Sends { return &Sends{faults: faults, all: map[string]*send{}} }

// Attempt says that a message is about to be sent. Repeats are no news.
func (s *Sends) Attempt(sender, conversation chat.ID, clientMsgID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[clientMsgID] == nil {
		s.all[clientMsgID] = &send{sender: sender, conversation: conversation}
	}
}

// Acknowledged takes an answer that says that the message is stored.
func (s *Sends) Acknowledged(m *chat.Message) {
	print := PrintOf(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.all[m.ClientMsgID]
	switch {
	case sent == nil || sent.sender != m.SenderID || sent.conversation != m.ConversationID:
		s.faults.Add(Invented, "an answer speaks of %q in %s, which was not sent there", m.ClientMsgID, m.ConversationID)
	case sent.print != 0 && sent.print != print:
		s.faults.Add(Different, "the answers to %q are different: seq %d and seq %d", m.ClientMsgID, sent.seq, m.Seq)
	default:
		if sent.print == 0 {
			s.done++
		}
		sent.print, sent.seq = print, m.Seq
	}
}

// Counts are how many messages were tried, and how many acknowledged.
func (s *Sends) Counts() (tried, acknowledged int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all), s.done
}

// Compare compares with what is stored: what was acknowledged is there as it was
// answered, and nothing is there that nobody has sent.
func (s *Sends) Compare(db *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := map[string]*Message{}
	for _, c := range db.Conversations {
		for i := range c.Messages {
			m := &c.Messages[i]
			if other := stored[m.ClientMsgID]; other != nil {
				s.faults.Add(Doubled, "%q is stored as seq %d and seq %d", m.ClientMsgID, other.Seq, m.Seq)
			}
			stored[m.ClientMsgID] = m
			if sent := s.all[m.ClientMsgID]; sent == nil || sent.sender != m.Sender || sent.conversation != c.ID {
				s.faults.Add(Invented, "%q is stored in %s, and was not sent there", m.ClientMsgID, c.ID)
			}
		}
	}
	for id, sent := range s.all {
		m := stored[id]
		switch {
		case sent.print == 0:
			s.faults.Add(Stuck, "%q was not answered", id)
		case m == nil:
			s.faults.Add(Lost, "%q was acknowledged as seq %d of %s and is not stored", id, sent.seq, sent.conversation)
		case m.Print != sent.print:
			s.faults.Add(Different, "%q was acknowledged as seq %d and is stored as seq %d, or with another text", id, sent.seq, m.Seq)
		}
	}
}
