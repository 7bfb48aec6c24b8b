// Package upgrade holds the tests of what docs/guides/upgrading.md promises: nodes of this version
// and of the one before run side by side, on one database and one Redis, in both directions.
package upgrade

import (
	"bytes"
	"context"
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

// ErrNoHistory: the previous version is not in the repository, as in a shallow clone, or there is no
// repository, as in an unpacked archive; and it can't be fetched.
var ErrNoHistory = errors.New("the version before this one is not here: run `git fetch --unshallow`, or clone with the whole history")

// BuildPrevious builds the previous version's xabar in a new folder, out of the history of the
// repository at root, without the page, and returns its path. The caller removes the folder.
// Errors: ErrNoHistory.
func BuildPrevious(ctx context.Context, root string) (binary string, err error) {
	if err := find(ctx, root); err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNoHistory, err)
	}
	dir, err := os.MkdirTemp("", "xabar-previous-")
	if err != nil {
		return "", err
	}
	if err := build(ctx, root, dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return filepath.Join(dir, "xabar"), nil
}

// find makes sure that the previous version is in the repository.
func find(ctx context.Context, root string) error {
	here := func() error { return run(ctx, root, nil, "git", "cat-file", "-e", Previous+"^{commit}") }
	if here() == nil {
		return nil
	}
	if err := run(ctx, root, nil, "git", "fetch", "--quiet", "--depth", "1", "origin", Previous); err != nil {
		return err
	}
	return here()
}

func build(ctx context.Context, root, dir string) error {
	source, archive := filepath.Join(dir, "source"), filepath.Join(dir, "source.tar")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	if err := run(ctx, root, nil, "git", "archive", "-o", archive, Previous); err != nil {
		return err
	}
	if err := run(ctx, source, nil, "tar", "-xf", archive); err != nil {
		return err
	}
	// Without the race detector, which this version's own tests have had.
	env := []string{"GOFLAGS=-buildvcs=false", "GOWORK=off"}
	if err := run(ctx, source, env, "go", "build", "-o", filepath.Join(dir, "xabar"), "./cmd/xabar"); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(source), os.Remove(archive))
}

// run runs a command in a folder; its error has what it said.
func run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w %s", name, args[0], err, strings.TrimSpace(said.String()))
	}
	return nil
}
