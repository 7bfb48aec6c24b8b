package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"xabar/internal/doctor"
	"xabar/migrations"
	"xabar/persistence/postgres"
	"xabar/persistence/queue"
)

type doctorCmd struct {
	Config
	URL         string `name:"url" env:"-" placeholder:"URL" help:"What clients use, https://chat.example.org: take their way too, through proxies. With --server-key it also tells which client address the gateway sees."`
	WaitPing    bool   `name:"wait-ping" env:"-" help:"With --url: wait for a heartbeat, some 25 s, to see whether proxies keep idle connections."`
	Connections int    `env:"-" default:"10000" placeholder:"N" help:"How many connections this node should carry."`
	JSON        bool   `name:"json" env:"-" help:"Print the findings as JSON."`
}

// otherFiles are files that a node has open beside its connections, generously.
const otherFiles = 100

// Run examines everything that the configuration names and prints what it finds.
func (c *doctorCmd) Run(ctx context.Context, k *kong.Context, std streams) error {
	c.set = givenFlags(k)
	var report doctor.Report
	c.examine(ctx, &report, time.Now)
	var err error
	if c.JSON {
		err = report.JSON(std.out, version())
	} else {
		terminal := isTerminal(std.out)
		err = report.Text(std.out, terminal, terminal && os.Getenv("NO_COLOR") == "")
	}
	if err != nil {
		return err
	}
	if report.Count(doctor.Problem) > 0 {
		return toldError{errors.New(report.Summary())}
	}
	return nil
}

// examine looks at one thing after the other. What depends on a part that is broken is left
// out.
func (c *doctorCmd) examine(ctx context.Context, r *doctor.Report, now func() time.Time) {
	r.Hide(c.JWTSecret, c.ServerKey, c.TelegramToken, c.WebhookSecret)
	r.HideURL(c.DatabaseURL, c.RedisURL, c.JWKSURL, c.WebhookURL, c.TelegramAPIURL)
	c.examineConfig(ctx, r)
	doctor.Addresses(ctx, r, c.Listen, c.AdminListen)
	samples := c.examineDatabase(ctx, r, now)
	if c.RedisURL != "" {
		samples = append(samples, doctor.Redis(ctx, r, doctor.RedisInput{URL: c.RedisURL, Sharded: c.RedisSharded, Now: now})...)
	}
	c.examineOthers(ctx, r)
	if c.URL != "" {
		samples = append(samples, doctor.Public(ctx, r, doctor.PublicInput{
			URL: c.URL, ServerKey: c.ServerKey, AnyOrigin: c.anyOrigin(), WaitPing: c.WaitPing, Now: now,
		})...)
	}
	doctor.Clock(r, now, samples)
	doctor.Limits(r, doctor.LimitsInput{Connections: c.Connections, Others: c.poolSize() + otherFiles})
}

// examineOthers looks at servers that messages do not wait for.
func (c *doctorCmd) examineOthers(ctx context.Context, r *doctor.Report) {
	notifications := r.Section("notifications")
	if c.notifies() && !c.Migrate {
		err := c.withQueue(ctx, false, func(queue.Queue) error { return nil })
		if errors.Is(err, migrations.ErrOlder) {
			notifications.Problem("queue", "back up, then run: xabar migrate up", "its tables are older than this program, or missing, and --no-migrate keeps serve from changing them")
		}
	}
	if c.WebhookURL != "" {
		doctor.Reachable(ctx, notifications, "webhook", "--webhook-url", c.WebhookURL)
	}
	if c.TelegramToken != "" {
		doctor.Telegram(ctx, notifications, c.TelegramToken, c.TelegramAPIURL)
	}
	if c.OTLPEndpoint != "" {
		doctor.Reachable(ctx, r.Section("traces"), "collector", "--otlp-endpoint", c.OTLPEndpoint)
	}
}

// poolSize is how many connections to PostgreSQL this node opens at most.
func (c *doctorCmd) poolSize() int {
	n := postgres.Options{}.Connections()
	if c.notifies() {
		n += queue.Connections
	}
	return n
}

// notifies says that there is a channel, and so a queue.
func (c *doctorCmd) notifies() bool {
	return c.vapidSubject() != "" || c.TelegramToken != "" || c.WebhookURL != ""
}

func (c *doctorCmd) examineDatabase(ctx context.Context, r *doctor.Report, now func() time.Time) []doctor.ClockSample {
	scheme, path, _ := strings.Cut(c.url(), ":")
	switch scheme {
	case "sqlite":
		absolute, err := filepath.Abs(path)
		if err != nil || path == "" {
			r.Section("database").Problem("address", "give --database-url as sqlite:PATH", "the path cannot be used: %v", err)
			return nil
		}
		doctor.SQLite(ctx, r, doctor.SQLiteInput{Path: absolute, Migrate: c.Migrate})
	case "postgres", "postgresql":
		return doctor.Postgres(ctx, r, doctor.PostgresInput{
			URL: c.url(), Connections: c.poolSize(), Migrate: c.Migrate, Now: now,
		})
	default:
		r.Section("database").Problem("address", "give --database-url as postgres://… or sqlite:PATH", "this is no database that Xabar knows")
	}
	return nil
}
