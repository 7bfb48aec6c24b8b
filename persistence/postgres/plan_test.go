package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// planned are the statements whose plan must not depend on the size of the tables.
var planned = map[string]string{
	"send": sendSQL, "send one": sendOneSQL, "raced": racedSQL, "move": moveSQL, "move one": moveOneSQL, "close": closeSQL, "claim": claimSQL,
	"list": listSQL, "unread": `WITH ` + looseSQL + ` SELECT unread, loose FROM total`, "session": sessionsSQL, "unread of several": unreadTotalsSQL,
	"history before": historyBefore, "history after": historyAfter, "sync": syncSQL, "check": checkSQL, "receipts": receiptsSQL,
	"settle": settleSQL, "open": openSQL, "direct": directSQL, "number": numberSQL, "direct receipts": directReceiptsSQL,
	"close with absent": closeDueSQL, "behind": behindSQL, "undelivered": undeliveredSQL, "left": leftSQL, "claim due": claimDueSQL,
	"put off": putOffSQL, "end": endSQL, "decided": decidedSQL, "next": nextSQL, "notify view": notifySQL, "targets": targetsSQL,
}

// TestPlans reads EXPLAIN for tables that are empty, small with fresh statistics,
// and large: always an index look-up with a condition, never a whole table, and
// never a join whose price is that of a table.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	conn, err := s.write.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	// Filling the large tables may take longer than a request may.
	if err := run(t.Context(), conn.Conn(), "SET statement_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	sizes := []struct {
		name    string
		prepare string
	}{
		{"empty", ""},
		{"empty, analysed", "ANALYZE"},
		{"one conversation", fillSQL(1, 3)},
		{"small", fillSQL(20, 100)},
		{"large", fillSQL(20000, 200000)},
	}
	for _, size := range sizes {
		if err := run(t.Context(), conn.Conn(), size.prepare); err != nil {
			t.Fatal(err)
		}
		for name, sql := range planned {
			plan, err := explain(t.Context(), conn.Conn(), sql)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if fault := planFault(plan); fault != "" {
				t.Errorf("%s, tables %s: %s\n%s", name, size.name, fault, plan)
			}
		}
	}
}

var (
	tables    = `(conversations|members|messages|users|blocks|outbox|receipts|notification_due|notify_targets|settings)\b`
	wholeScan = regexp.MustCompile(`Seq Scan on ` + tables)
	joins     = regexp.MustCompile(`Hash.* Join|Merge.* Join|Hash Cond|Merge Cond|hashed SubPlan`)
	indexScan = regexp.MustCompile(`Index (Only )?Scan.* on ` + tables)
)

// planFault says what is wrong with a plan, or "".
func planFault(plan string) string {
	if m := wholeScan.FindString(plan); m != "" {
		return m
	}
	if m := joins.FindString(plan); m != "" {
		return m
	}
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		if !indexScan.MatchString(line) {
			continue
		}
		if i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond:") {
			return "an index is read as a whole: " + strings.TrimSpace(line)
		}
		// A member is looked up by both columns, or the conversation's all are meant.
		if strings.Contains(line, "members_pkey") && i+2 < len(lines) && strings.Contains(lines[i+2], "Filter: (user_id =") {
			return "a member is filtered out of a conversation's: " + strings.TrimSpace(line)
		}
	}
	return ""
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// explain gives the generic plan that the pool's connections use.
func explain(ctx context.Context, conn *pgx.Conn, sql string) (string, error) {
	if err := run(ctx, conn, "PREPARE explained AS "+sql); err != nil {
		return "", err
	}
	highest := 0
	for _, m := range parameter.FindAllStringSubmatch(sql, -1) {
		var n int
		if _, err := fmt.Sscan(m[1], &n); err != nil {
			return "", err
		}
		highest = max(highest, n)
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", highest), ",")
	rows, err := conn.Query(ctx, "EXPLAIN (COSTS OFF) EXECUTE explained("+nulls+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	return strings.Join(lines, "\n"), run(ctx, conn, "DEALLOCATE explained")
}

// run runs statements without parameters.
func run(ctx context.Context, conn *pgx.Conn, sql string) error {
	_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// fillSQL makes direct conversations of one user with each of the others, fully
// delivered, with messages spread evenly over them, a minute apart.
func fillSQL(conversations, messages int) string {
	id := func(version int, n string) string {
		return fmt.Sprintf(`('00000000-0000-%d000-8000-' || lpad(to_hex(%s), 12, '0'))::uuid`, version, n)
	}
	each := messages / conversations
	return fmt.Sprintf(`
TRUNCATE users, contacts, conversations, members, messages, outbox, receipts, blocks, settings CASCADE;
INSERT INTO users (id, name, created_at) SELECT %[1]s, 'user ' || n, now() FROM generate_series(0, %[5]d) n;
INSERT INTO conversations (id, kind, user_low, user_high, member_count, last_seq, version, created_at, last_message_at)
SELECT %[2]s, 'direct', %[3]s, %[1]s, 2, %[6]d, %[6]d, now() - interval '1 year', now() - %[5]d * interval '1 minute' + n * interval '1 minute'
FROM generate_series(1, %[5]d) n;
INSERT INTO members (conversation_id, user_id, peer_id, role, joined_at, last_delivered_seq, last_read_seq)
SELECT %[2]s, CASE k WHEN 0 THEN %[3]s ELSE %[1]s END, CASE k WHEN 1 THEN %[3]s ELSE %[1]s END, 'member', now() - interval '1 year', %[6]d, %[6]d - n %% 2
FROM generate_series(1, %[5]d) n, generate_series(0, 1) k;
INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, created_at)
SELECT gen_random_uuid(), %[2]s, q, CASE q %% 2 WHEN 0 THEN %[3]s ELSE %[1]s END, n || '-' || q,
       'See you at the station at half past seven, I will bring the tickets and something to eat.',
       now() - (%[5]d - n) * interval '1 minute' - (%[6]d - q) * interval '1 second'
FROM generate_series(1, %[5]d) n, generate_series(1, %[6]d) q;
INSERT INTO receipts (conversation_id, user_id, kind, up_to_seq, at)
SELECT conversation_id, user_id, 1, last_delivered_seq, now() FROM members;
ANALYZE users, contacts, conversations, members, messages, outbox, receipts, blocks, settings`,
		id(4, "n"), id(7, "n"), id(4, "0"), "", conversations, each)
}
