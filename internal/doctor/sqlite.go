package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"xabar/migrations"
	"xabar/persistence/sqlite"
)

// SQLiteInput is what SQLite needs.
type SQLiteInput struct {
	Path    string // of the file, which need not exist
	Migrate bool   // serve brings the schema up to date by itself
}

// SQLite examines the folder of the embedded database, and the file if there is one.
func SQLite(ctx context.Context, r *Report, in SQLiteInput) {
	s := r.Section(sectionDatabase)
	folder, exists := nearestFolder(filepath.Dir(in.Path))
	if !fileSystem(s, folder) {
		return
	}
	if !tryFile(ctx, s, folder, exists, filepath.Dir(in.Path)) {
		return
	}
	info, err := os.Stat(in.Path)
	schema := r.Section(sectionSchema)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		schema.OK("version", "there is no %s yet: serve makes it", in.Path)
		return
	case err != nil:
		schema.Problem("version", "look at the path in --database-url", "%v", err)
		return
	case !info.Mode().IsRegular():
		schema.Problem("version", "name a file in --database-url", "%s is no file", in.Path)
		return
	}
	permissions(s, in.Path, info)
	sqliteSchema(ctx, schema, in)
}

// nearestFolder is the folder, or the nearest one above it that exists.
func nearestFolder(folder string) (nearest string, exists bool) {
	exists = true
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder, exists
		}
		exists = false
		above := filepath.Dir(folder)
		if above == folder {
			return folder, false
		}
		folder = above
	}
}

// fileSystem looks at what the folder is on. It is false where a database can't be.
func fileSystem(s Section, folder string) bool {
	kind, free, err := statFS(folder)
	if err != nil {
		s.Problem("file system", "look at the path in --data-dir and --database-url", "%s: %v", folder, err)
		return false
	}
	switch {
	case networkFileSystems[kind]:
		s.Problem("file system", "use a local disk, or PostgreSQL", "%s is on %s: SQLite's write-ahead log does not work over a network", folder, kind)
		return false
	case kind == "tmpfs":
		s.Warn("file system", "use a disk", "%s is in memory: everything is lost when the machine restarts", folder)
	case kind == "overlay":
		s.Warn("file system", "mount a volume there", "%s is in the container's own layer: everything is lost with the container", folder)
	default:
		s.OK("file system", "%s is on %s", folder, kind)
	}
	const gigabyte = 1 << 30
	if free < gigabyte {
		s.Warn("free space", "make room: a message takes about 0.6 kB", "%d MB", free>>20)
	} else {
		s.OK("free space", "%.1f GB", float64(free)/gigabyte)
	}
	return true
}

// tryFile makes a database in the folder, writes to it and removes it.
func tryFile(ctx context.Context, s Section, folder string, exists bool, wanted string) (works bool) {
	dir, err := os.MkdirTemp(folder, ".xabar-doctor-")
	if err != nil {
		do := fmt.Sprintf("let the user that xabar runs as write there: chown -R xabar %s", wanted)
		s.Problem("writable", do, "%v", err)
		return false
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			s.Warn("clean-up", "remove it", "%v", err)
		}
	}()
	if exists {
		s.OK("writable", "%s", folder)
	} else {
		s.OK("writable", "%s is made by serve", wanted)
	}
	db, err := sqlite.OpenDB(filepath.Join(dir, "try.db"))
	if err != nil {
		s.Problem("write-ahead log", "use another file system", "%v", err)
		return false
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		s.Problem("write-ahead log", "use another file system", "not possible in %s: mode %q, %v", folder, mode, err)
		return false
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE t (n INTEGER)"); err != nil {
		s.Problem("write-ahead log", "use another file system", "%v", err)
		return false
	}
	took, err := times(commits, func() error {
		_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1)")
		return err
	})
	switch commit := median(took); {
	case err != nil:
		s.Problem("commit", "look at the disk", "%v", err)
		return false
	case commit > slowCommit:
		s.Warn("commit", "use a faster disk: a message waits for one commit", "%s until it is on the disk", rounded(commit))
	default:
		s.OK("commit", "%s until it is on the disk", rounded(commit))
	}
	return true
}

// permissions: it holds everybody's messages.
func permissions(s Section, path string, info fs.FileInfo) {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		s.Warn("permissions", "chmod 600 "+path, "%s is %v: others on this machine can read all messages", path, mode)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		s.Problem("permissions", "let the user that xabar runs as write it", "%v", err)
		return
	}
	file.Close()
}

func sqliteSchema(ctx context.Context, s Section, in SQLiteInput) {
	db, err := sqlite.OpenDB(in.Path)
	if err != nil {
		s.Problem("version", "look at the file", "%v", err)
		return
	}
	defer db.Close()
	state, err := migrations.Status(ctx, migrations.SQLite, db)
	if err != nil {
		s.Problem("version", "restore it from a backup", "%s cannot be read: %v", in.Path, err)
		return
	}
	describeSchema(s, state, in.Migrate)
	var check string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&check); err != nil || check != "ok" {
		s.Problem("integrity", "restore it from a backup", "%s %v", check, err)
		return
	}
	s.OK("integrity", "the file is whole")
}
