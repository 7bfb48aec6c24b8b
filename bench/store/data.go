package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"xabar/chat"
)

// The bench's conversations: number n has the id conversationID(n) and the members
// userID(2n) and userID(2n+1). An id ends in firstNumber+n in decimal digits, which
// pgbench, whose only variables are numbers, can write too.
func conversationID(n int) chat.ID { return numbered(7, n) }
func userID(n int) chat.ID         { return numbered(4, n) }

const firstNumber = 100_000_000_000 // 12 digits, as many as an id's last group

func numbered(version, n int) chat.ID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-%d000-8000-%d", version, firstNumber+n))
}

// uuidSQL is numbered in SQL; n counts from firstNumber.
func uuidSQL(version int, n string) string {
	return fmt.Sprintf(`('00000000-0000-%d000-8000-' || %s)::uuid`, version, n)
}

// fill makes n direct conversations.
func fill(ctx context.Context, url string, n int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the bench has what it came for
	user := fmt.Sprintf("(%d + 2 * n + k)", firstNumber)
	conversation := fmt.Sprintf("(%d + n)", firstNumber)
	other := fmt.Sprintf("(%d + 2 * n + 1 - k)", firstNumber)
	series := fmt.Sprintf("generate_series(0::bigint, %d) n, generate_series(0, 1) k", n-1)
	for _, sql := range []string{
		`INSERT INTO users (id, name, created_at) SELECT ` + uuidSQL(4, user) + `, 'user', now() FROM ` + series,
		`INSERT INTO conversations (id, kind, user_low, user_high, member_count, created_at)
		 SELECT ` + uuidSQL(7, conversation) + `, 'direct', ` + uuidSQL(4, user) + `, ` + uuidSQL(4, other) + `, 2, now()
		 FROM ` + series + ` WHERE k = 0`,
		`INSERT INTO members (conversation_id, user_id, peer_id, role, joined_at)
		 SELECT ` + uuidSQL(7, conversation) + `, ` + uuidSQL(4, user) + `, ` + uuidSQL(4, other) + `, 'member', now() FROM ` + series,
		`VACUUM ANALYZE`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// text is a message of common length.
const text = "See you at the station at half past seven, I will bring the tickets and something to eat."
