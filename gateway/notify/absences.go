package notify

import (
	"context"
	"time"

	"xabar/chat"
)

// Bounds of what waits to be scheduled.
const (
	fannedBound = 8192 // messages whose outbox events wait to be closed
	fannedBatch = 512  // of them that are looked at together
	// hintsBound is the conversations, and the users, of which something is known that
	// is not stored yet. They pile up only while the database does not answer.
	hintsBound = 1 << 16
	hintsBatch = 500
	hintsDelay = 250 * time.Millisecond // collects what belongs together: all who miss one message
)

// fanned is a message that was shown to everybody who could be reached.
type fanned struct {
	key     chat.OutboxKey
	sender  chat.ID
	members []chat.ID // nil: a group's, to be asked for
}

// FannedOut implements chat.Absences: the message's outbox event is closed together
// with the scheduling of members who are absent. If that can't be done now, the event
// stays, and is fanned out and scheduled again by whoever takes it over.
func (s *Scheduler) FannedOut(e *chat.MessageStored) {
	f := fanned{chat.OutboxKey{ConversationID: e.Message.ConversationID, Seq: e.Message.Seq}, e.Message.SenderID, e.MemberIDs}
	select {
	case s.fanned <- f:
	default:
	}
}

// Fill is how many fanned out messages wait to be looked at, and how many can.
func (s *Scheduler) Fill() (waiting, bound int) { return len(s.fanned), fannedBound }

// closeFanned takes what was fanned out, as much as there is at a time.
func (s *Scheduler) closeFanned(ctx context.Context) {
	batch := make([]fanned, 0, fannedBatch)
	for {
		select {
		case <-ctx.Done():
			s.closeRest(batch[:0])
			return
		case f := <-s.fanned:
			batch = append(batch[:0], f)
		}
	more:
		for len(batch) < fannedBatch {
			select {
			case f := <-s.fanned:
				batch = append(batch, f)
			default:
				break more
			}
		}
		s.closeBatch(ctx, batch)
	}
}

// closeRest does what is left when the node stops, so that it need not be done again.
func (s *Scheduler) closeRest(batch []fanned) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for len(s.fanned) > 0 {
		batch = append(batch, <-s.fanned)
	}
	s.closeBatch(ctx, batch)
}

// closeBatch schedules who is absent, and who wants to be reminded. Of several messages
// of one conversation the first schedules; if its event should stay in the outbox, it
// does so again.
func (s *Scheduler) closeBatch(ctx context.Context, batch []fanned) {
	members := s.membersOf(ctx, batch)
	online := s.whoIsOnline(ctx, members)
	now := s.Clock.Now()
	seen := map[chat.Due]bool{}
	for _, f := range batch {
		users, ok := members[f.key.ConversationID]
		if !ok {
			continue
		}
		var due []chat.Due
		for _, user := range users {
			if user == f.sender {
				continue
			}
			for _, d := range s.waits(user, online[user], f.key, now) {
				mark := chat.Due{UserID: d.UserID, ConversationID: d.ConversationID, Reason: d.Reason}
				if !seen[mark] {
					seen[mark] = true
					due = append(due, d)
				}
			}
		}
		s.Store.CloseOutbox(f.key, due...)
	}
}

// waits are those that a message begins for a member.
func (s *Scheduler) waits(user chat.ID, online bool, key chat.OutboxKey, now time.Time) []chat.Due {
	var due []chat.Due
	if !online {
		due = append(due, chat.Due{
			UserID: user, ConversationID: key.ConversationID, Seq: key.Seq, Reason: chat.NotDelivered, At: now.Add(s.Policy.Wait),
		})
	}
	if after := s.remindAfter(user); after > 0 {
		due = append(due, chat.Due{
			UserID: user, ConversationID: key.ConversationID, Seq: key.Seq, Reason: chat.StillUnread, At: now.Add(after),
		})
	}
	return due
}

// membersOf are the members of each conversation of the batch. One that can't be read
// is missing: its events stay in the outbox.
func (s *Scheduler) membersOf(ctx context.Context, batch []fanned) map[chat.ID][]chat.ID {
	members := map[chat.ID][]chat.ID{}
	for _, f := range batch {
		id := f.key.ConversationID
		if _, ok := members[id]; ok {
			continue
		}
		if f.members != nil {
			members[id] = f.members
			continue
		}
		ids, err := s.Store.MemberIDs(ctx, id)
		if err != nil {
			s.log.Warn("who is absent was not found out; the message will be fanned out again", "conversation", id, "error", err)
			continue
		}
		members[id] = ids
	}
	return members
}

