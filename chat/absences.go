package chat

// Absences hears of messages that may not have arrived, so that somebody looks again
// and notifies. Its methods don't wait for anything.
type Absences interface {
	// FannedOut says that this node has shown a message to everybody whom it can reach.
	// Whoever implements it closes the outbox event, with the absent members.
	FannedOut(e *MessageStored)
	// Unacknowledged says that devices of members to which a message of the
	// conversation went have not acknowledged it in time.
	Unacknowledged(conversation ID, seq int64)
	// WentOffline says that a user is no longer connected anywhere.
	WentOffline(user ID)
}

// noAbsences closes events, and notifies nobody.
type noAbsences struct{ store OutboxStore }

func (n noAbsences) FannedOut(e *MessageStored) {
	n.store.CloseOutbox(OutboxKey{e.Message.ConversationID, e.Message.Seq})
}
func (noAbsences) Unacknowledged(ID, int64) {}
func (noAbsences) WentOffline(ID)           {}

// FannedOut records that a message has been shown to everybody whom this node
// can reach.
func (s *Service) FannedOut(e *MessageStored) { s.absences.FannedOut(e) }

// Unacknowledged records that devices of this node have not acknowledged a message in
// time.
func (s *Service) Unacknowledged(conversation ID, seq int64) {
	s.absences.Unacknowledged(conversation, seq)
}

// WentOffline records that a user is no longer connected anywhere.
func (s *Service) WentOffline(user ID) { s.absences.WentOffline(user) }
