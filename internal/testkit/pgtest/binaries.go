package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

var errMissing = errors.New("no PostgreSQL server was found in PATH, `pg_config --bindir` or /usr/lib/postgresql/*/bin; " +
	"install it (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; " +
	"macOS: brew install postgresql@16), or let XABAR_TEST_POSTGRES_URL name a running server")

// Binary is the path of one of PostgreSQL's programs (postgres, initdb, pgbench).
func Binary(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range binaryDirs() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errMissing
}

// binaryDirs are the places where distributions hide the server's programs, the
// newest version first.
func binaryDirs() []string {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		panic(err) // only for a malformed pattern
	}
	sort.Slice(found, func(i, j int) bool { // 9 before 10
		if len(found[i]) != len(found[j]) {
			return len(found[i]) > len(found[j])
		}
		return found[i] > found[j]
	})
	return append(dirs, found...)
}
