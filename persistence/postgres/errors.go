package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"xabar/chat"
)

// SQLSTATE codes by name (PostgreSQL's Appendix A).
const (
	stateUniqueViolation  = "23505"
	stateForeignKey       = "23503"
	stateCheckViolation   = "23514"
	stateSerialization    = "40001"
	stateDeadlock         = "40P01"
	stateLockNotAvailable = "55P03"
	stateQueryCanceled    = "57014"
	stateReadOnly         = "25006"
	stateNotInRepertoire  = "22021"
	stateGaveUp           = "22012" // division by zero: sendSQL's own request for another run
)

// interpret gives an error of the driver its chat.Code. It never says more to the
// client than the code does; the cause stays inside for the log.
func interpret(err error) error {
	if err == nil {
		return nil
	}
	var known *chat.Error
	if errors.As(err, &known) {
		return err
	}
	return chat.Wrap(codeOf(err), err)
}

func codeOf(err error) chat.Code {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return stateCode(pg.Code)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	// Before the connection errors: a deadline cuts the connection, too.
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return chat.CodeTimeout
	case errors.As(err, &connect), errors.As(err, &network), pgconn.SafeToRetry(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		isClosed(err):
		return chat.CodeUnavailable
	default:
		return chat.CodeInternal
	}
}

func stateCode(state string) chat.Code {
	switch {
	case state == stateQueryCanceled, state == stateLockNotAvailable:
		return chat.CodeTimeout
	case state == stateNotInRepertoire:
		return chat.CodeInvalidText
	case state == stateSerialization, state == stateDeadlock, state == stateGaveUp, state == stateReadOnly,
		strings.HasPrefix(state, "08"), // connection
		strings.HasPrefix(state, "53"), // resources: too many connections, disk full
		strings.HasPrefix(state, "57"), // the operator: shutdown, crash, starting up
		strings.HasPrefix(state, "58"): // the system
		return chat.CodeUnavailable
	default:
		return chat.CodeInternal
	}
}

// isClosed recognises the errors of closed connections and pools that have no
// type of their own.
func isClosed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "closed pool") || strings.Contains(text, "conn closed")
}

func hasState(err error, states ...string) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	for _, s := range states {
		if pg.Code == s {
			return true
		}
	}
	return false
}

// rolledBack says that the statement certainly changed nothing and may succeed
// when run again as it is: a deadlock, a lost race (also one on a unique index, which
// the next run sees), or a request that never left.
func rolledBack(err error) bool {
	return hasState(err, stateDeadlock, stateSerialization, stateUniqueViolation, stateGaveUp) || pgconn.SafeToRetry(err)
}

// badData says that one item's content is at fault, so that the others of its
// batch can succeed without it (SQLSTATE classes 22 and 23).
func badData(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code != stateGaveUp &&
		(strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}
