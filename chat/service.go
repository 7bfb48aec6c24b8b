package chat

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Service is every use case, for both doors. It checks what a caller may ask,
// lets the Store decide in its own transactions what the caller may touch, and
// publishes what was stored. Safe for concurrent use; it owns no goroutine.
type Service struct {
	store        Store
	broadcaster  Broadcaster
	presence     Presence
	clock        Clock
	log          *slog.Logger
	sendTimeout  time.Duration
	sends, opens Limiter
	revocations  *Revocations
	absences     Absences
	unheard      sparing      // of publish
	sending      atomic.Int64 // sends that were handed to the store and are not shown yet

	// A pair's direct conversation never changes, so it is remembered: a send to
	// a user then needs no look-up of its own.
	directs *lru.Cache[[32]byte, ID]
	// Likewise who the two members of a direct conversation are, for typing, and for a
	// while that neither blocks the other.
	pairs *lru.Cache[ID, knownPair]
}

// ServiceConfig is what a Service works with. Store, Broadcaster and Presence are
// required.
type ServiceConfig struct {
	Store       Store
	Broadcaster Broadcaster
	Presence    Presence
	Clock       Clock         // default SystemClock
	Logger      *slog.Logger  // default slog.Default
	SendTimeout time.Duration // how long a send or a receipt may wait for its turn; default 10 s
	// Sends limits messages per user, Opens conversations that are made; nil: no
	// limit.
	Sends, Opens Limiter
	// Revocations hears at once of what this node revokes; nil: nobody asks it.
	Revocations *Revocations
	// Absences hears of messages that may not have arrived; nil: nobody is notified.
	Absences Absences
}

// knownPair are the members of a direct conversation who talk to each other.
type knownPair struct {
	users [2]ID
	until time.Time // when the store is asked again
}

// pairTTL bounds how long typing goes on past a block of which this node did not
// hear.
const pairTTL = 30 * time.Second

// directCacheSize bounds each of the two caches of direct conversations: about
// 10 MB in all when full.
const directCacheSize = 1 << 16

// NewService wires a Service.
func NewService(c ServiceConfig) *Service {
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.SendTimeout == 0 {
		c.SendTimeout = 10 * time.Second
	}
	if c.Sends == nil {
		c.Sends = unlimited{}
	}
	if c.Opens == nil {
		c.Opens = unlimited{}
	}
	if c.Absences == nil {
		c.Absences = noAbsences{c.Store}
	}
	directs, err := lru.New[[32]byte, ID](directCacheSize)
	if err != nil {
		panic(err) // only for a size below 1
	}
	pairs, err := lru.New[ID, knownPair](directCacheSize)
	if err != nil {
		panic(err)
	}
	return &Service{
		store: c.Store, broadcaster: c.Broadcaster, presence: c.Presence, clock: c.Clock,
		log: c.Logger, sendTimeout: c.SendTimeout, directs: directs, pairs: pairs,
		sends: c.Sends, opens: c.Opens, revocations: c.Revocations, absences: c.Absences,
	}
}

// deadlineContext bounds a queued call without a timer of its own: the queue
// looks at Deadline before it starts the work.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

// Deadline is the earlier one of both contexts.
func (c deadlineContext) Deadline() (time.Time, bool) {
	if outer, ok := c.Context.Deadline(); ok && outer.Before(c.deadline) {
		return outer, true
	}
	return c.deadline, true
}

func (s *Service) bound(ctx context.Context) context.Context {
	return deadlineContext{ctx, time.Now().Add(s.sendTimeout)}
}

// publish shows a stored event. Other nodes that miss it repair themselves from
// the database, so a failure is for the log only, and not one by one: during an outage
// every event fails.
func (s *Service) publish(ctx context.Context, event Event) {
	err := s.broadcaster.Publish(ctx, event)
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if before, now := s.unheard.now(s.clock.Now(), publishWarnings); now {
		s.log.WarnContext(ctx, "an event did not reach the other nodes", "error", err, "untold_before", before)
	}
}

// publishWarnings is the least time between two warnings of publish.
const publishWarnings = 10 * time.Second

// User finds the one user that ref names. Errors: invalid_argument, not_found.
func (s *Service) User(ctx context.Context, ref UserRef, field string) (User, error) {
	if err := ref.Check(field); err != nil {
		return User{}, err
	}
	users, err := s.store.ResolveUsers(ctx, []UserRef{ref})
	if err != nil {
		return User{}, err
	}
	return users[0], nil
}

// OpenDirect finds or makes the direct conversation of the caller and the user.
// When it is new, both hear of it. Errors: invalid_argument (oneself), not_found,
// forbidden.
func (s *Service) OpenDirect(ctx context.Context, actor Actor, ref UserRef) (Conversation, bool, error) {
	peer, err := s.User(ctx, ref, "userId")
	if err != nil {
		return Conversation{}, false, err
	}
	if peer.ID == actor.User.ID {
		return Conversation{}, false, InvalidArgument("userId", "a conversation needs somebody else")
	}
	return s.openDirect(ctx, actor.User.ID, peer.ID)
}

