package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// queryer runs statements: the reader, a snapshot of it, or the writer within its
// transaction.
type queryer interface {
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// reader keeps the pool's prepared statements.
type reader struct {
	db    *sql.DB
	stmts sync.Map // query -> *sql.Stmt; as many as the code has queries: texts are constants
}

func (r *reader) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := r.stmts.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, raced := r.stmts.LoadOrStore(query, stmt); raced {
		return first.(*sql.Stmt), stmt.Close()
	}
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
	var errs []error
	r.stmts.Range(func(_, stmt any) bool {
		errs = append(errs, stmt.(*sql.Stmt).Close())
		return true
	})
	return errors.Join(errs...)
}

// snapshot runs several queries, those listed, on one state of the database. They
// are prepared first: whoever holds a connection of the pool must not wait for
// another one.
func (r *reader) snapshot(ctx context.Context, queries []string, do func(queryer) error) error {
	stmts := make(map[string]*sql.Stmt, len(queries))
	for _, query := range queries {
		stmt, err := r.prepared(ctx, query)
		if err != nil {
			return err
		}
		stmts[query] = stmt
	}
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(do(snapshot{stmts, tx}), tx.Rollback())
}

type snapshot struct {
	stmts map[string]*sql.Stmt
	tx    *sql.Tx
}

func (s snapshot) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, ok := s.stmts[query]
	if !ok {
		return nil, fmt.Errorf("sqlite: a query that the snapshot does not list: %s", query)
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
