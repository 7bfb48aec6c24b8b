package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresInput is what Postgres needs.
type PostgresInput struct {
	URL         string // postgres://…
	Connections int    // that one node opens at most
	Migrate     bool   // serve brings the schema up to date by itself
	Now         func() time.Time
}

const sectionDatabase = "database"

// connectTimeout bounds what may hang: a host that drops packets.
const connectTimeout = 5 * time.Second

// Postgres examines the database server and its schema. The samples are of its clock.
func Postgres(ctx context.Context, r *Report, in PostgresInput) []ClockSample {
	s := r.Section(sectionDatabase)
	r.HideURL(in.URL)
	config, err := pgx.ParseConfig(in.URL)
	if err != nil {
		s.Problem("address", "give it as postgres://user:password@host:5432/database", "--database-url cannot be read")
		return nil
	}
	r.Hide(config.Password)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.RuntimeParams["application_name"] = "xabar-doctor"
	config.RuntimeParams["statement_timeout"] = postgresPatience
	start := time.Now()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		s.Problem("reachable", postgresAdvice(err, config), "%s", short(err))
		return nil
	}
	took := time.Since(start)
	defer conn.Close(context.WithoutCancel(ctx))
	where := fmt.Sprintf("%s, database %s, as %s, in %s", conn.PgConn().Conn().RemoteAddr(), config.Database, config.User, rounded(took))
	s.OK("reachable", "%s", where)
	p := &postgres{ctx: ctx, s: s, conn: conn, in: in}
	p.version()
	p.role()
	p.session()
	p.durability()
	p.connections()
	p.latency()
	p.transport(config)
	p.schema()
	return p.clock()
}

// postgresPatience is the statement_timeout of what is asked here, in milliseconds; that it
// holds shows that settings of a session arrive.
const postgresPatience = "9876"

func postgresAdvice(err error, config *pgx.ConnConfig) string {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		if isCertificate(err) {
			return "trust the server's certificate: sslrootcert=FILE in --database-url"
		}
		return "is PostgreSQL running there, does it listen on that address (listen_addresses), and does no firewall stand between?"
	}
	switch answer.Code {
	case "28P01", "28000":
		return "look at user and password in --database-url, and at pg_hba.conf"
	case "3D000":
		return "make it: CREATE DATABASE " + pgx.Identifier{config.Database}.Sanitize()
	case "53300":
		return "raise max_connections, or stop what holds connections"
	case "57P03":
		return "wait: the server is starting or recovering"
	case "42704", "08P01": // a pooler that knows fewer parameters
		return "connect to PostgreSQL itself, not through a pooler: see docs/operations.md"
	}
	return "see the server's log"
}

// postgres asks one server.
type postgres struct {
	ctx  context.Context
	s    Section
	conn *pgx.Conn
	in   PostgresInput
}

// show reads a setting; what can't be read is a finding and "".
func (p *postgres) show(setting string) string {
	var value string
	if err := p.conn.QueryRow(p.ctx, "SELECT coalesce(current_setting($1, true), '')", setting).Scan(&value); err != nil {
		p.failed(setting, err)
	}
	return value
}

func (p *postgres) failed(name string, err error) {
	p.s.Problem(name, "see the server's log", "cannot be read: %s", short(err))
}

const oldestPostgres = 15

func (p *postgres) version() {
	number, err := strconv.Atoi(p.show("server_version_num"))
	name := "PostgreSQL " + strings.Fields(p.show("server_version") + " ?")[0]
	switch {
	case err != nil:
		p.s.Problem("version", "use PostgreSQL 15 or newer", "the server does not say which it is")
	case number < oldestPostgres*10000:
		p.s.Problem("version", "upgrade to PostgreSQL 15 or newer", "%s", name)
	default:
		p.s.OK("version", "%s", name)
	}
	if encoding := p.show("server_encoding"); encoding != "UTF8" {
		p.s.Problem("encoding", "make the database anew with ENCODING 'UTF8'", "%s: it cannot hold every text", encoding)
	}
}

// role is whether the server takes writes.
func (p *postgres) role() {
	var replica bool
	if err := p.conn.QueryRow(p.ctx, "SELECT pg_is_in_recovery()").Scan(&replica); err != nil {
		p.failed("role", err)
		return
	}
	switch {
	case replica:
		p.s.Problem("role", "name the primary (several hosts and target_session_attrs=read-write in --database-url find it)", "a replica: it takes no messages")
	case p.show("transaction_read_only") == "on":
		p.s.Problem("role", "ALTER DATABASE … SET default_transaction_read_only = off", "transactions are read-only by default")
	default:
		p.s.OK("role", "takes writes")
	}
}

