package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"xabar/chat"
)

// writer is the one connection that writes, and its prepared statements. The
// batcher's goroutine alone uses it.
type writer struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func newWriter(conn *sql.Conn) *writer {
	return &writer{conn: conn, stmts: map[string]*sql.Stmt{}}
}

// background is every write's context: a change that has begun ends by itself
// soon, and the driver starts a goroutine per statement for a context that can
// end.
var background = context.Background()

func (w *writer) prepared(query string) (*sql.Stmt, error) {
	if stmt, ok := w.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(background, query)
	if err != nil {
		return nil, err
	}
	w.stmts[query] = stmt
	return stmt, nil
}

func (w *writer) query(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := w.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(background, args...)
}

// exec gives the number of rows that the statement changed.
func (w *writer) exec(query string, args ...any) (int64, error) {
	stmt, err := w.prepared(query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(background, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (w *writer) run(query string, args ...any) error {
	_, err := w.exec(query, args...)
	return err
}

func (w *writer) one(query string, args []any, dest ...any) (found bool, err error) {
	return one(background, w, query, args, dest...)
}

// alone runs a change within the transaction so that its failure takes back just
// what it did.
func (w *writer) alone(change func() error) error {
	if err := w.run("SAVEPOINT change"); err != nil {
		return err
	}
	if err := change(); err != nil {
		return errors.Join(err, w.run("ROLLBACK TO change"), w.run("RELEASE change"))
	}
	return w.run("RELEASE change")
}

func (w *writer) close() error {
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

// tx is what a change sees: the writer within the batch's transaction, and the
// batch's time.
type tx struct {
	*writer
	now chat.Time
}

func (t *tx) millis() int64 { return t.now.UnixMilli() }

func (t *tx) lease() int64 { return t.now.Add(chat.OutboxLease).UnixMilli() }

// millis is a time as it is stored.
func millis(t time.Time) int64 { return t.UnixMilli() }
