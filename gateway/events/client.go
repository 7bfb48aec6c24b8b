package events

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"xabar/chat"
	"xabar/gateway/socketio"
	"xabar/internal/ratelimit"
)

// client is one connected socket of a user.
type client struct {
	hub    *Hub
	socket *socketio.Socket
	user   chat.User
	since  time.Time          // what was stored by then it learns by its catch-up or sync
	sync   bool               // keeps its own positions and calls sync; else the hub catches it up
	view   *view              // what it speaks; nil: the standard events
	origin *chat.TraceContext // of its handshake; nil: not recorded

	// holding is how many conversations may not go to the socket just so: while it
	// initialises one for all of them, then one for each entry of held. 0 is the
	// hot path: no lock.
	holding atomic.Int32
	live    atomic.Bool // ready, for those who only look
	closed  atomic.Bool
	slots   chan struct{}    // one for each request that waits for the database
	events  ratelimit.Bucket // of the socket's reader

	remembered map[string]any // of the socket's reader: what its dialect refers to

	mu     sync.Mutex // guards the fields below
	ready  bool
	missed map[chat.ID]int64       // while not ready: conversation -> the seq before the first live message
	left   map[chat.ID]bool        // while not ready: groups that the user was taken out of
	held   map[chat.ID]*holdback   // conversations that are caught up, or were
	typed  map[typingKey]time.Time // when typing was last let through
	expiry *time.Timer             // closes the socket when its token ends
	synced map[chat.ID]int64       // what it held after its sync, for a while
	unsync *time.Timer             // forgets it
	actor  chat.Actor
	watch  []string // rooms of the users whose presence it hears
	unhear func()   // lets go of what its namespace's rooms do not keep; nil: nothing
}

// holdback keeps live messages of a conversation from a socket: all of them while
// a catch-up runs, afterwards those that the catch-up has already sent.
type holdback struct {
	catching *catchUp
	resting  *catchUp // it waits for a late acknowledgement
	floor    int64
}

func clientOf(s *socketio.Socket) *client {
	c, _ := s.Data().(*client)
	return c
}

// caller is the actor as of now: a refreshed token changes it.
func (c *client) caller() chat.Actor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.actor
}

// handshakeAuth is what a client says in `auth`.
type handshakeAuth struct {
	Token string `json:"token"`
	Sync  bool   `json:"sync"`
	// Dialect is the vocabulary that the client speaks; "" for the standard events, or
	// for the one of its namespace.
	Dialect string `json:"dialect"`
	// Traceparent is the trace that the handshake belongs to, for clients that can't set
	// a header.
	Traceparent string `json:"traceparent"`
}

