package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"xabar/chat"
)

// The epoch stands among what nodes share (secrets), as its 16 bytes and the home of the
// database: which one of which server it is. There it needs no migration, and nodes of the
// version before it work on the same database. At another home an epoch begins anew: a dump
// was restored there.
const (
	epochColumn = `encode(substring(value FROM 1 FOR 16), 'hex')::uuid`

	// Nodes that start together agree: only one finds the old value.
	moveEpochSQL = `UPDATE secrets SET value = $1 WHERE name = 'epoch' AND value = $2`
	// The home stays.
	renewEpochSQL = `UPDATE secrets SET value = $1::bytea || substring(value FROM 17) WHERE name = 'epoch'`

	databaseSQL = `SELECT oid::text FROM pg_database WHERE datname = current_database()`
	serverSQL   = `SELECT system_identifier::text FROM pg_control_system()`
)

// settleEpoch begins an epoch if there is none, or if the database stands at another place.
func (s *Store) settleEpoch(ctx context.Context) error {
	var database, server string
	if err := s.queryRow(ctx, databaseSQL, nil, &database); err != nil {
		return err
	}
	if err := s.read.QueryRow(ctx, serverSQL).Scan(&server); err != nil {
		if !keptFromUs(err) {
			return interpret(err)
		}
	}
	home, epoch := server+"/"+database, uuid.New()
	fresh := append(epoch[:], home...)
	stored, err := s.Secret(ctx, "epoch", fresh)
	if err != nil || sameHome(string(stored[min(16, len(stored)):]), home) {
		return err
	}
	return s.do(ctx, moveEpochSQL, fresh, stored)
}

// sameHome compares server and database. A server that is not known is no other one: roles that
// may not ask for it use the same database as those that may.
func sameHome(a, b string) bool {
	serverA, databaseA, _ := strings.Cut(a, "/")
	serverB, databaseB, _ := strings.Cut(b, "/")
	return databaseA == databaseB && (serverA == serverB || serverA == "" || serverB == "")
}

// keptFromUs says that this server does not tell its identity, as some providers' don't: then the
// database's number has to do.
func keptFromUs(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && slices.Contains([]string{"42501", "42883", "0A000"}, refused.Code)
}

// RenewEpoch implements chat.EpochStore.
func (s *Store) RenewEpoch(ctx context.Context) (chat.ID, error) {
	epoch := uuid.New()
	return epoch, s.do(ctx, renewEpochSQL, epoch[:])
}
