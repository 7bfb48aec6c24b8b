package postgres

import (
	"bytes"
	"slices"

	"xabar/chat"
)

// dueKey is what there is one wait for.
type dueKey struct {
	user, conversation chat.ID
	reason             chat.DueReason
}

// dueSet is waits to begin: the first of each member and reason.
type dueSet struct {
	all  []chat.Due
	seen map[dueKey]struct{}
}

func newDueSet() *dueSet { return &dueSet{seen: map[dueKey]struct{}{}} }

func (s *dueSet) add(due ...chat.Due) {
	for _, d := range due {
		key := dueKey{d.UserID, d.ConversationID, d.Reason}
		if _, ok := s.seen[key]; !ok {
			s.seen[key] = struct{}{}
			s.all = append(s.all, d)
		}
	}
}

// sorted gives them in the order in which all statements write the rows, so that none
// waits for one that waits for it.
func (s *dueSet) sorted() []chat.Due {
	slices.SortFunc(s.all, func(a, b chat.Due) int {
		if c := bytes.Compare(a.UserID[:], b.UserID[:]); c != 0 {
			return c
		}
		if c := bytes.Compare(a.ConversationID[:], b.ConversationID[:]); c != 0 {
			return c
		}
		return int(a.Reason) - int(b.Reason)
	})
	return s.all
}

// dueParams are arrays of users, conversations, reasons, seqs and ends.
func dueParams(due []chat.Due) [][]byte {
	n := len(due)
	users, conversations := newArray(oidUUID, n, 16), newArray(oidUUID, n, 16)
	reasons, seqs, ends := newArray(oidInt8, n, 8), newArray(oidInt8, n, 8), newArray(oidTimestamptz, n, 8)
	for _, d := range due {
		users.id(d.UserID)
		conversations.id(d.ConversationID)
		reasons.int(int64(d.Reason))
		seqs.int(d.Seq)
		ends.time(d.At)
	}
	return [][]byte{users.b, conversations.b, reasons.b, seqs.b, ends.b}
}
