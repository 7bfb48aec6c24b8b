package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"

	"xabar/chat"
)

// The epoch stands among what processes share (secrets), as its 16 bytes and the home of the
// database: where it was opened last. There it needs no migration, and the version of the
// program before it works on the same database. At another home an epoch begins anew.
const (
	homeOfStores = "file"
	homeOfCopies = "copy" // of a file that Backup made and no Store has opened

	epochQuery     = `SELECT substr(value, 1, 16) FROM secrets WHERE name = 'epoch'`
	settleEpochSQL = `INSERT INTO secrets (name, value) VALUES ('epoch', ?1)
		ON CONFLICT DO UPDATE SET value = excluded.value WHERE substr(value, 17) <> ?2`
	renewEpochSQL = `INSERT INTO secrets (name, value) VALUES ('epoch', ?1)
		ON CONFLICT DO UPDATE SET value = excluded.value`
)

func atHome(epoch chat.ID, home string) []byte { return append(epoch[:], home...) }

// settleEpoch begins an epoch if there is none, or if the file is a copy.
func (s *Store) settleEpoch(ctx context.Context) error {
	_, err := s.writeDB.ExecContext(ctx, settleEpochSQL, atHome(uuid.New(), homeOfStores), []byte(homeOfStores))
	return err
}

// markCopied leaves the epoch as it is, for the Store that will open the copy. A database from
// before there were epochs has nothing to mark.
func markCopied(ctx context.Context, db *sql.DB) error {
	var epoch chat.ID
	err := db.QueryRowContext(ctx, epochQuery).Scan(&epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = db.ExecContext(ctx, renewEpochSQL, atHome(epoch, homeOfCopies))
	}
	return err
}

// RenewEpoch implements chat.EpochStore.
func (s *Store) RenewEpoch(ctx context.Context) (chat.ID, error) {
	epoch := uuid.New()
	return epoch, s.change(ctx, func(t *tx) error { return t.run(renewEpochSQL, atHome(epoch, homeOfStores)) })
}

func (s *Store) epoch(ctx context.Context, db queryer) (epoch chat.ID, err error) {
	_, err = one(ctx, db, epochQuery, nil, &epoch)
	return epoch, err
}

// heldQuery tells of one of user's (?2) conversations (?1) what is compared with a position
// (?3).
const heldQuery = `
SELECT m.last_delivered_seq, c.last_seq, c.version,
       coalesce((SELECT msg.id FROM messages msg WHERE msg.conversation_id = ?1 AND msg.seq = ?3), zeroblob(16))
FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.conversation_id = ?1 AND m.user_id = ?2`

// membershipsQuery counts a user's (?1) conversations, no further than ?2.
const membershipsQuery = `SELECT count(*) FROM (SELECT 1 FROM members WHERE user_id = ?1 LIMIT ?2)`

// CheckPositions implements chat.EpochStore.
func (s *Store) CheckPositions(ctx context.Context, user chat.ID, positions map[chat.ID]chat.SyncPosition) (check chat.PositionCheck, err error) {
	err = s.reader.snapshot(ctx, []string{epochQuery, membershipsQuery, heldQuery}, func(db queryer) error {
		if check.Epoch, err = s.epoch(ctx, db); err != nil {
			return err
		}
		current := true
		for id, held := range positions {
			last, err := checkPosition(ctx, db, &check, user, id, held)
			if err != nil {
				return err
			}
			current = current && last
		}
		var members int
		if _, err := one(ctx, db, membershipsQuery, []any{user[:], len(positions) + 1}, &members); err != nil {
			return err
		}
		check.Current = current && members == len(positions)-len(check.Gone)
		return nil
	})
	return check, translate(ctx, err)
}

// checkPosition says too that nothing has come after the position, as nothing does in a
// conversation that is gone.
func checkPosition(ctx context.Context, db queryer, check *chat.PositionCheck, user, id chat.ID, held chat.SyncPosition) (last bool, err error) {
	var delivered, seq, version int64
	var message chat.ID
	found, err := one(ctx, db, heldQuery, []any{id[:], user[:], held.Seq}, &delivered, &seq, &version, &message)
	switch other := held.ID != uuid.Nil && message != uuid.Nil && held.ID != message; {
	case err != nil:
		return false, err
	case !found:
		check.Gone = append(check.Gone, id)
		return true, nil
	case held.Seq > seq || held.Version > version || other:
		check.Reset = append(check.Reset, id)
		return false, nil
	case held.Seq > delivered:
		check.News = append(check.News, id)
	}
	return held.Seq == seq && (held.Version == 0 || held.Version == version), nil
}
