package socketio

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"xabar/gateway/engineio"
)

// Defaults of Recovery.
const (
	DefaultMaxDisconnection = 2 * time.Minute
	DefaultMaxSessions      = 10_000
	DefaultMaxRecoveryBytes = 16 << 20
)

// Recovery is the connection state recovery of Socket.IO 4.6: a client that comes back soon after
// its connection broke gets its id, rooms and data back, and the events that it missed, without
// knowing of it (socket.recovered tells). Events that are volatile, prepared, or ask for an
// acknowledgement are not kept. As in Node, each kept event has one argument more, its offset.
//
// What is kept is in the memory of this server: it is for one that stands alone.
type Recovery struct {
	MaxDisconnection time.Duration // how long a client may be away; default 2 minutes
	MaxSessions      int           // clients that are away, per namespace, the oldest go first; default 10,000
	MaxBytes         int           // kept events per namespace, the oldest go first; default 16 MiB
	RunMiddlewares   bool          // run them for recovered sockets too
}

// recovery is what a namespace keeps for clients that are away.
type recovery struct {
	ns    *Namespace
	opts  Recovery
	nonce string // makes the offsets of another run worthless

	// mu guards the rest. It is held while an event is kept and queued for its recipients, so that
	// every client receives in the order in which events are kept. It comes before Socket.gate.
	mu       sync.Mutex
	events   []keptEvent
	first    uint64 // number of events[0]
	bytes    int
	sessions map[string]*session // by pid
	away     []*session          // in the order of their going
}

type keptEvent struct {
	at          time.Time
	rooms       []string
	except      []string
	data        []byte
	attachments [][]byte
}

func (e *keptEvent) size() int {
	n := len(e.data) + 128
	for _, a := range e.attachments {
		n += len(a)
	}
	return n
}

// session is a socket that went away.
type session struct {
	sid, pid string
	rooms    []string
	data     any
	at       time.Time
}

func newRecovery(ns *Namespace) *recovery {
	r := &recovery{ns: ns, opts: *ns.server.opts.Recovery, nonce: randomID()[:8], sessions: make(map[string]*session)}
	orDefault(&r.opts.MaxDisconnection, DefaultMaxDisconnection)
	orDefault(&r.opts.MaxSessions, DefaultMaxSessions)
	orDefault(&r.opts.MaxBytes, DefaultMaxRecoveryBytes)
	return r
}

// emit keeps an event and sends it to the sockets that opts select, or, if s is not nil, to s.
func (r *recovery) emit(s *Socket, event string, args []any, opts *BroadcastOptions) error {
	if isReservedEvent(event) {
		return ErrReservedEvent
	}
	data, attachments, err := encodePayload(event, args, r.ns.server.opts.MaxAttachments)
	if err != nil {
		return err
	}
	r.notify(s, event, data, attachments, opts)
	r.mu.Lock()
	defer r.mu.Unlock()
	data = slices.Concat(data[:len(data)-1], []byte(`,"`+r.offset(r.first+uint64(len(r.events)))+`"]`))
	p, err := r.ns.seal(event, nil, &opts.Flags, data, attachments)
	if err != nil {
		return err
	}
	p.notified = true
	r.keep(keptEvent{at: time.Now(), rooms: opts.Rooms, except: opts.Except, data: data, attachments: attachments})
	if s == nil {
		return r.ns.adapter.Broadcast(p, opts)
	}
	_, err = s.deliver(p, false, false)
	return err
}

// notify runs the handlers of OnAnyOutgoing before the lock is taken: they may emit themselves.
func (r *recovery) notify(s *Socket, event string, data []byte, attachments [][]byte, opts *BroadcastOptions) {
	tell := func(s *Socket) bool {
		if h := s.handlers.Load(); h != nil && len(h.anyOut) > 0 && s.Connected() {
			s.notifyOutgoing(h, event, data, attachments)
		}
		return true
	}
	if s != nil {
		tell(s)
		return
	}
	r.ns.adapter.Range(opts, tell)
}