// whoIsOnline asks for all members at once. Who is not known to be online counts as
// absent: the look after the wait decides.
func (s *Scheduler) whoIsOnline(ctx context.Context, members map[chat.ID][]chat.ID) map[chat.ID]bool {
	online := map[chat.ID]bool{}
	var users []chat.ID
	for _, ids := range members {
		for _, id := range ids {
			if _, ok := online[id]; !ok {
				online[id] = false
				users = append(users, id)
			}
		}
	}
	s.markOnline(ctx, users, online)
	return online
}

func (s *Scheduler) markOnline(ctx context.Context, users []chat.ID, online map[chat.ID]bool) {
	if len(users) == 0 {
		return
	}
	known, err := s.Presence.Online(ctx, users)
	if err != nil {
		s.log.Warn("who is online is not known", "error", err)
		return
	}
	for i, user := range users {
		online[user] = known[i]
	}
}

// Unacknowledged implements chat.Absences.
func (s *Scheduler) Unacknowledged(conversation chat.ID, seq int64) {
	s.mu.Lock()
	_, known := s.behind[conversation]
	room := known || len(s.behind) < hintsBound
	if room {
		s.behind[conversation] = max(s.behind[conversation], seq)
	}
	s.mu.Unlock()
	s.hinted(room)
}

// WentOffline implements chat.Absences.
func (s *Scheduler) WentOffline(user chat.ID) {
	s.mu.Lock()
	room := len(s.offline) < hintsBound
	if room {
		s.offline[user] = struct{}{}
	}
	s.mu.Unlock()
	s.hinted(room)
}

func (s *Scheduler) hinted(kept bool) {
	if !kept {
		s.log.Warn("too many waits are not stored yet; one more is forgotten until the next start")
	}
	select {
	case s.hints <- struct{}{}:
	default:
	}
}

// flushHints stores what was noticed. What could not be stored is tried again.
func (s *Scheduler) flushHints(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hints:
		}
		if !pause(ctx, hintsDelay) {
			return
		}
		for s.flushSome(ctx) {
		}
	}
}

// flushSome says whether there is more to do now.
func (s *Scheduler) flushSome(ctx context.Context) (more bool) {
	keys, users := s.takeHints()
	at := s.Clock.Now().Add(s.Policy.Wait)
	var errBehind, errOffline error
	if len(keys) > 0 {
		_, errBehind = s.Store.ScheduleBehind(ctx, keys, at)
	}
	if len(users) > 0 {
		_, errOffline = s.Store.ScheduleUndelivered(ctx, users, at)
	}
	if errBehind == nil && errOffline == nil {
		return len(keys) > 0 || len(users) > 0
	}
	s.log.Warn("waits could not be stored; they are tried again", "behind", errBehind, "offline", errOffline)
	if errBehind != nil {
		for _, key := range keys {
			s.Unacknowledged(key.ConversationID, key.Seq)
		}
	}
	if errOffline != nil {
		for _, user := range users {
			s.WentOffline(user)
		}
	}
	pause(ctx, time.Second)
	return false
}

func (s *Scheduler) takeHints() (keys []chat.OutboxKey, users []chat.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, seq := range s.behind {
		if len(keys) == hintsBatch {
			break
		}
		keys = append(keys, chat.OutboxKey{ConversationID: id, Seq: seq})
		delete(s.behind, id)
	}
	for user := range s.offline {
		if len(users) == hintsBatch {
			break
		}
		users = append(users, user)
		delete(s.offline, user)
	}
	return keys, users
}

// Who wants to be reminded is read again and again: a new wish counts after a while.
const remindersEvery = 30 * time.Second

func (s *Scheduler) readReminders(ctx context.Context) {
	for ctx.Err() == nil {
		reminders, err := s.Store.Reminders(ctx)
		switch {
		case err == nil:
			s.mu.Lock()
			s.reminders = reminders
			s.mu.Unlock()
		case ctx.Err() == nil:
			s.log.Warn("who wants to be reminded could not be read", "error", err)
		}
		pause(ctx, remindersEvery)
	}
}

func (s *Scheduler) remindAfter(user chat.ID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reminders[user]
}

// leftStep is how many members are looked at in one transaction.
const leftStep = 1000

// scheduleLeft begins the waits that a crash kept from beginning: whoever lacks
// messages of which it is not decided. Those who are online get them, and the look
// finds that they have.
func (s *Scheduler) scheduleLeft(ctx context.Context) {
	cursor, begun := "", 0
	for {
		now := s.Clock.Now()
		n, next, err := s.Store.ScheduleLeft(ctx, cursor, now.Add(-giveUp), now.Add(s.Policy.Wait), leftStep)
		begun += n
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("what a crash may have left could not be scheduled; it is tried again", "error", err)
			next = cursor
			pause(ctx, time.Second)
		case next == "":
			if begun > 0 {
				s.log.Info("scheduled looks at messages that have not arrived", "waits", begun)
			}
			return
		}
		cursor = next
		pause(ctx, 5*time.Millisecond) // others want the database, too
	}
}