func (s *Service) openDirect(ctx context.Context, a, b ID) (Conversation, bool, error) {
	if wait, ok := s.opens.Take(a); !ok {
		return s.knownDirect(ctx, a, b, wait)
	}
	conversation, created, err := s.store.OpenDirect(ctx, a, b)
	if !created || err != nil {
		s.opens.Return(a) // only what is made counts
	}
	if err != nil {
		return Conversation{}, false, err
	}
	s.directs.Add(pairKey(a, b), conversation.ID)
	s.pairs.Add(conversation.ID, knownPair{[2]ID{a, b}, time.Now().Add(pairTTL)})
	if created {
		both := []ID{a, b}
		s.publish(ctx, ConversationChanged{ConversationID: conversation.ID, UserIDs: both, Joined: both})
	}
	return conversation, created, nil
}

// knownDirect is openDirect for a caller who may make no more conversations for a
// while: one that this node has met is not made.
func (s *Service) knownDirect(ctx context.Context, a, b ID, wait time.Duration) (Conversation, bool, error) {
	id, ok := s.directs.Get(pairKey(a, b))
	if !ok {
		return Conversation{}, false, RateLimited(wait)
	}
	if _, err := s.meetPair(ctx, id, a, b); err != nil {
		return Conversation{}, false, err
	}
	conversation, err := s.store.Conversation(ctx, a, id)
	return conversation, false, err
}

// pairKey is the same for both orders of a pair.
func pairKey(a, b ID) (key [32]byte) {
	if slices.Compare(a[:], b[:]) > 0 {
		a, b = b, a
	}
	copy(key[:16], a[:])
	copy(key[16:], b[:])
	return key
}

// CreateGroup makes a group of the caller and the members; all of them hear of
// it. Errors: invalid_argument, not_found.
func (s *Service) CreateGroup(ctx context.Context, actor Actor, title string, refs []UserRef) (Conversation, error) {
	title, err := CheckLabel("title", title, MaxTitleLength)
	if err != nil {
		return Conversation{}, err
	}
	ids, err := s.resolveMembers(ctx, refs)
	if err != nil {
		return Conversation{}, err
	}
	if wait, ok := s.opens.Take(actor.User.ID); !ok {
		return Conversation{}, RateLimited(wait)
	}
	group, err := s.store.CreateGroup(ctx, actor.User.ID, title, ids)
	if err != nil {
		s.opens.Return(actor.User.ID)
		return Conversation{}, err
	}
	all := ids
	if !slices.Contains(all, actor.User.ID) {
		all = append([]ID{actor.User.ID}, ids...)
	}
	s.publish(ctx, ConversationChanged{ConversationID: group.ID, UserIDs: all, Joined: all})
	return group, nil
}

func (s *Service) resolveMembers(ctx context.Context, refs []UserRef) ([]ID, error) {
	if len(refs) == 0 || len(refs) > MaxGroupMembers {
		return nil, InvalidArgument("memberIds", "a group is made with 1 to %d memberIds", MaxGroupMembers)
	}
	for _, ref := range refs {
		if err := ref.Check("memberIds"); err != nil {
			return nil, err
		}
	}
	users, err := s.store.ResolveUsers(ctx, refs)
	if err != nil {
		return nil, err
	}
	ids := make([]ID, len(users))
	for i, user := range users {
		ids[i] = user.ID
	}
	return ids, nil
}

// AddMembers adds users to a group; they and the members hear of it. Errors:
// not_found, forbidden, invalid_argument.
func (s *Service) AddMembers(ctx context.Context, actor Actor, conversation ID, refs []UserRef) ([]ID, error) {
	ids, err := s.resolveMembers(ctx, refs)
	if err != nil {
		return nil, err
	}
	added, err := s.store.AddMembers(ctx, actor.User.ID, conversation, ids)
	if err != nil || len(added) == 0 {
		return added, err
	}
	s.publish(ctx, ConversationChanged{ConversationID: conversation, Joined: added})
	return added, nil
}

// RemoveMember takes a user out of a group (oneself: leaves it). Nothing of the
// conversation reaches the user's sockets afterwards. Errors: not_found,
// forbidden.
func (s *Service) RemoveMember(ctx context.Context, actor Actor, conversation ID, ref UserRef) error {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return err
	}
	if err := s.store.RemoveMember(ctx, actor.User.ID, conversation, user.ID); err != nil {
		return err
	}
	s.publish(ctx, ConversationChanged{ConversationID: conversation, Left: []ID{user.ID}})
	return nil
}

// Conversation is one of the caller's. Errors: not_found.
func (s *Service) Conversation(ctx context.Context, user, conversation ID) (Conversation, error) {
	return s.store.Conversation(ctx, user, conversation)
}

