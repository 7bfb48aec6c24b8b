package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"xabar/chat"
	"xabar/internal/sockets"
	"xabar/migrations"
	"xabar/persistence/groupcommit"
	"xabar/persistence/meter"
	"xabar/persistence/readshare"
)

// Options tune a Store. Zero values take the defaults.
type Options struct {
	Clock  chat.Clock   // of created_at; default the machine's
	Logger *slog.Logger // default slog.Default

	ReadConns  int // connections for everything but the queues; default 12
	SendShards int // send batches that run at once, a connection each; default one for two cores, at most 4
	MoveShards int // position batches that run at once, a connection each; default half of them
	QueueBound int // sends, and moves, that can wait in all; default 16,384 each

	// StatementTimeout ends a statement in the server; default 10 s. What waits for
	// a lock longer than half of it gives up.
	StatementTimeout time.Duration

	Observe meter.Observe // hears of the queues' batches; nil: nobody does

	Migrate bool // bring the schema up to date; else an older one is refused
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = chat.SystemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	// More shards hide more of a commit's wait, fewer make fuller batches: on two cores two shards carry
	// no more than one, and cost PostgreSQL an eighth more for each message.
	shards := min(max(runtime.GOMAXPROCS(0)/2, 1), 4)
	defaults := []struct {
		value *int
		or    int
	}{{&o.ReadConns, 12}, {&o.SendShards, shards}, {&o.MoveShards, max(shards/2, 1)}, {&o.QueueBound, 16384}}
	for _, d := range defaults {
		if *d.value <= 0 {
			*d.value = d.or
		}
	}
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = 10 * time.Second
	}
	return o
}

// Connections is how many a Store with these options opens at most.
func (o Options) Connections() int {
	o = o.withDefaults()
	return o.ReadConns + o.writeConns()
}

// writeConns is one for each shard, and one for the outbox's removals.
func (o Options) writeConns() int { return o.SendShards + o.MoveShards + 1 }

// Store is a chat.Store on PostgreSQL. Safe for concurrent use.
type Store struct {
	opts Options
	// Two pools, so that reads that are many or slow never keep a send waiting for
	// a connection.
	read, write *pgxpool.Pool

	sends   *groupcommit.Batcher[chat.SendMessage, chat.SendResult]
	moves   *groupcommit.Batcher[chat.PositionMove, chat.PositionResult]
	closes  *groupcommit.Batcher[closing, struct{}]
	settler *settler
	later   *laterMoves

	sessions *readshare.Group[chat.ID, openedSession]
	checks   *readshare.Group[heldPositions, checked]
	syncs    *readshare.Group[held, syncLook]

	closing sync.Once
	closed  atomic.Bool
}

var _ chat.Store = (*Store)(nil)

// Open connects to the database that url names (postgres://…) and starts the
// Store's goroutines; Close ends them. Errors: unavailable; migrations.ErrNewer,
// migrations.ErrOlder (without Migrate). They never contain the url's password.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := prepareSchema(ctx, url, opts.Migrate); err != nil {
		return nil, err
	}
	s := &Store{opts: opts}
	var err error
	if s.write, err = newPool(ctx, url, opts, opts.writeConns(), prepareQueued); err != nil {
		return nil, err
	}
	if s.read, err = newPool(ctx, url, opts, opts.ReadConns, nil); err != nil {
		s.write.Close()
		return nil, err
	}
	if err = s.Ping(ctx); err == nil {
		err = s.settleEpoch(ctx)
	}
	if err != nil {
		s.read.Close()
		s.write.Close()
		return nil, err
	}
	s.sends = groupcommit.New(groupcommit.Options{
		Shards: opts.SendShards, QueueBound: perShard(opts.QueueBound, opts.SendShards), MaxBatch: 256,
		Observer: opts.Observe.For(meter.Sends), Span: "store.send",
	}, s.execSends)
	s.moves = groupcommit.New(groupcommit.Options{
		Shards: opts.MoveShards, QueueBound: perShard(opts.QueueBound, opts.MoveShards), MaxBatch: 512,
		Observer: opts.Observe.For(meter.Positions), Span: "store.position",
	}, s.execMoves)
	s.closes = groupcommit.New(groupcommit.Options{
		Shards: 1, QueueBound: opts.QueueBound, MaxBatch: 1024, Gather: closeGather,
		Observer: opts.Observe.For(meter.Outbox),
	}, s.execCloses)
	s.settler = newSettler(s)
	s.later = newLaterMoves(s.moveNow)
	s.sessions = newShare(opts, s.readSessions)
	s.checks = newShare(opts, s.readChecks)
	s.syncs = newShare(opts, s.readSyncs)
	return s, nil
}

// closeGather is how long a message may stay in the outbox after its fan-out so that it
// leaves it together with others: much less than its lease, and than a notification waits. At a few
// hundred messages a second it would else be a transaction for each.
const closeGather = 100 * time.Millisecond

