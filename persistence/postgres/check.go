package postgres

import (
	"context"

	"xabar/chat"
)

// What a row of checkSQL is about.
const (
	rowUser = iota
	rowGone
	rowReset
	rowNews
	rowBehind
)

// checkSQL compares positions with what is stored. $1 are users, and $2 how many conversations each
// of them names; $3 to $8 are the positions, with the user's place in $1 and the user. A position
// names no message by the zero id. It takes three look-ups in indexes for each position, and for each
// user as many entries of an index as it names conversations, and one more.
//
// A row for each user has the epoch and the number of its conversations, of which more than it names
// need not be counted. The others tell of positions that are news, not of this history, or behind.
const checkSQL = `
SELECT i.ord, 0 AS kind, (SELECT ` + epochColumn + ` FROM secrets WHERE name = 'epoch') AS id, n.count, 0 AS behind
FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS i (usr, named, ord)
CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT FROM members y WHERE y.user_id = i.usr LIMIT i.named + 1) y) n
UNION ALL
SELECT i.ord, CASE WHEN m.delivered IS NULL THEN 1
                   WHEN i.seq > c.last_seq OR i.version > c.version OR x.id <> i.id THEN 2
                   WHEN i.seq > m.delivered THEN 3
                   ELSE 4 END, i.conv, 0, (i.seq < c.last_seq OR i.version > 0 AND i.version < c.version)::int
FROM unnest($3::int8[], $4::uuid[], $5::uuid[], $6::int8[], $7::int8[], $8::uuid[]) AS i (ord, usr, conv, seq, version, id)
LEFT JOIN LATERAL (
  SELECT y.last_delivered_seq AS delivered FROM members y WHERE y.conversation_id = i.conv AND y.user_id = i.usr LIMIT 1) m ON true
LEFT JOIN LATERAL (SELECT y.last_seq, y.version FROM conversations y WHERE y.id = i.conv LIMIT 1) c ON true
LEFT JOIN LATERAL (
  SELECT y.id FROM messages y WHERE y.conversation_id = i.conv AND y.seq = i.seq
    AND i.id <> '00000000-0000-0000-0000-000000000000' LIMIT 1) x ON true
WHERE m.delivered IS NULL OR i.seq > m.delivered OR i.seq <> c.last_seq OR x.id <> i.id
   OR i.version > c.version OR i.version > 0 AND i.version < c.version`

// heldPositions is what one user says that it holds. Nobody changes the map.
type heldPositions struct {
	user      chat.ID
	positions map[chat.ID]chat.SyncPosition
}

// CheckPositions implements chat.EpochStore.
func (s *Store) CheckPositions(ctx context.Context, user chat.ID, positions map[chat.ID]chat.SyncPosition) (chat.PositionCheck, error) {
	held := heldPositions{user, positions}
	if len(positions) <= shareTogether {
		found, err := s.checks.Do(ctx, held)
		return found.PositionCheck, err
	}
	var found [1]checked
	if err := s.readChecks(ctx, []heldPositions{held}, found[:]); err != nil {
		return chat.PositionCheck{}, err
	}
	return found[0].PositionCheck, nil
}

// checked is a check as its rows come.
type checked struct {
	chat.PositionCheck
	members int64 // conversations of the user's, counted no further than one beyond those named
	behind  bool
}

// readChecks is the readshare.Exec of checks.
func (s *Store) readChecks(ctx context.Context, all []heldPositions, found []checked) error {
	err := s.readBinary(ctx, "xabar_check", checkSQL, checkParams(all),
		func() { clear(found) }, func(r row) { found[r.int(0)-1].add(r) })
	for i := range found {
		c := &found[i]
		c.Current = !c.behind && len(c.Reset) == 0 && int(c.members) == len(all[i].positions)-len(c.Gone)
	}
	return err
}

func checkParams(all []heldPositions) [][]byte {
	n := 0
	for i := range all {
		n += len(all[i].positions)
	}
	users, named := newArray(oidUUID, len(all), 16), newArray(oidInt8, len(all), 8)
	ords, owners, ids := newArray(oidInt8, n, 8), newArray(oidUUID, n, 16), newArray(oidUUID, n, 16)
	seqs, versions, messages := newArray(oidInt8, n, 8), newArray(oidInt8, n, 8), newArray(oidUUID, n, 16)
	for i, held := range all {
		users.id(held.user)
		named.int(int64(len(held.positions)))
		for id, at := range held.positions {
			ords.int(int64(i + 1))
			owners.id(held.user)
			ids.id(id)
			seqs.int(at.Seq)
			versions.int(at.Version)
			messages.id(at.ID)
		}
	}
	return [][]byte{users.b, named.b, ords.b, owners.b, ids.b, seqs.b, versions.b, messages.b}
}

func (c *checked) add(r row) {
	id := r.id(2)
	switch r.int(1) {
	case rowUser:
		c.Epoch, c.members = id, r.int(3)
		return
	case rowGone:
		c.Gone = append(c.Gone, id)
		return
	case rowReset:
		c.Reset = append(c.Reset, id)
	case rowNews:
		c.News = append(c.News, id)
	}
	c.behind = c.behind || r.int(4) != 0
}
