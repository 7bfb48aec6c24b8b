package events

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"xabar/chat"
	"xabar/gateway/dialect"
	"xabar/gateway/socketio"
)

// Authenticate turns a handshake's token into the caller. Errors:
// unauthenticated, token_expired, unavailable.
type Authenticate func(ctx context.Context, token string) (chat.Actor, error)

// Config is what a Hub needs and may be told.
type Config struct {
	Authenticate Authenticate  // required
	AckTimeout   time.Duration // how long a recipient's device has to acknowledge; default chat.DefaultAckTimeout
	// LateAcks is how long after a message an acknowledgement still counts, and
	// MaxLateAcks how many messages are remembered for it. Defaults 2 min, 16384.
	LateAcks    time.Duration
	MaxLateAcks int
	Workers     int // delivery workers; default 8
	// Cluster says that other nodes store messages too: gaps are waited for, and
	// whoever carries events to them records that a message was fanned out.
	Cluster bool
	// Connected says whether other nodes can be reached now. While they cannot, what
	// is left in the outbox stays there. Nil: always.
	Connected func() bool
	// Interest makes this node hear, from its return until release, what other nodes
	// publish for the users and groups; fresh says that it had not heard all of them
	// before. Nil on a node that runs alone.
	Interest   func(ctx context.Context, users, groups []chat.ID) (release func(), fresh bool, err error)
	MaxPayload int      // told to clients in `session`
	Features   []string // told to clients in `session`
	Limits     Limits
	// Dialects are the other vocabularies that clients may speak; nil: none.
	Dialects *dialect.Set
	// CheckRevoked refuses an actor whose token was revoked after Authenticate had
	// looked; nil: nobody's is.
	CheckRevoked func(chat.Actor) error
	// Tracer records how messages go their way; nil: nothing is recorded.
	Tracer chat.Tracer
	// Restored is called when the database holds another history than at the first connection: what
	// this node remembers is of the one before. Nil: nobody is told.
	Restored func()
	Clock    chat.Clock
	Logger   *slog.Logger
	Metrics  Metrics // nil: nobody hears
}

// Bounds of a hub. What happens at each stands with its use.
const (
	workerQueue      = QueueBound       // jobs waiting for a worker; a full one holds up who publishes
	maxClientReads   = 16               // requests of one socket that wait for the database; more hold up its reader
	poolSize         = 64               // requests that read the database at a time; many share a statement
	requestTimeout   = 10 * time.Second // of one request
	lateSweep        = 5 * time.Second  // between two looks for what may be forgotten
	streamIdle       = 5 * time.Minute  // after which a conversation's last seq is forgotten
	interestTimeout  = 2 * time.Second  // for other nodes to be heard, before a connection goes on without
	takeOverInterval = 2 * time.Second
	takeOverBatch    = 200
)

// QueueBound is how many jobs can wait for one worker.
const QueueBound = 4096

// Hub delivers to the sockets of this node. Make it with New, give it to
// chat.NewService as the Broadcaster, then Attach both to a namespace and Run.
type Hub struct {
	cfg        Config
	log        *slog.Logger
	service    *chat.Service
	pres       chat.Presence
	ns         *socketio.Namespace
	spaces     []*socketio.Namespace // ns, and those of dialects
	views      map[viewKey]*view
	names      *nameTable
	actions    map[string]action // by the standard event's name
	counts     map[string]EventMetrics
	ends       typingEnds
	endsTyping bool // some dialect is told of the end

	users   userTable
	gaps    gapTable
	workers []*worker
	reads   *pool
	unread  *unreadTracker

	mu           sync.Mutex // guards initialising, revoked
	initialising map[*client]struct{}
	initCount    atomic.Int32 // len(initialising), for those who only look
	revoked      *lru.Cache[chat.ID, time.Time]

	epoch       atomic.Pointer[chat.ID] // of the history that this node shows
	pendingAcks atomic.Int64
	draining    atomic.Bool
	stopped     chan struct{} // closed when Run ends
}

