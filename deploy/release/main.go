// Command release builds what a release consists of: static binaries with the page for every
// platform, packed with the licence, a software bill of materials of each, and the checksums
// of all. `make release VERSION=v1.2.3` runs it.
//
// The same commit, built with the same Go, gives the same bytes, wherever and whenever it is
// built: no paths, no clock, no user gets into them. So anybody can check a release by
// making it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes the release that the arguments describe.
func run(ctx context.Context, args []string) error {
	var r Release
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.Version, "version", "", "of the release, like v1.2.3 or v1.2.3-rc.1")
	flags.StringVar(&r.Dir, "out", "dist", "folder for the results; what it held is removed")
	flags.StringVar(&r.BOMTool, "cyclonedx-gomod", "cyclonedx-gomod", "program that lists the Go modules of a binary")
	flags.StringVar(&r.Root, "root", ".", "of the repository")
	flags.BoolVar(&r.Snapshot, "snapshot", false, "allow uncommitted changes, and a version that CHANGELOG.md does not know")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown arguments %q", flags.Args())
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.Make(ctx); err != nil {
		return err
	}
	fmt.Printf("%s is in %s\n", r.Version, r.Dir)
	return nil
}

var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`)

// prepare checks what can be checked before anything is built.
func (r *Release) prepare(ctx context.Context) (err error) {
	if !versionPattern.MatchString(r.Version) {
		return fmt.Errorf("-version %q is not like v1.2.3", r.Version)
	}
	if r.Root, err = filepath.Abs(r.Root); err != nil {
		return err
	}
	if r.Dir, err = filepath.Abs(r.Dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.Root, "web", "dist", "index.html")); err != nil {
		return errors.New("the page is not built: make page")
	}
	if r.Commit, r.Time, err = head(ctx, r.Root); err != nil {
		return err
	}
	changed, err := git(ctx, r.Root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" && !r.Snapshot {
		return fmt.Errorf("there are uncommitted changes; a release is a commit:\n%s", changed)
	}
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	r.Notes = notes(string(changelog), r.Version)
	if r.Notes == "" && !r.Snapshot {
		return fmt.Errorf("CHANGELOG.md has no section [%s]", r.number())
	}
	return nil
}
