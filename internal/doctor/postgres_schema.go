package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"xabar/migrations"
)

const sectionSchema = "schema"

// tables are those whose rights are looked at: what a message touches. A test compares them
// with the schema.
var tables = []string{
	"schema_migrations", "schema_compatibility", "users", "contacts", "conversations", "members", "messages", "settings", "outbox", "receipts",
	"blocks", "revocations", "notification_due", "notify_targets", "link_codes", "secrets", "leases",
}

// schema says where it stands and whether the role may use and change it.
func (p *postgres) schema() {
	s := Section{p.s.report, sectionSchema}
	db := stdlib.OpenDB(*p.conn.Config())
	defer db.Close()
	state, err := migrations.Status(p.ctx, migrations.Postgres, db)
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer): // mostly a right that is missing, which rights tells
		s.Problem("version", "see the rights below, or the server's log", "cannot be read: %s", short(err))
	case err != nil:
		s.Problem("version", "finish or take back what the other tool has begun, then set dirty to false in schema_migrations", "%s", short(err))
	default:
		describeSchema(s, state, p.in.Migrate)
	}
	p.rights(s, len(state.Pending) > 0)
}

// describeSchema says what serve and `xabar migrate` would do.
func describeSchema(s Section, state migrations.State, migrate bool) {
	names := make([]string, len(state.Pending))
	for i, m := range state.Pending {
		names[i] = fmt.Sprintf("%06d_%s", m.Version, m.Name)
	}
	steps := strings.Join(names, ", ")
	switch {
	case state.TooNew():
		s.Problem("version", "run the newer xabar, or take its steps back with its own `xabar migrate down`",
			"%d, and this program knows %d: a newer one has migrated this database in a way that this one does not understand", state.Version, state.Latest)
	case state.Ahead():
		s.Warn("version", "replace this program by the newer one before long: docs/guides/upgrading.md",
			"%d, and this program knows %d: a newer one has migrated this database, and this one can go on with it", state.Version, state.Latest)
	case state.Version == state.Latest:
		s.OK("version", "%d, the newest", state.Version)
	case !migrate:
		s.Problem("version", "back up, then run: xabar migrate up", "%d of %d, and --no-migrate keeps serve from changing it. Pending: %s", state.Version, state.Latest, steps)
	case state.Version == 0:
		s.OK("version", "empty: serve, or `xabar migrate up`, makes it")
	default:
		s.Warn("version", "back up; serve, or `xabar migrate up`, then takes these steps by itself", "%d of %d. Pending: %s", state.Version, state.Latest, steps)
	}
}

func (p *postgres) rights(s Section, pending bool) {
	var schema *string
	var create bool
	err := p.conn.QueryRow(p.ctx, "SELECT current_schema(), coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)").Scan(&schema, &create)
	if err != nil {
		s.Problem("rights", "see the server's log", "cannot be read: %s", short(err))
		return
	}
	if schema == nil {
		s.Problem("rights", "CREATE SCHEMA, or set search_path for the role", "the role's search_path names no schema that exists and that it may use")
		return
	}
	denied, foreign, err := p.deniedTables(*schema)
	user := pgx.Identifier{p.conn.Config().User}.Sanitize()
	switch {
	case err != nil:
		s.Problem("rights", "see the server's log", "cannot be read: %s", short(err))
	case pending && !create:
		s.Problem("rights", fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", *schema, user), "the role may not make tables in the schema %s", *schema)
	case len(denied) > 0:
		s.Problem("rights", fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s", *schema, user), "the role may not read and write %s", strings.Join(denied, ", "))
	case pending && len(foreign) > 0:
		s.Problem("rights", "run `xabar migrate up` as the owner", "the steps that are pending change tables of another owner: %s", strings.Join(foreign, ", "))
	default:
		s.OK("rights", "enough in the schema %s", *schema)
	}
}

// deniedTables are those that the role may not use, and those that it may not change.
func (p *postgres) deniedTables(schema string) (denied, foreign []string, err error) {
	rows, err := p.conn.Query(p.ctx, `
		SELECT c.relname,
		       has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
		       AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'),
		       pg_has_role(c.relowner, 'USAGE')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname = ANY ($2) ORDER BY c.relname`, schema, tables)
	if err != nil {
		return nil, nil, err
	}
	var name string
	var usable, own bool
	_, err = pgx.ForEachRow(rows, []any{&name, &usable, &own}, func() error {
		if !usable {
			denied = append(denied, name)
		}
		if !own {
			foreign = append(foreign, name)
		}
		return nil
	})
	return denied, foreign, err
}
