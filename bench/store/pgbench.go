package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"xabar/internal/testkit/pgtest"
)

// fourStatements is the peer: the transaction that a chat server sends for each
// message, on the same tables, under pgbench.
var fourStatements = `\set n random(0, :conversations - 1)
\set c :first + :n
\set u :first + 2 * :n + random(0, 1)
\set r random(1, 1000000000000000)
BEGIN;
SELECT seq FROM messages WHERE sender_id = ` + uuidSQL(4, ":u") + ` AND client_msg_id = :r;
UPDATE conversations SET last_seq = last_seq + 1, version = version + 1, last_message_at = greatest(now(), last_message_at)
  WHERE id = ` + uuidSQL(7, ":c") + ` RETURNING last_seq \gset
INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, created_at)
  VALUES (gen_random_uuid(), ` + uuidSQL(7, ":c") + `, :last_seq, ` + uuidSQL(4, ":u") + `, :r, '` + text + `', now());
INSERT INTO outbox (created_at, conversation_id, seq, leased_until)
  VALUES (now(), ` + uuidSQL(7, ":c") + `, :last_seq, now() + interval '4 seconds');
COMMIT;
`

// pgbench runs the peer with 32 clients: as fast as they can, or at a rate.
func (b *bench) pgbench(ctx context.Context, url string, d time.Duration, rate int) (result, error) {
	bin, err := pgtest.Binary("pgbench")
	if err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp("", "xabar-bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only tidiness
	script := filepath.Join(dir, "four.sql")
	if err := os.WriteFile(script, []byte(fourStatements), 0o644); err != nil {
		return result{}, err
	}
	args := []string{"-n", "-M", "prepared", "-c", "32", "-j", "2", "-T", strconv.Itoa(int(d.Seconds())), "-f", script,
		"-D", "conversations=" + strconv.Itoa(b.conversations), "-D", "first=" + strconv.Itoa(firstNumber),
		"-l", "--log-prefix", filepath.Join(dir, "log")}
	if rate > 0 {
		args = append(args, "-R", strconv.Itoa(rate))
	}
	before, err := b.cpu()
	if err != nil {
		return result{}, err
	}
	out, err := exec.CommandContext(ctx, bin, append(args, url)...).CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	after, err := b.cpu()
	if err != nil {
		return result{}, err
	}
	latencies, err := readLatencies(dir)
	if err != nil {
		return result{}, err
	}
	tps := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if tps == nil {
		return result{}, fmt.Errorf("pgbench said %s", out)
	}
	perSecond, err := strconv.ParseFloat(string(tps[1]), 64)
	return result{count: len(latencies), perSecond: perSecond, cpu: after - before, latencies: latencies}, err
}

// readLatencies reads pgbench's transaction logs: the third column is microseconds
// (with a rate, since the scheduled start).
func readLatencies(dir string) ([]time.Duration, error) {
	files, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			us, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				return nil, err
			}
			all = append(all, time.Duration(us)*time.Microsecond)
		}
		f.Close() //nolint:errcheck // read only
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
