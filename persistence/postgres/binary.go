package postgres

import (
	"context"

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
	reader := conn.Conn().PgConn().ExecPrepared(ctx, name, params, binaryFormat, binaryFormat)
	for reader.NextRow() {
		read(row(reader.Values()))
	}
	_, err = reader.Close()
	return err
}