// session sees whether a setting that was sent with the connection is in force: a pooler
// may have dropped it.
func (p *postgres) session() {
	if got := p.show("statement_timeout"); got != postgresPatience+"ms" {
		p.s.Problem("session", "connect to PostgreSQL itself, or to a pooler in session mode that passes startup parameters",
			"settings of a connection do not arrive: statement_timeout is %s, not what was asked for", got)
	}
}

// durability: what was acknowledged must survive a power cut.
func (p *postgres) durability() {
	for _, setting := range []struct{ name, loses string }{
		{"fsync", "a power cut loses acknowledged messages, or the whole database"},
		{"synchronous_commit", "a crash of the server loses acknowledged messages"},
		{"full_page_writes", "a power cut can damage the database"},
	} {
		if value := p.show(setting.name); value == "off" {
			p.s.Problem(setting.name, fmt.Sprintf("ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();", setting.name), "off: %s", setting.loses)
		} else {
			p.s.OK(setting.name, "%s", value)
		}
	}
	if p.show("autovacuum") == "off" {
		p.s.Warn("autovacuum", "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();", "off: the outbox and positions change all the time, and their tables will only grow")
	}
}

// connections compares what one node opens with what the server, the database and the role
// let in.
func (p *postgres) connections() {
	var bound, others, room int
	err := p.conn.QueryRow(p.ctx, `
		SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
		             nullif(d.datconnlimit, -1), nullif(r.rolconnlimit, -1)),
		       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name NOT LIKE 'xabar%')
		FROM pg_database d, pg_roles r WHERE d.datname = current_database() AND r.rolname = current_user`).Scan(&bound, &others)
	if err != nil {
		p.failed("connections", err)
		return
	}
	room = max(bound-others, 0)
	found := fmt.Sprintf("a node opens up to %d; of %d that are let in others hold %d: enough for %d", p.in.Connections, bound, others, room/p.in.Connections)
	switch do := "raise max_connections (or the limit of the database or the role); count one node more than you run, for restarts"; {
	case room < p.in.Connections:
		p.s.Problem("connections", do, "%s nodes", found)
	case room < 2*p.in.Connections:
		p.s.Warn("connections", do, "%s node", found)
	default:
		p.s.OK("connections", "%s nodes", found)
	}
}

// Numbers and bounds of the measurements.
const (
	statements    = 50
	commits       = 15
	slowStatement = 5 * time.Millisecond
	slowCommit    = 20 * time.Millisecond
)

func (p *postgres) latency() {
	asked, err := times(statements, func() error {
		_, err := p.conn.Exec(p.ctx, "SELECT 1")
		return err
	})
	if err != nil {
		p.failed("statement", err)
		return
	}
	if took := median(asked); took > slowStatement {
		p.s.Warn("statement", "put nodes near the database: a message waits for some two of these", "%s for the shortest one", rounded(took))
	} else {
		p.s.OK("statement", "%s for the shortest one", rounded(took))
	}
	// An entry in the write-ahead log that no replica and no restart acts on, so that the commit
	// has something to wait for.
	flushed, err := times(commits, func() error {
		_, err := p.conn.Exec(p.ctx, "SELECT pg_logical_emit_message(true, 'xabar doctor', '')")
		return err
	})
	if err != nil {
		p.s.Warn("commit", "GRANT EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) lets it be measured", "how long the disk takes is not known: %s", short(err))
		return
	}
	if took := median(flushed); took > slowCommit {
		p.s.Warn("commit", "give the write-ahead log a faster disk: a message waits for one commit", "%s until it is on the disk", rounded(took))
	} else {
		p.s.OK("commit", "%s until it is on the disk", rounded(took))
	}
}

// times measures n calls.
func times(n int, call func() error) ([]time.Duration, error) {
	all := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}

// transport is whether others on the way can read along.
func (p *postgres) transport(config *pgx.ConnConfig) {
	address := p.conn.PgConn().Conn().RemoteAddr().String()
	if isPublicAddress(address) && config.TLSConfig == nil {
		p.s.Warn("encryption", "sslmode=verify-full in --database-url", "messages go to %s as plain text", address)
	}
}

func (p *postgres) clock() []ClockSample {
	sample, err := sampleClock("PostgreSQL", p.in.Now, func() (at time.Time, err error) {
		err = p.conn.QueryRow(p.ctx, "SELECT clock_timestamp()").Scan(&at)
		return at, err
	})
	if err != nil {
		p.failed("clock", err)
		return nil
	}
	return []ClockSample{sample}
}
