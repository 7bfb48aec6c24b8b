package persistence

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"xabar/migrations"
	"xabar/persistence/sqlite"
)

// OpenSchema opens the database that url names, as Open takes it, for migrations
// alone: nothing is checked, started or changed. The caller closes it. Its errors never
// contain url.
func OpenSchema(url string) (migrations.Dialect, *sql.DB, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		db, err := sqlite.OpenDB(rest)
		return migrations.SQLite, db, err
	case "postgres", "postgresql":
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return "", nil, fmt.Errorf("persistence: %w", err) // pgx leaves the password out
		}
		return migrations.Postgres, sql.OpenDB(stdlib.GetConnector(*config)), nil
	default:
		return "", nil, fmt.Errorf("persistence: a database url is sqlite:PATH or postgres://…, not %q:…", scheme)
	}
}
