package migrations

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
)

// next is the embedded SQLite files and those of versions to come, each with its up file's
// text.
func next(t *testing.T, texts ...string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	entries, err := fs.ReadDir(files, string(SQLite))
	must(t, err)
	for _, e := range entries {
		text, err := fs.ReadFile(files, string(SQLite)+"/"+e.Name())
		must(t, err)
		all[string(SQLite)+"/"+e.Name()] = &fstest.MapFile{Data: text}
	}
	latest, err := Latest(SQLite)
	must(t, err)
	for i, text := range texts {
		name := fmt.Sprintf("%s/%06d_next", SQLite, latest+1+i)
		all[name+".up.sql"] = &fstest.MapFile{Data: []byte(text)}
		all[name+".down.sql"] = &fstest.MapFile{Data: []byte(fmt.Sprintf("DROP TABLE IF EXISTS next%d", i))}
	}
	return all
}

// A program works with a newer schema exactly if that says so: at its start, with and without
// migrating, and it never takes steps back that it doesn't know.
func TestOlderProgramsOnANewerSchema(t *testing.T) {
	t.Parallel()
	latest, err := Latest(SQLite)
	must(t, err)
	plain := "CREATE TABLE next%d (id INTEGER)"
	compatible := fmt.Sprintf("-- compatible: %d\n", latest)
	for name, c := range map[string]struct {
		texts []string
		works bool
	}{
		"compatible":                    {[]string{compatible + plain}, true},
		"compatible with older ones":    {[]string{"-- compatible: 3\n" + plain}, true},
		"silent":                        {[]string{plain}, false},
		"two steps":                     {[]string{compatible + plain, compatible + plain}, true},
		"then one only from the next":   {[]string{compatible + plain, fmt.Sprintf("-- compatible: %d\n", latest+1) + plain}, false},
		"an incompatible one is undone": {[]string{plain, compatible + plain}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := newFile(t), t.Context()
			for i := range c.texts {
				c.texts[i] = fmt.Sprintf(c.texts[i], i)
			}
			newer := next(t, c.texts...)
			must(t, up(ctx, newer, SQLite, db))
			state, err := Status(ctx, SQLite, db)
			must(t, err)
			if state.Ahead() != c.works || state.TooNew() == c.works {
				t.Errorf("status %+v", state)
			}
			want := error(nil)
			if !c.works {
				want = ErrNewer
			}
			before := schema(t, db)
			for what, err := range map[string]error{"Up": Up(ctx, SQLite, db), "Check": Check(ctx, SQLite, db)} {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", what, err, want)
				}
			}
			if err := Down(ctx, SQLite, db, 1); !errors.Is(err, ErrNewer) {
				t.Errorf("Down: %v", err)
			}
			if got := schema(t, db); got != before {
				t.Error("a newer database was changed")
			}
			must(t, check(ctx, newer, SQLite, db))
			// Its own program takes it back, and then it is ours.
			must(t, run(ctx, newer, SQLite, db, func(m *migrate.Migrate) error { return m.Steps(-len(c.texts)) }))
			must(t, Check(ctx, SQLite, db))
		})
	}
}

// Another tool that moved the database says nothing of who can work with it.
func TestAnotherToolsVersionIsTooNew(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	must(t, up(ctx, next(t, "-- compatible: 5\nCREATE TABLE next0 (id INTEGER)"), SQLite, db))
	must(t, Check(ctx, SQLite, db))
	mustExec(t, db, "UPDATE schema_migrations SET version = version + 1")
	if err := Check(ctx, SQLite, db); !errors.Is(err, ErrNewer) {
		t.Errorf("Check: %v", err)
	}
	mustExec(t, db, "DROP TABLE schema_compatibility")
	if err := Up(ctx, SQLite, db); !errors.Is(err, ErrNewer) {
		t.Errorf("Up: %v", err)
	}
}

func TestCompatibleNamesAnEarlierVersion(t *testing.T) {
	t.Parallel()
	latest, err := Latest(SQLite)
	must(t, err)
	for _, line := range []string{"0", "x", "", fmt.Sprint(latest + 1), fmt.Sprint(latest + 2)} {
		if all, err := list(next(t, "-- compatible: "+line+"\nSELECT 1"), SQLite); err == nil {
			t.Errorf("%q was taken: %+v", line, all[latest])
		}
	}
}

// promised are the versions up to which nothing is promised: from the next one on a program
// works with the schema of the one after it (docs/guides/upgrading.md).
var promised = map[Dialect]int{SQLite: 12, Postgres: 13}