func perShard(bound, shards int) int { return max(bound/shards, 1) }

// prepareSchema migrates, or checks that nothing is to be migrated.
func prepareSchema(ctx context.Context, url string, migrate bool) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return malformed(err)
	}
	db := sql.OpenDB(stdlib.GetConnector(*config))
	if migrate {
		err = migrations.Up(ctx, migrations.Postgres, db)
	} else {
		err = migrations.Check(ctx, migrations.Postgres, db)
	}
	if err = errors.Join(err, db.Close()); err != nil && codeOf(err) == chat.CodeUnavailable {
		return interpret(err)
	}
	return err
}

// malformed says what is wrong with the url without repeating it.
func malformed(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) && parse.Unwrap() != nil {
		err = parse.Unwrap()
	} else if parse != nil {
		err = errors.New("it can't be parsed")
	}
	return fmt.Errorf("postgres: the database url: %w", err)
}

// newPool makes a pool of at most conns connections with the settings that the
// statements count on.
func newPool(ctx context.Context, url string, opts Options, conns int, prepare func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, malformed(err)
	}
	config.MaxConns = int32(conns)
	config.ConnConfig.DialFunc = quietly(config.ConnConfig.DialFunc)
	config.AfterConnect = prepare
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = 15 * time.Second
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	config.ConnConfig.StatementCacheCapacity = 128
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	for name, value := range map[string]string{
		"application_name":                    "xabar",
		"timezone":                            "UTC",
		"statement_timeout":                   ms(opts.StatementTimeout),
		"lock_timeout":                        ms(opts.StatementTimeout / 2),
		"idle_in_transaction_session_timeout": ms(opts.StatementTimeout * 3),
		// One plan for every size of table and batch (see the package comment).
		"plan_cache_mode":                 "force_generic_plan",
		"enable_seqscan":                  "off",
		"enable_hashjoin":                 "off",
		"enable_mergejoin":                "off",
		"enable_bitmapscan":               "off",
		"enable_material":                 "off",
		"jit":                             "off",
		"max_parallel_workers_per_gather": "0",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, interpret(err)
	}
	return pool, nil
}

// quietly dials sockets that do not wake the scheduler's monitor for each statement.
func quietly(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return sockets.Quiet(conn), nil
	}
}

// prepareQueued plans the statements of the queues when the connection is made, so
// that no message waits for it.
func prepareQueued(ctx context.Context, conn *pgx.Conn) error {
	for name, sql := range queuedStatements {
		if _, err := conn.Prepare(ctx, name, sql); err != nil {
			return err
		}
	}
	return nil
}

// queuedStatements are what the write pool's connections run, by name.
var queuedStatements = map[string]string{
	sendStatement: sendSQL, sendOneStatement: sendOneSQL, racedStatement: racedSQL,
	moveStatement: moveSQL, moveOneStatement: moveOneSQL,
	closeStatement: closeSQL, closeDueStatement: closeDueSQL,
}

// Names of the queued statements.
const (
	sendStatement    = "xabar_send"
	sendOneStatement = "xabar_send_one"
	racedStatement   = "xabar_raced"
	moveStatement    = "xabar_move"
	moveOneStatement = "xabar_move_one"
	closeStatement   = "xabar_close"
	// With members who are absent.
	closeDueStatement = "xabar_close_due"
)

// now is the clock's time as the database keeps it.
func (s *Store) now() time.Time { return s.opts.Clock.Now().UTC().Truncate(time.Millisecond) }

// Ping asks the database for a sign of life. Errors: unavailable, timeout.
func (s *Store) Ping(ctx context.Context) error { return interpret(s.read.Ping(ctx)) }

// Close lets what is queued finish and releases the connections. Calls after it
// fail with unavailable; a second Close does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.sessions.Close()
		s.checks.Close()
		s.syncs.Close()
		s.sends.Close()
		s.later.close()
		s.moves.Close()
		s.closes.Close()
		s.settler.close()
		s.closed.Store(true)
		s.write.Close()
		s.read.Close()
	})
	return nil
}

// inTx runs do in a transaction and commits it; a deadlock or a lost race, which
// have changed nothing, are tried again.
func (s *Store) inTx(ctx context.Context, do func(pgx.Tx) error) error {
	return again(ctx, func() error { return pgx.BeginFunc(ctx, s.read, do) })
}

// attempts is how often a transaction is run that rolledBack says may be.
const attempts = 4

// again runs do until it succeeds or fails in a way that a repeat can't help, or
// whose outcome is unknown.
func again(ctx context.Context, do func() error) error {
	var err error
	for range attempts {
		if err = do(); err == nil || !rolledBack(err) || ctx.Err() != nil {
			break
		}
	}
	return interpret(err)
}