// authenticate is the namespace's middleware. What time does not heal is a
// connect_error; what it does closes the transport, so that the official client's
// own reconnection tries again.
func (h *Hub) authenticate(s *socketio.Socket) error {
	if h.draining.Load() {
		s.Conn().Close()
		return connectError(chat.Errorf(chat.CodeUnavailable, "this node is going away"))
	}
	var auth handshakeAuth
	if err := json.Unmarshal(s.Auth(), &auth); err != nil {
		return connectError(chat.Errorf(chat.CodeUnauthenticated, "auth must be an object with a token"))
	}
	if auth.Token == "" {
		auth.Token = bearer(s.Conn().Handshake().Headers.Get("Authorization"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	span := h.traceConnect(s, auth.Traceparent)
	actor, err := h.cfg.Authenticate(ctx, auth.Token)
	chat.EndSpan(span, err)
	if err != nil {
		known := chat.AsError(err)
		h.log.Debug("a handshake was refused", whose(s), "code", known.Code)
		if known.Code.Retryable() {
			h.log.Warn("a handshake was turned away for now", whose(s), "error", err)
			s.Conn().Close()
		}
		return connectError(known)
	}
	if h.tooMany(actor.User.ID) {
		s.Conn().Close()
		return connectError(chat.RateLimited(connectionPause))
	}
	view, err := h.chooseView(s, auth.Dialect)
	if err != nil {
		return connectError(chat.AsError(err))
	}
	actor.SocketID = s.ID()
	s.SetData(&client{
		hub: h, socket: s, user: actor.User, actor: actor, view: view, origin: chat.TraceOf(span),
		sync:  auth.Sync && (view == nil || view.d.Handles("sync")),
		slots: make(chan struct{}, maxClientReads),
	})
	return nil
}

func bearer(header string) string {
	const prefix = "Bearer "
	if len(header) > len(prefix) && header[:len(prefix)] == prefix {
		return header[len(prefix):]
	}
	return ""
}

func connectError(e *chat.Error) error {
	return &socketio.ConnectError{Message: e.Message, Data: Refusal{e.Code, e.Message}}
}

// Refusal is the data of a connect_error.
type Refusal struct {
	Code    chat.Code `json:"code"`
	Message string    `json:"message"`
}

// connected runs on the socket's reader before any of its events. From the moment
// that the client is in the tables, live messages are noted as missed; what the
// database knew and what was noted together are what there is to catch up.
func (h *Hub) connected(s *socketio.Socket) {
	c := clientOf(s)
	c.since = h.cfg.Clock.Now()
	c.holding.Store(1)
	h.setInitialising(c, true)
	h.users.add(c)
	if !h.mayStay(c) {
		h.setInitialising(c, false)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	span := chat.GoOn(h.cfg.Tracer, c.origin, chat.InternalSpan, "session.open")
	session, release, err := h.openSession(ctx, c.user.ID)
	if h.keepsHearing(c) {
		c.keepHearing(release)
	} else {
		defer release()
	}
	if err == nil {
		err = h.sameHistory(session.Epoch)
	}
	if err == nil {
		// Before the rooms: nothing may come before `session`.
		c.emit("session", h.sessionPayload(c, session))
		if c.view == nil || c.view.d.Server["unread"] != nil {
			h.unread.seed(c.user.ID, session.UnreadTotal)
		}
		err = c.joinRooms(session.Groups)
	}
	if err == nil {
		err = h.pres.Connect(ctx, c.user.ID, s.ID())
	}
	chat.EndSpan(span, err)
	if err != nil {
		// The client's reconnection tries again; there is no answer to give it here.
		h.log.Warn("a session could not be opened", c.who(), "error", err)
		h.setInitialising(c, false)
		s.Conn().Close()
		return
	}
	h.setInitialising(c, false)
	for _, u := range c.goLive(session) {
		u.next()
	}
	c.armExpiry()
	h.log.Debug("a socket is connected", c.who())
}

// openSession reads what a connection begins with, at a moment from which this node
// hears everything that concerns the user: what other nodes stored before it is in
// what was read. release is called once the rooms keep it that way.
func (h *Hub) openSession(ctx context.Context, user chat.ID) (_ chat.Session, release func(), err error) {
	if h.cfg.Interest == nil {
		session, err := h.service.Session(ctx, user)
		return session, func() {}, err
	}
	releaseUser, _ := h.hear(ctx, []chat.ID{user}, nil)
	session, err := h.service.Session(ctx, user)
	if err != nil || len(session.Groups) == 0 {
		return session, releaseUser, err
	}
	releaseGroups, fresh := h.hear(ctx, nil, session.Groups)
	if fresh {
		session, err = h.service.Session(ctx, user)
	}
	return session, func() { releaseUser(); releaseGroups() }, err
}

// hear begins to hear what concerns users and groups. With Redis down it goes on
// without: Repair brings what is missed.
func (h *Hub) hear(ctx context.Context, users, groups []chat.ID) (release func(), fresh bool) {
	ctx, cancel := context.WithTimeout(ctx, interestTimeout)
	defer cancel()
	release, fresh, err := h.cfg.Interest(ctx, users, groups)
	if err != nil {
		h.log.Debug("other nodes are not heard yet", "error", err)
	}
	return release, fresh
}

func (h *Hub) setInitialising(c *client, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on {
		h.initialising[c] = struct{}{}
	} else {
		delete(h.initialising, c)
	}
	h.initCount.Store(int32(len(h.initialising)))
}

// noteMissed tells the clients that are just connecting of a group's message: they
// may be members whose rooms are not joined yet.
func (h *Hub) noteMissed(conversation chat.ID, seq int64) {
	if h.initCount.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.initialising {
		c.admit(conversation, seq)
	}
}

func (c *client) joinRooms(groups []chat.ID) error {
	rooms := make([]string, 0, len(groups)+1)
	rooms = append(rooms, userRoom(c.user.ID))
	for _, id := range groups {
		rooms = append(rooms, conversationRoom(id))
	}
	if err := c.socket.Join(rooms...); err != nil {
		return err
	}
	c.mu.Lock()
	left := c.left
	c.left = nil
	c.mu.Unlock()
	for id := range left {
		c.socket.Leave(conversationRoom(id))
	}
	return nil
}

// goLive ends the initialising: from here on live messages go to the socket, but
// those of conversations that are to be caught up. It returns the catch-ups to begin
// with. A client that syncs has none.
func (c *client) goLive(session chat.Session) []*catchUp {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = true
	c.live.Store(true)
	missed := c.missed
	c.missed, c.left = nil, nil
	if c.sync {
		c.holding.Store(0)
		return nil
	}
	from := map[chat.ID]int64{}
	for _, u := range session.Undelivered {
		from[u.ConversationID] = u.LastDeliveredSeq
	}
	for id, before := range missed {
		if _, ok := from[id]; !ok {
			from[id] = before
		}
	}
	c.withoutHidden(from, session.Groups)
	c.held = make(map[chat.ID]*holdback, len(from))
	begin := make([]*catchUp, 0, len(from))
	for id, held := range from {
		u := &catchUp{hub: c.hub, c: c, conversation: id, held: held}
		c.held[id] = &holdback{catching: u}
		begin = append(begin, u)
	}
	c.holding.Store(int32(len(c.held)))
	return begin
}

// admit decides, on the conversation's worker, whether a live message may go to
// the socket now.
func (c *client) admit(conversation chat.ID, seq int64) bool {
	if c.holding.Load() == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ready {
		if _, ok := c.missed[conversation]; !ok && !c.sync {
			if c.missed == nil {
				c.missed = map[chat.ID]int64{}
			}
			c.missed[conversation] = seq - 1
		}
		return false
	}
	hold := c.held[conversation]
	switch {
	case hold == nil:
		return true
	case hold.catching != nil || seq <= hold.floor:
		return false
	case hold.resting == nil:
		c.unhold(conversation)
	case hold.resting.until == 0:
		hold.resting.until = seq
	}
	return true
}

// unhold lets a conversation's live messages through. The caller holds mu.
func (c *client) unhold(conversation chat.ID) {
	if _, ok := c.held[conversation]; ok {
		delete(c.held, conversation)
		c.holding.Add(-1)
	}
}

// emit sends an event that wants no acknowledgement. A socket that is gone or slow
// is closed by the engine; there is nobody to tell.
func (c *client) emit(event string, payload any) {
	if c.view != nil {
		c.view.emit(c, event, payload)
		return
	}
	if err := c.socket.Emit(event, payload); err != nil {
		c.hub.log.Debug("an event was not sent", "event", event, c.who(), "error", err)
	}
}

type sessionClosing struct {
	Code    string `json:"code"`
	Retry   bool   `json:"retry"`
	AfterMs int64  `json:"afterMs"`
}

// closing says why and closes: the transport where the client shall come back by
// itself, else the socket.
func (c *client) closing(code string, retry bool, after time.Duration) {
	c.hub.cfg.Metrics.Closing(code)
	c.emit("session:closing", sessionClosing{code, retry, after.Milliseconds()})
	if retry {
		c.socket.Conn().Close()
	} else {
		c.socket.Disconnect(true)
	}
}

// armExpiry closes the socket when its token ends. An official client whose auth
// is a function comes back with a new one.
func (c *client) armExpiry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if c.actor.ExpiresAt.IsZero() || c.closed.Load() {
		return
	}
	left := time.Until(c.actor.ExpiresAt)
	notice := min(expiryNotice, left/2)
	c.expiry = time.AfterFunc(left-notice, func() { c.expiring(notice) })
}

// expiring tells the socket that its token is about to end, and closes it when that
// comes; a refresh in between starts anew.
func (c *client) expiring(notice time.Duration) {
	const slack = time.Second // between the clock that set the timer and the one of the token
	c.mu.Lock()
	left := time.Until(c.actor.ExpiresAt)
	if c.closed.Load() || left > notice+slack {
		c.mu.Unlock()
		return
	}
	c.expiry = time.AfterFunc(left, c.socket.Conn().Close)
	c.mu.Unlock()
	c.hub.cfg.Metrics.Closing(ClosingTokenExpired)
	c.emit("session:closing", sessionClosing{ClosingTokenExpired, true, max(0, left).Milliseconds()})
}

// disconnected runs once for each connected socket, after its last event.
func (h *Hub) disconnected(s *socketio.Socket, reason string) {
	c := clientOf(s)
	c.closed.Store(true)
	h.service.DeviceLeft(c.user.ID)
	h.log.Debug("a socket has ended", c.who(), "reason", reason)
	h.setInitialising(c, false)
	c.mu.Lock()
	if c.expiry != nil {
		c.expiry.Stop()
	}
	if c.unsync != nil {
		c.unsync.Stop()
	}
	unhear := c.unhear
	c.mu.Unlock()
	if unhear != nil {
		unhear()
	}
	if h.users.remove(c) {
		h.gaps.forget(c.user.ID)
		h.unread.forget(c.user.ID)
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := h.pres.Disconnect(ctx, c.user.ID, s.ID()); err != nil {
		h.log.Warn("presence did not hear of a disconnect", c.who(), "error", err)
	}
}

// revoke ends the sockets of a user.
func (h *Hub) revoke(e chat.AccessRevoked) {
	if h.revokedBefore(e) {
		return
	}
	for _, c := range h.users.get(e.UserID) {
		c.closing(ClosingRevoked, false, 0)
	}
}

func userRoom(id chat.ID) string         { return "user:" + id.String() }
func conversationRoom(id chat.ID) string { return "conversation:" + id.String() }
func presenceRoom(id chat.ID) string     { return presencePrefix + id.String() }

// presencePrefix begins the rooms of those who hear of a user's presence; no other
// node needs to know them.
const presencePrefix = "presence:"

type sessionLimits struct {
	MaxTextLength    int   `json:"maxTextLength"`
	PageLimit        int   `json:"pageLimit"`
	TypingIntervalMs int64 `json:"typingIntervalMs"`
	TypingExpiresMs  int64 `json:"typingExpiresMs"`
	AckTimeoutMs     int64 `json:"ackTimeoutMs"`
	MaxPayload       int   `json:"maxPayload"`
}

type sessionPayload struct {
	User        chat.User     `json:"user"`
	ServerTime  chat.Time     `json:"serverTime"`
	UnreadTotal int64         `json:"unreadTotal"`
	Limits      sessionLimits `json:"limits"`
	Features    []string      `json:"features"`
	Epoch       chat.ID       `json:"epoch"`
}

func (h *Hub) sessionPayload(c *client, session chat.Session) sessionPayload {
	return sessionPayload{
		User: c.user, ServerTime: chat.At(h.cfg.Clock.Now()), UnreadTotal: session.UnreadTotal,
		Limits: sessionLimits{
			chat.MaxTextLength, chat.PageLimit, chat.TypingInterval.Milliseconds(),
			chat.TypingExpires.Milliseconds(), h.cfg.AckTimeout.Milliseconds(), h.cfg.MaxPayload,
		},
		Features: h.cfg.Features, Epoch: session.Epoch,
	}
}