func (r *recovery) keep(e keptEvent) {
	r.events = append(r.events, e)
	r.bytes += e.size()
	n := 0
	for n < len(r.events)-1 && (r.bytes > r.opts.MaxBytes || e.at.Sub(r.events[n].at) > r.opts.MaxDisconnection) {
		r.bytes -= r.events[n].size()
		r.events[n] = keptEvent{}
		n++
	}
	r.events, r.first = r.events[n:], r.first+uint64(n)
}

func (r *recovery) offset(number uint64) string {
	return r.nonce + "." + strconv.FormatUint(number, 36)
}

// recoverable says that a client with this reason may come back to its session.
func recoverable(reason string) bool {
	switch engineio.Reason(reason) {
	case engineio.ReasonTransportClose, engineio.ReasonTransportError, engineio.ReasonPingTimeout,
		engineio.ReasonForcedClose, engineio.ReasonSlowConsumer, ReasonForcedClose:
		return true
	}
	return false
}

// leave keeps the session of a socket that has been disconnected.
func (r *recovery) leave(s *Socket, rooms []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	se := &session{sid: s.id, pid: s.pid, rooms: rooms, data: s.Data(), at: now}
	r.sessions[se.pid] = se
	r.away = append(r.away, se)
	n := 0
	for n < len(r.away) && (len(r.away)-n > r.opts.MaxSessions || now.Sub(r.away[n].at) > r.opts.MaxDisconnection) {
		if old := r.away[n]; r.sessions[old.pid] == old {
			delete(r.sessions, old.pid)
		}
		r.away[n] = nil
		n++
	}
	r.away = r.away[n:]
}

// take returns the session that an auth payload names, once, if what came after its offset is
// still kept. missed is the number of the first such event.
func (r *recovery) take(auth json.RawMessage) (se *session, missed uint64) {
	var claim struct{ PID, Offset string }
	if len(auth) == 0 || json.Unmarshal(auth, &claim) != nil || claim.PID == "" {
		return nil, 0
	}
	digits, ok := strings.CutPrefix(claim.Offset, r.nonce+".")
	number, err := strconv.ParseUint(digits, 36, 64)
	if !ok || err != nil {
		return nil, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	se = r.sessions[claim.PID]
	switch {
	case se == nil, number < r.first, number >= r.first+uint64(len(r.events)):
		return nil, 0
	case time.Since(se.at) > r.opts.MaxDisconnection:
		return nil, 0
	}
	delete(r.sessions, claim.PID)
	return se, number + 1
}

// missed calls f for the kept events from number on that the session was to receive. r.mu is held.
func (r *recovery) missed(se *session, number uint64, f func(e *keptEvent)) {
	for i := max(number, r.first) - r.first; i < uint64(len(r.events)); i++ {
		e := &r.events[i]
		in := func(room string) bool { return slices.Contains(se.rooms, room) }
		if (len(e.rooms) == 0 || slices.ContainsFunc(e.rooms, in)) && !slices.ContainsFunc(e.except, in) {
			f(e)
		}
	}
}

// recovered is what a connecting socket takes over.
type recovered struct {
	session *session
	missed  uint64
}

// Recovered says that the socket took over the session of one that was cut off.
func (s *Socket) Recovered() bool { return s.recovered != nil }

// openRecovered is open for namespaces with recovery: no event may come between what was missed
// and what follows.
func (r *recovery) openRecovered(s *Socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.open() {
		return false
	}
	if s.recovered != nil {
		r.missed(s.recovered.session, s.recovered.missed, func(e *keptEvent) {
			// fails only if the connection is gone, and then nobody needs it
			_ = s.send(&Packet{Type: PacketEvent, Namespace: r.ns.name, Data: e.data, Attachments: e.attachments})
		})
	}
	return true
}
