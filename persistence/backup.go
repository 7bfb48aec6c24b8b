package persistence

import (
	"context"
	"errors"
	"strings"

	"xabar/persistence/sqlite"
)

// ErrNotEmbedded says that a database is not a file of ours to copy.
var ErrNotEmbedded = errors.New("this is for the embedded database; copy PostgreSQL with pg_dump (docs/guides/backup.md)")

// Backup copies the embedded database that url names into a new file, while others use it, and
// returns the copy's size in bytes. Errors: ErrNotEmbedded, fs.ErrExist, and what the disk says.
func Backup(ctx context.Context, url, file string) (size int64, err error) {
	path, embedded := strings.CutPrefix(url, "sqlite:")
	if !embedded {
		return 0, ErrNotEmbedded
	}
	return sqlite.Backup(ctx, path, file)
}
