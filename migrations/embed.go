// Package migrations holds the database schema of each dialect as numbered SQL
// files (NNNNNN_name.up.sql and .down.sql), embedded in the binary, and runs them.
//
// Up brings a database to the newest version, Down takes steps back, Status tells
// where it stands, Check refuses a database that this binary can't use. Nodes that
// start together migrate once: PostgreSQL's run holds an advisory lock, SQLite's
// is one write transaction. A migration and its version number are committed
// together, so a run that is cut off leaves no half-made schema behind.
//
// The table schema_migrations is the one of golang-migrate, whose command line can
// be used on the same files.
//
// Nodes of two versions of the program run on one database while one replaces the other.
// A migration that lets older programs go on says so in its up file,
//
//	-- compatible: 13
//
// the oldest version of the schema whose programs can work with what it leaves: for them
// the database is not too new (Check, Up). Without the line they are refused. The table
// schema_compatibility keeps what holds for the database, for programs that don't know
// its newest migrations. docs/guides/upgrading.md has the rules, and a test looks after
// them.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Dialect is a database's kind of SQL, and the name of the folder of its files.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Migration is one numbered step.
type Migration struct {
	Version int
	Name    string
	// Oldest is the oldest version of the schema whose programs can work with what this
	// step and all before it leave: Version itself if no older ones can.
	Oldest int
}

// List gives the dialect's migrations in order. It fails on a file whose name is
// not NNNNNN_name.{up,down}.sql, on a gap, and on a step without both files.
func List(dialect Dialect) ([]Migration, error) {
	return list(files, dialect)
}

func list(fsys fs.FS, dialect Dialect) ([]Migration, error) {
	entries, err := fs.ReadDir(fsys, string(dialect))
	if err != nil {
		return nil, fmt.Errorf("migrations: no dialect %q", dialect)
	}
	steps := map[Migration]int{}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".sql" {
			continue
		}
		m, up, err := parseName(e.Name())
		if err != nil {
			return nil, err
		}
		if up {
			steps[m] |= 1
		} else {
			steps[m] |= 2
		}
	}
	all := make([]Migration, 0, len(steps))
	for m, have := range steps {
		if have != 3 {
			return nil, fmt.Errorf("migrations: %s %06d_%s lacks its up or its down file", dialect, m.Version, m.Name)
		}
		all = append(all, m)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Version < all[j].Version })
	oldest := 0
	for i := range all {
		m := &all[i]
		if m.Version != i+1 {
			return nil, fmt.Errorf("migrations: %s has no single number %d", dialect, i+1)
		}
		own, err := compatibleWith(fsys, dialect, *m)
		if err != nil {
			return nil, err
		}
		oldest = max(oldest, own)
		m.Oldest = oldest
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("migrations: %s has none", dialect)
	}
	return all, nil
}

var compatibleLine = regexp.MustCompile(`(?m)^-- compatible: (.*)$`)

// compatibleWith reads the line "-- compatible: N" of an up file.
func compatibleWith(fsys fs.FS, dialect Dialect, m Migration) (int, error) {
	text, err := fs.ReadFile(fsys, upFile(dialect, m))
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	line := compatibleLine.FindSubmatch(text)
	if line == nil {
		return m.Version, nil
	}
	n, err := strconv.Atoi(string(line[1]))
	if err != nil || n < 1 || n >= m.Version {
		return 0, fmt.Errorf("migrations: %s: compatible with %q, not with a version before it", upFile(dialect, m), line[1])
	}
	return n, nil
}

func upFile(dialect Dialect, m Migration) string {
	return fmt.Sprintf("%s/%06d_%s.up.sql", dialect, m.Version, m.Name)
}

func parseName(file string) (m Migration, up bool, err error) {
	base, isUp := strings.CutSuffix(file, ".up.sql")
	if !isUp {
		var isDown bool
		if base, isDown = strings.CutSuffix(file, ".down.sql"); !isDown {
			return m, false, fmt.Errorf("migrations: %s is neither .up.sql nor .down.sql", file)
		}
	}
	number, name, ok := strings.Cut(base, "_")
	m.Name = name
	m.Version, err = strconv.Atoi(number)
	if err != nil || !ok || len(number) != 6 || name == "" {
		return m, false, fmt.Errorf("migrations: %s is not named NNNNNN_name", file)
	}
	return m, isUp, nil
}

// Latest is the newest version of the dialect, the one that Up leads to.
func Latest(dialect Dialect) (int, error) {
	all, err := List(dialect)
	if err != nil {
		return 0, err
	}
	return len(all), nil
}
