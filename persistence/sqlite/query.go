package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// queryer runs statements: the reader, a snapshot of it, or the writer within its
// transaction.
type queryer interface {
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// reader keeps the pool's prepared statements.
type reader struct {
	db *sql.DB

	mu    sync.Mutex // guards stmts
	stmts map[string]*sql.Stmt
}

// prepared is the statement for the query. There are as many as the code has
// queries: texts are constants.
func (r *reader) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stmt, ok := r.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if r.stmts == nil {
		r.stmts = map[string]*sql.Stmt{}
	}
	r.stmts[query] = stmt
	return stmt, nil
}

func (r *reader) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := r.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, stmt := range r.stmts {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

// snapshot runs several queries on one state of the database.
func (r *reader) snapshot(ctx context.Context, do func(queryer) error) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(do(snapshot{r, tx}), tx.Rollback())
}

type snapshot struct {
	r  *reader
	tx *sql.Tx
}

func (s snapshot) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.r.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
}

// scanner is a row: *sql.Rows.
type scanner interface{ Scan(...any) error }

// each calls row for every row of the query.
func each(ctx context.Context, q queryer, row func(scanner) error, query string, args ...any) error {
	rows, err := q.query(ctx, query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := row(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// all collects the rows of the query.
func all[T any](ctx context.Context, q queryer, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	items := []T{} // never null on the wire
	err := each(ctx, q, func(row scanner) error {
		item, err := scan(row)
		items = append(items, item)
		return err
	}, query, args...)
	return items, err
}

// one scans the only row of the query into dest; found is false without a row.
func one(ctx context.Context, q queryer, query string, args []any, dest ...any) (found bool, err error) {
	err = each(ctx, q, func(row scanner) error {
		found = true
		return row.Scan(dest...)
	}, query, args...)
	return found, err
}
