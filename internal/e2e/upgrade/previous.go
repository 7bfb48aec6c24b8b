// Package upgrade holds the tests of what docs/guides/upgrading.md promises: nodes of this version
// and of the one before run side by side, on one database and one Redis, in both directions.
package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Previous is the version that this one replaces, as git knows it. It moves on with each
// release: to the commit of the release before.
const Previous = "bf261ba6535dff38b53fc88b6569a5fa538aa698"

// BuildPrevious builds the previous version's xabar in dir, out of the history of the repository at
// root, without the page, and returns its path.
func BuildPrevious(root, dir string) (string, error) {
	if err := run(root, nil, "git", "cat-file", "-e", Previous+"^{commit}"); err != nil {
		return "", fmt.Errorf("the version before this one, %.12s, is not in this clone, and the tests of upgrading build it: "+
			"run `git fetch --unshallow`, or clone with the whole history (%w)", Previous, err)
	}
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "source.tar")
	binary := filepath.Join(dir, "xabar")
	for _, step := range []func() error{
		func() error { return run(root, nil, "git", "archive", "-o", archive, Previous) },
		func() error { return run(source, nil, "tar", "-xf", archive) },
		// Without the race detector, which this version's own tests have had.
		func() error {
			return run(source, []string{"GOFLAGS=-buildvcs=false", "GOWORK=off"}, "go", "build", "-o", binary, "./cmd/xabar")
		},
		func() error { return errors.Join(os.RemoveAll(source), os.Remove(archive)) },
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return binary, nil
}

// run runs a command in a folder; its error has what it said.
func run(dir string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w %s", name, args[0], err, strings.TrimSpace(said.String()))
	}
	return nil
}