// Conversations lists the caller's, newest activity first.
func (s *Service) Conversations(ctx context.Context, actor Actor, page PageRequest) (ConversationPage, error) {
	return s.store.Conversations(ctx, actor.User.ID, page)
}

// Members lists a conversation's members. Errors: not_found.
func (s *Service) Members(ctx context.Context, actor Actor, conversation ID, page PageRequest) (Page[Member], error) {
	return s.store.Members(ctx, actor.User.ID, conversation, page)
}

// Contacts lists the caller's contacts with their presence.
func (s *Service) Contacts(ctx context.Context, actor Actor, page PageRequest) (Page[Contact], error) {
	contacts, err := s.store.Contacts(ctx, actor.User.ID, page)
	if err != nil {
		return contacts, err
	}
	ids := make([]ID, len(contacts.Items))
	for i, contact := range contacts.Items {
		ids[i] = contact.User.ID
	}
	visible, err := s.withoutBlocked(ctx, actor.User.ID, ids)
	if err != nil {
		return Page[Contact]{}, err
	}
	online, err := s.presence.Online(ctx, visible)
	if err != nil {
		return Page[Contact]{}, err
	}
	for i := range contacts.Items {
		contact := &contacts.Items[i]
		if at := slices.Index(visible, contact.User.ID); at >= 0 {
			contact.Online = online[at]
		} else {
			contact.LastSeenAt = nil
		}
	}
	return contacts, nil
}

// PresenceOf is the presence of whom a reference names, as far as the caller may
// see it: else offline, without a time and without saying whether there is anybody.
type PresenceOf struct {
	Ref     UserRef
	Visible bool
	State   PresenceState // UserID only if Visible
}

// Presence answers for each of refs, in order. Only contacts and members of common
// conversations are visible; those are whose later changes the caller may hear.
// Errors: invalid_argument.
func (s *Service) Presence(ctx context.Context, actor Actor, refs []UserRef) ([]PresenceOf, error) {
	if len(refs) > MaxPresenceUsers {
		return nil, InvalidArgument("userIds", "at most %d userIds", MaxPresenceUsers)
	}
	ids, err := s.lookUp(ctx, refs, "userIds")
	if err != nil {
		return nil, err
	}
	candidates, err := s.withoutBlocked(ctx, actor.User.ID, slices.Collect(maps.Values(ids)))
	if err != nil {
		return nil, err
	}
	known, err := s.store.Acquainted(ctx, actor.User.ID, candidates)
	if err != nil {
		return nil, err
	}
	visible := make([]ID, len(known))
	for i := range known {
		visible[i] = known[i].UserID
	}
	online, err := s.presence.Online(ctx, visible)
	if err != nil {
		return nil, err
	}
	byID := make(map[ID]PresenceState, len(known))
	for i, state := range known {
		state.Online = online[i]
		byID[state.UserID] = state
	}
	answer := make([]PresenceOf, len(refs))
	for i, ref := range refs {
		answer[i].Ref = ref
		if id, ok := ids[ref]; ok {
			answer[i].State, answer[i].Visible = byID[id], byID[id].UserID == id
		}
	}
	return answer, nil
}

// lookUp finds the ids of those of refs that name somebody. A UUID is taken as it
// is: what the caller may know of it is decided with the id.
func (s *Service) lookUp(ctx context.Context, refs []UserRef, field string) (map[UserRef]ID, error) {
	ids := make(map[UserRef]ID, len(refs))
	var external []UserRef
	for _, ref := range refs {
		if err := ref.Check(field); err != nil {
			return nil, err
		}
		if id, ok := ref.ID(); ok {
			ids[ref] = id
		} else {
			external = append(external, ref)
		}
	}
	if len(external) == 0 {
		return ids, nil
	}
	users, err := s.store.ResolveUsers(ctx, external)
	if err == nil {
		for i, user := range users {
			ids[external[i]] = user.ID
		}
		return ids, nil
	}
	// Somebody among them does not exist: find the others one by one.
	for _, ref := range external {
		users, err := s.store.ResolveUsers(ctx, []UserRef{ref})
		switch {
		case err == nil:
			ids[ref] = users[0].ID
		case CodeOf(err) != CodeNotFound:
			return nil, err
		}
	}
	return ids, nil
}

// Session is what a new connection of the user needs.
func (s *Service) Session(ctx context.Context, user ID) (Session, error) {
	return s.store.Session(ctx, user)
}

// UnreadTotals are the users' unread over conversations that are not muted.
func (s *Service) UnreadTotals(ctx context.Context, users []ID) (map[ID]int64, error) {
	return s.store.UnreadTotals(ctx, users)
}

// Shard spreads conversations over n workers, always the same way.
func Shard(conversation ID, n int) int {
	return int(binary.BigEndian.Uint64(conversation[8:]) % uint64(n))
}
