package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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

// What a row of checkSQL is about.
const (
	rowEpoch = iota
	rowGone
	rowReset
	rowNews
)

// checkSQL compares the positions $2 to $5 with what is stored, by three look-ups in indexes for
// each, and tells of those that are news to the user ($1), or not of this history. A position
// names no message by the zero id.
const checkSQL = `
SELECT ` + epochColumn + `, 0 FROM secrets WHERE name = 'epoch'
UNION ALL
SELECT i.conv, CASE WHEN m.delivered IS NULL THEN 1
                    WHEN i.seq > c.last_seq OR i.version > c.version OR x.id <> i.id THEN 2
                    ELSE 3 END
FROM unnest($2::uuid[], $3::int8[], $4::int8[], $5::uuid[]) AS i (conv, seq, version, id)
LEFT JOIN LATERAL (
  SELECT y.last_delivered_seq AS delivered FROM members y WHERE y.conversation_id = i.conv AND y.user_id = $1 LIMIT 1) m ON true
LEFT JOIN LATERAL (SELECT y.last_seq, y.version FROM conversations y WHERE y.id = i.conv LIMIT 1) c ON true
LEFT JOIN LATERAL (
  SELECT y.id FROM messages y WHERE y.conversation_id = i.conv AND y.seq = i.seq
    AND i.id <> '00000000-0000-0000-0000-000000000000' LIMIT 1) x ON true
WHERE m.delivered IS NULL OR i.seq > m.delivered OR i.version > c.version OR x.id <> i.id`

// CheckPositions implements chat.EpochStore.
func (s *Store) CheckPositions(ctx context.Context, user chat.ID, positions map[chat.ID]chat.SyncPosition) (chat.PositionCheck, error) {
	var check chat.PositionCheck
	n := len(positions)
	ids, messages := make([]chat.ID, 0, n), make([]chat.ID, 0, n)
	seqs, versions := make([]int64, 0, n), make([]int64, 0, n)
	for id, held := range positions {
		ids, messages = append(ids, id), append(messages, held.ID)
		seqs, versions = append(seqs, held.Seq), append(versions, held.Version)
	}
	_, err := collect(ctx, s, func(rows pgx.Rows) (struct{}, error) {
		var id chat.ID
		var kind int
		if err := rows.Scan(&id, &kind); err != nil {
			return struct{}{}, err
		}
		switch kind {
		case rowEpoch: // the first row, also of a repeated query
			check = chat.PositionCheck{Epoch: id}
		case rowGone:
			check.Gone = append(check.Gone, id)
		case rowReset:
			check.Reset = append(check.Reset, id)
		case rowNews:
			check.News = append(check.News, id)
		}
		return struct{}{}, nil
	}, checkSQL, user, ids, seqs, versions, messages)
	return check, err
}