// Nodes of the version before run on what a migration leaves, so it takes nothing away that
// they use; if it must, it says why it may.
func TestMigrationsKeepThePromise(t *testing.T) {
	t.Parallel()
	for dialect, from := range promised {
		all, err := List(dialect)
		must(t, err)
		for _, m := range all[from:] {
			text, err := fs.ReadFile(files, upFile(dialect, m))
			must(t, err)
			for _, fault := range breaches(string(text)) {
				t.Errorf("%s: %s", upFile(dialect, m), fault)
			}
		}
	}
}

var (
	takesAway = regexp.MustCompile(`(?i)\bDROP\s+(TABLE|COLUMN|SEQUENCE|TYPE|VIEW|DEFAULT)\b|\bRENAME\b|\bTRUNCATE\b|\bDELETE\s+FROM\b|` +
		`\bSET\s+NOT\s+NULL\b|\bALTER\s+COLUMN\s+\w+\s+(SET\s+DATA\s+)?TYPE\b|\bADD\s+(CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN)\b|\bCREATE\s+UNIQUE\s+INDEX\b`)
	addsColumn = regexp.MustCompile(`(?i)\bADD\s+(COLUMN\s+)?(IF\s+NOT\s+EXISTS\s+)?\w+\s+[^,;]*\bNOT\s+NULL\b[^,;]*`)
	comments   = regexp.MustCompile(`--[^\n]*`)
)

// breaches are what a new migration must not do without saying so: "-- compatible: N" says
// whose programs go on, or "-- incompatible: why" that none do; "-- contract: why" before a
// statement says why nobody misses what it takes away.
func breaches(text string) (faults []string) {
	if strings.Contains(text, "\n-- incompatible: ") {
		return nil
	}
	if !compatibleLine.MatchString(text) {
		faults = append(faults, `it has neither a line "-- compatible: N" nor "-- incompatible: why"`)
	}
	for _, statement := range strings.Split(text, ";") {
		code := comments.ReplaceAllString(statement, "")
		found := takesAway.FindString(code)
		if column := addsColumn.FindString(code); found == "" && column != "" && !strings.Contains(strings.ToUpper(column), "DEFAULT") {
			found = column
		}
		if found != "" && !strings.Contains(statement, "\n-- contract: ") {
			faults = append(faults, fmt.Sprintf("%q may break older programs: expand now and contract two versions later, with a line \"-- contract: why\" before it", found))
		}
	}
	return faults
}

func TestBreachesAreFound(t *testing.T) {
	t.Parallel()
	const compatible = "-- Why.\n-- compatible: 13\n"
	for text, want := range map[string]int{
		"-- Why.\nCREATE TABLE a (id bigint)":                                              1,
		compatible + "CREATE TABLE a (id bigint NOT NULL); CREATE INDEX b ON a (id)":       0,
		compatible + "ALTER TABLE a ADD COLUMN b text":                                     0,
		compatible + "ALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT ''":                 0,
		compatible + "ALTER TABLE a ADD COLUMN b text NOT NULL":                            1,
		compatible + "ALTER TABLE a ADD b text NOT NULL":                                   1,
		compatible + "ALTER TABLE a DROP COLUMN b; DROP TABLE c":                           2,
		compatible + "alter table a rename to b":                                           1,
		compatible + "ALTER TABLE a ALTER COLUMN b TYPE bigint":                            1,
		compatible + "ALTER TABLE a ALTER COLUMN b SET NOT NULL":                           1,
		compatible + "CREATE UNIQUE INDEX b ON a (id)":                                     1,
		compatible + "-- contract: unused since version 14\nDROP TABLE c;\n\nDROP TABLE d": 1,
		compatible + "-- we DROP TABLE nothing\nCREATE TABLE c (id bigint)":                0,
		"-- Why.\n-- incompatible: the ids change\nDROP TABLE c":                           0,
	} {
		if got := breaches(text); len(got) != want {
			t.Errorf("%s\nhas %d breaches, want %d: %v", text, len(got), want, got)
		}
	}
}

// The table of a database that a program of before it has made is filled at the next start.
func TestCompatibilityOfAnOlderDatabase(t *testing.T) {
	t.Parallel()
	db, ctx := newFile(t), t.Context()
	must(t, Up(ctx, SQLite, db))
	mustExec(t, db, "DROP TABLE schema_compatibility")
	must(t, Up(ctx, SQLite, db))
	var version, oldest int
	must(t, db.QueryRow("SELECT version, oldest FROM schema_compatibility").Scan(&version, &oldest))
	if state, err := Status(ctx, SQLite, db); err != nil || state.Oldest != oldest || version != state.Version {
		t.Errorf("version %d, oldest %d, status %+v, %v", version, oldest, state, err)
	}
	must(t, To(ctx, SQLite, db, 0))
	if err := db.QueryRow("SELECT version FROM schema_compatibility").Scan(&version); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("after going down to nothing it has %d, %v", version, err)
	}
}
