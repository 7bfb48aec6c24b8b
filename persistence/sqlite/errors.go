package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"xabar/chat"
)

// translate gives what the driver said a code of chat's; the driver's text stays
// inside, for logs.
func translate(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return chat.Wrap(chat.CodeTimeout, err)
	case errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone), isClosed(err):
		return chat.Wrap(chat.CodeUnavailable, err)
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return chat.Wrap(chat.CodeInternal, err)
	}
	switch e.Code() & 0xff { // the primary code
	case sqlite3.SQLITE_INTERRUPT:
		return chat.Wrap(chat.CodeTimeout, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return chat.Wrap(chat.CodeUnavailable, err)
	}
	return chat.Wrap(chat.CodeInternal, err)
}

// isClosed recognises database/sql's answer after Close, which has no name.
func isClosed(err error) bool {
	return strings.Contains(err.Error(), "sql: database is closed") ||
		strings.Contains(err.Error(), "sql: statement is closed")
}

// failsCheck says that a CHECK of the schema refused the row.
func failsCheck(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_CHECK
}

// breaksBatch says that the error is the transaction's or the file's rather than
// one change's: nothing of the batch can be committed.
func breaksBatch(err error) bool {
	return chat.CodeOf(translate(context.Background(), err)) == chat.CodeUnavailable
}
