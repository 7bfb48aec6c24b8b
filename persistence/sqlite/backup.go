package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Backup copies the database at path into a new file, readable by its owner alone, and returns
// its size in bytes. Stores of this and other processes go on meanwhile; the copy is of one
// moment. It is complete and on the disk when it appears under its name. The first Store that
// opens it begins a new epoch. Errors: fs.ErrExist, and what SQLite and the disk say.
func Backup(ctx context.Context, path, file string) (size int64, err error) {
	if _, err := os.Lstat(file); err == nil {
		return 0, fmt.Errorf("%s: %w", file, fs.ErrExist)
	}
	part := file + ".part"
	// Made here, because SQLite would let everybody read it; into an empty file it writes.
	made, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = errors.Join(err, made.Close()); err != nil {
			_ = os.Remove(part) // what went wrong is said already
		}
	}()
	if err := copyInto(ctx, path, part); err != nil {
		return 0, err
	}
	if err := markCopy(ctx, part); err != nil {
		return 0, err
	}
	info, err := made.Stat()
	if err != nil {
		return 0, err
	}
	if err := made.Sync(); err != nil {
		return 0, err
	}
	if err := os.Rename(part, file); err != nil {
		return 0, err
	}
	return info.Size(), syncDir(filepath.Dir(file))
}

func copyInto(ctx context.Context, path, part string) (err error) {
	db, err := OpenDB(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", part)
	return err
}

// markCopy has the first Store that opens the copy begin a new epoch.
func markCopy(ctx context.Context, part string) (err error) {
	db, err := openDB(part, url.Values{}, "journal_mode(DELETE)") // no files beside it
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	return markCopied(ctx, db)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
