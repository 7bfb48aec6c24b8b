package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// binaryFormat says of all parameters (or columns) that they are binary.
var binaryFormat = []int16{1}

// runBinary runs one of queuedStatements on the write pool, with
// parameters in binary form, and hands each row of the answer to read; the row's
// bytes are read's only until it returns. One round trip, and one transaction.
// After an error some rows may have been read.
func runBinary(ctx context.Context, pool *pgxpool.Pool, name string, params [][]byte, read func(row)) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return runOn(ctx, conn.Conn(), name, queuedStatements[name], params, read)
}

// runOn runs a statement, which it prepares where the connection has not yet, with parameters and rows in
// binary form. The connection knows its columns, so that the server need not describe them each time.
func runOn(ctx context.Context, conn *pgx.Conn, name, sql string, params [][]byte, read func(row)) error {
	statement, err := conn.Prepare(ctx, name, sql)
	if err != nil {
		return err
	}
	reader := conn.PgConn().ExecStatement(ctx, statement, params, binaryFormat, binaryFormat)
	for reader.NextRow() {
		read(row(reader.Values()))
	}
	_, err = reader.Close()
	return err
}