// New makes a hub; it starts nothing.
func New(cfg Config) *Hub {
	setDefault(&cfg.AckTimeout, chat.DefaultAckTimeout)
	setDefault(&cfg.LateAcks, 2*time.Minute)
	setDefault(&cfg.MaxLateAcks, 16384)
	setDefault(&cfg.Workers, 8)
	if cfg.Clock == nil {
		cfg.Clock = chat.SystemClock{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Metrics == nil {
		cfg.Metrics = noMetrics{}
	}
	if cfg.Features == nil {
		cfg.Features = []string{}
	}
	h := &Hub{
		cfg: cfg, log: cfg.Logger, reads: newPool(poolSize),
		initialising: map[*client]struct{}{}, stopped: make(chan struct{}),
	}
	var err error
	if h.revoked, err = lru.New[chat.ID, time.Time](maxRevoked); err != nil {
		panic(err) // only for a size below 1
	}
	h.users.init()
	h.gaps.init()
	h.unread = newUnreadTracker(h)
	h.names = newNameTable(h)
	h.actions = map[string]action{}
	h.counts = map[string]EventMetrics{}
	for range cfg.Workers {
		h.workers = append(h.workers, newWorker(h))
	}
	return h
}

func setDefault[T int | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// Attach connects the hub to its service, to who is online, and to the namespace
// whose sockets it serves. Call it once, before serving.
func (h *Hub) Attach(service *chat.Service, presence chat.Presence, ns *socketio.Namespace) {
	h.service, h.pres, h.ns = service, presence, ns
	ns.Use(h.authenticate)
	ns.OnConnection(h.connected)
	ns.OnDisconnect(h.disconnected)
	h.registerEvents()
	h.addViews()
	presence.Watch(func(state chat.PresenceState) {
		h.cfg.Metrics.PresenceChanged(state.Online)
		h.presenceChanged(chat.PresenceChanged{PresenceState: state})
		if !state.Online { // it may not have received all that went to its sockets
			service.WentOffline(state.UserID)
		}
	})
}

// Run delivers until ctx ends and returns when every goroutine of the hub has.
// Close the sockets before, else they hear nothing more.
func (h *Hub) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, w := range h.workers {
		running.Go(func() { w.run(ctx) })
	}
	running.Go(func() { h.unread.run(ctx) })
	running.Go(func() { h.takeOver(ctx) })
	running.Go(func() { h.retryClaims(ctx) })
	<-ctx.Done()
	close(h.stopped)
	running.Wait()
	h.reads.close()
	h.ends.close()
	return nil
}

// takeOver fans out again what a crash left between store and fan-out: at the
// start, and then whenever a lease has run out.
func (h *Hub) takeOver(ctx context.Context) {
	ticker := time.NewTicker(takeOverInterval)
	defer ticker.Stop()
	for {
		n, err := h.takeOverSome(ctx)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("the outbox could not be read", "error", err)
		}
		if n > 0 {
			h.cfg.Metrics.TakenOver(n)
			h.log.Info("fanned out again what was left in the outbox", "messages", n)
		}
		if n == takeOverBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *Hub) takeOverSome(ctx context.Context) (int, error) {
	if h.cfg.Connected != nil && !h.cfg.Connected() {
		return 0, nil
	}
	return h.service.TakeOver(ctx, takeOverBatch)
}

// errStopped is what Publish says after Run has ended.
var errStopped = errors.New("events: the hub has stopped")

// Publish implements chat.Broadcaster for this node's sockets. It hands the event
// to its conversation's worker and waits only while that worker's queue is full.
func (h *Hub) Publish(ctx context.Context, event chat.Event) error {
	return h.deliver(ctx, event, false)
}

// Receive delivers an event that another node has published.
func (h *Hub) Receive(ctx context.Context, event chat.Event) error {
	return h.deliver(ctx, event, true)
}

func (h *Hub) deliver(ctx context.Context, event chat.Event, foreign bool) error {
	var conversation chat.ID
	switch e := event.(type) {
	case *chat.MessageStored:
		conversation = e.Message.ConversationID
	case *chat.PositionMoved:
		conversation = e.ConversationID
	case chat.ConversationChanged:
		conversation = e.ConversationID
	case chat.TypingStarted:
		h.typing(e) // volatile: it has no place in the order
		return nil
	case chat.PresenceChanged:
		h.presenceChanged(e)
		return nil
	case chat.AccessRevoked:
		h.revoke(e)
		return nil
	case chat.BlockChanged:
		h.blockChanged(e)
		return nil
	}
	return h.post(ctx, conversation, job{event: event, foreign: foreign, at: now()})
}

// post gives a job to the conversation's worker.
func (h *Hub) post(ctx context.Context, conversation chat.ID, j job) error {
	w := h.worker(conversation)
	select {
	case w.jobs <- j:
		return nil
	default:
	}
	select {
	case w.jobs <- j:
		return nil
	case <-h.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hub) worker(conversation chat.ID) *worker {
	return h.workers[chat.Shard(conversation, len(h.workers))]
}

// Stats are this node's figures of the moment, for metrics and tests.
type Stats struct {
	Users       int   // with at least one socket here
	PendingAcks int64 // acknowledgements that may still come in time
	Gaps        int   // claims that wait for a gap to close
	Queued      int   // jobs that wait for the worker that has most of them, of QueueBound
	Reads       int   // requests that wait for their turn to read the database
}

// Stats reads the figures.
func (h *Hub) Stats() Stats {
	stats := Stats{Users: h.users.len(), PendingAcks: h.pendingAcks.Load(), Gaps: h.gaps.len(), Reads: h.reads.waiting()}
	for _, w := range h.workers {
		stats.Queued = max(stats.Queued, len(w.jobs))
	}
	return stats
}

// Draining says whether Drain was called.
func (h *Hub) Draining() bool { return h.draining.Load() }

// Drain tells every socket to go elsewhere and closes their connections a few at
// a time until none is left or ctx ends. New connections are turned away.
func (h *Hub) Drain(ctx context.Context) error {
	h.draining.Store(true)
	clients := h.users.all()
	spread := 2 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		spread = min(spread, time.Until(deadline)/2)
	}
	const batches = 20
	size := max(1, (len(clients)+batches-1)/batches)
	pause := time.NewTicker(max(time.Millisecond, spread/batches))
	defer pause.Stop()
	for len(clients) > 0 {
		n := min(size, len(clients))
		for _, c := range clients[:n] {
			c.closing(ClosingDraining, true, 0)
		}
		if clients = clients[n:]; len(clients) == 0 {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
