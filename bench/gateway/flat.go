//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"xabar/internal/loadtest"
)

// What must not make a message dearer: messages that are stored already, and connections that only wait.
const (
	fewMessages, manyMessages = 1_000, 1_000_000
	fewUsers                  = 100
)

// flats are measurements of the gateway alone: each of a pair but for one thing.
func flats(d time.Duration) []measurement {
	direct := loadtest.Options{Scenario: "direct", Users: fewUsers, Duration: d, Warmup: warmUp}
	beside := idleUsers() - fewUsers
	return []measurement{
		{name: fmt.Sprintf("direct, %d pairs, %d messages stored", fewUsers/2, fewMessages), unit: "µs CPU a message", nodes: 1, redis: true, ours: true,
			options: direct, figure: cpu, stored: fewMessages},
		{name: fmt.Sprintf("direct, %d pairs, %d messages stored", fewUsers/2, manyMessages), unit: "µs CPU a message", nodes: 1, redis: true, ours: true,
			options: direct, figure: cpu, stored: manyMessages, flat: -1, target: 1.15},
		{name: fmt.Sprintf("direct, %d pairs, %d more connections that wait", fewUsers/2, beside), unit: "µs CPU a message", nodes: 1, redis: true, ours: true,
			options: direct, figure: cpu, stored: fewMessages, beside: beside, flat: -2, target: 1.15},
		{name: fmt.Sprintf("%d connections that come back within a minute, latency of others", idleUsers()*9/10), unit: "times the calm one", nodes: 1, redis: true, ours: true,
			options: loadtest.Options{Scenario: "reconnect", Users: idleUsers(), Rate: 50, Duration: 90 * time.Second, Jitter: time.Minute, Every: time.Second},
			figure:  unrest, target: 2},
	}
}

// unrest is how much longer messages take while others come back: the median of each second's 99th percentile,
// beside the one of the time before.
func unrest(r *loadtest.Result) float64 {
	var calm, storm []float64
	for _, p := range r.Points {
		p99, ok := p.P99["delivered"]
		switch {
		case !ok:
		case p.At < r.Seconds/3:
			calm = append(calm, p99)
		case p.Rate["connected"] > 0:
			storm = append(storm, p99)
		}
	}
	if len(calm) == 0 || len(storm) == 0 {
		return 0
	}
	return spreadOf(storm).median / spreadOf(calm).median
}

// fill stores messages in conversations that nobody of the measurement is in, a hundred in each.
func fill(ctx context.Context, url string, messages int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has done what it was opened for
	const each = 100
	id := func(version int, n string) string {
		return fmt.Sprintf(`('00000000-0000-%d000-8000-' || lpad(to_hex(%s), 12, '0'))::uuid`, version, n)
	}
	for _, sql := range []string{
		`INSERT INTO users (id, name, created_at) SELECT ` + id(4, "n") + `, 'user ' || n, now() FROM generate_series(0, 2 * %[1]d + 1) n`,
		`INSERT INTO conversations (id, kind, user_low, user_high, member_count, last_seq, version, created_at, last_message_at)
		 SELECT ` + id(7, "n") + `, 'direct', ` + id(4, "2 * n") + `, ` + id(4, "2 * n + 1") + `, 2, %[2]d, %[2]d, now(), now() FROM generate_series(1, %[1]d) n`,
		`INSERT INTO members (conversation_id, user_id, peer_id, role, joined_at, last_delivered_seq, last_read_seq)
		 SELECT ` + id(7, "n") + `, ` + id(4, "2 * n + k") + `, ` + id(4, "2 * n + 1 - k") + `, 'member', now(), %[2]d, %[2]d
		 FROM generate_series(1, %[1]d) n, generate_series(0, 1) k`,
		`INSERT INTO messages (id, conversation_id, seq, sender_id, client_msg_id, text, created_at)
		 SELECT gen_random_uuid(), ` + id(7, "n") + `, q, ` + id(4, "2 * n + q %% 2") + `, n || '-' || q,
		   'See you at the station at half past seven, I will bring the tickets and something to eat.', now()
		 FROM generate_series(1, %[1]d) n, generate_series(1, %[2]d) q`,
	} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(sql, messages/each, each)); err != nil {
			return fmt.Errorf("store %d messages: %w", messages, err)
		}
	}
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return err
}

// waiting opens connections that only wait, and returns what closes them.
func waiting(ctx context.Context, o loadtest.Options, users int) (done func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	connected, ended := make(chan struct{}), make(chan error, 1)
	o.Scenario, o.Users, o.Duration, o.Warmup, o.Processes = "idle", users, 24*time.Hour, 0, nil
	o.Token = loadtest.Minted(minter(), "waiting-")
	o.Progress, o.Every = &told{text: "measuring", once: func() { close(connected) }}, time.Hour
	go func() {
		_, err := loadtest.Run(ctx, o)
		ended <- err
	}()
	done = func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("connections that wait ended by themselves: %w", err)
		}
		return nil
	}
	select {
	case <-connected:
		return done, nil
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("connections that wait: %w", err)
	}
}

// told calls once when a text is written for the first time.
type told struct {
	text string
	once func()
}

func (t *told) Write(p []byte) (int, error) {
	if t.once != nil && strings.Contains(string(p), t.text) {
		t.once()
		t.once = nil
	}
	return len(p), nil
}

// flat says what each pair cost, beside each other within a round.
func (r *report) flat() string {
	var lines []string
	for i, m := range r.order {
		ratio := r.spread(m.name, sides[0].name, figureOf)
		switch {
		case m.flat != 0:
			base := r.samples[r.order[i+m.flat].name][sides[0].name]
			var ratios []float64
			for k, s := range r.samples[m.name][sides[0].name] {
				ratios = append(ratios, s.figure/base[k].figure)
			}
			ratio = spreadOf(ratios)
		case m.stored > 0 || !m.ours || m.target == 0:
			continue
		}
		verdict := "met"
		if ratio.median > m.target {
			verdict = "missed"
		}
		lines = append(lines, fmt.Sprintf("* %s: %s times (target: at most %g, %s)", m.name, ratio, m.target, verdict))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
