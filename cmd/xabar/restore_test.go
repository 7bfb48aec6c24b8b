package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBackupAndRestoredSayWhatTheyCannotDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"backup", file, "--data-dir", dir}, 1, "there is no database"},
		{[]string{"restored", "--data-dir", dir}, 1, "there is no database"},
		{[]string{"backup", file, "--database-url", "postgres://nobody@127.0.0.1:1/x"}, 2, "pg_dump"},
		{[]string{"backup"}, 2, "file"},
		{[]string{"migrate", "up", "--data-dir", dir}, 0, ""},
		{[]string{"backup", file, "--data-dir", dir}, 0, "bytes"},
		{[]string{"backup", file, "--data-dir", dir}, 1, "exist"},
		{[]string{"restored", "--data-dir", dir}, 0, "told to reset"},
	} {
		code, out, errs := xabar(t, c.args...)
		if code != c.code || !strings.Contains(strings.ToLower(out+errs), c.says) {
			t.Errorf("%v: exit %d %s%s", c.args, code, out, errs)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("the copy: %v, %v", info, err)
	}
}
