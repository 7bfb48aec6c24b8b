package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"xabar/persistence/readshare"
)

// What every connection reads when it begins is shared by those that begin at the same
// moment (package readshare): one statement for all of them, as long as it is bounded for
// each. sharePace is what a connection waits for others when many come.
const (
	sharePace  = 4 * time.Millisecond
	shareBatch = 32
	// shareTogether is how many positions a user may name whose statement is shared with others':
	// beyond it, what starting a statement costs is little beside them, and the others would wait.
	shareTogether = 64
)

func newShare[Req, Res any](opts Options, exec readshare.Exec[Req, Res]) *readshare.Group[Req, Res] {
	return readshare.New(readshare.Options{
		Bound: opts.QueueBound, MaxBatch: shareBatch, Pace: sharePace, Timeout: opts.StatementTimeout,
	}, exec)
}

// readBinary is runBinary for a read: prepared when a connection first runs it, and
// repeated where that may help. begin is called before each attempt, to forget the rows of the
// one before.
func (s *Store) readBinary(ctx context.Context, name, sql string, params [][]byte, begin func(), read func(row)) error {
	return again(ctx, func() error {
		begin()
		return s.read.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			return runOn(ctx, conn.Conn(), name, sql, params, read)
		})
	})
}

// sharedFill is the queue of shared reads that is fullest.
func (s *Store) sharedFill() (waiting, bound int) {
	for _, fill := range []func() (int, int){s.sessions.Fill, s.checks.Fill, s.syncs.Fill} {
		n, most := fill()
		waiting, bound = max(waiting, n), most
	}
	return waiting, bound
}
