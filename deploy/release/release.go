package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Target is a platform that is built for.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "_" + t.Arch }

var targets = []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// Release is one to make, and what it is made of.
type Release struct {
	Version  string // like v1.2.3
	Root     string // of the repository
	Dir      string // for the results
	BOMTool  string
	Snapshot bool

	Commit string
	Time   time.Time // of the commit: the only time that gets into anything
	Notes  string    // the version's section of the changelog
}

// number is the version as archives and the changelog have it.
func (r *Release) number() string { return strings.TrimPrefix(r.Version, "v") }

// Make builds everything into Dir.
func (r *Release) Make(ctx context.Context) error {
	if err := emptyFolder(r.Dir); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "xabar-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	packages, err := npmPackages(filepath.Join(r.Root, "web", "package-lock.json"))
	if err != nil {
		return err
	}
	for _, target := range targets {
		if err := r.makeTarget(ctx, target, work, packages); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	if r.Notes != "" {
		if err := os.WriteFile(filepath.Join(r.Dir, "NOTES.md"), []byte(r.Notes), 0o644); err != nil {
			return err
		}
	}
	return writeChecksums(r.Dir)
}

// emptyFolder makes a folder, or removes the files of an earlier release from it. Anything
// else in it is somebody's: then it fails.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !ours.MatchString(entry.Name()) {
			return fmt.Errorf("%s holds %s, which no release made", dir, entry.Name())
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// ours are the names of what a release consists of.
var ours = regexp.MustCompile(`^(xabar_.*\.(tar\.gz|cdx\.json)|SHA256SUMS|NOTES\.md)$`)

func (r *Release) makeTarget(ctx context.Context, target Target, work string, packages []npmPackage) error {
	fmt.Fprintf(os.Stderr, "Building %s for %s\n", r.Version, target)
	binary := filepath.Join(work, target.String(), "xabar")
	if err := r.build(ctx, target, binary); err != nil {
		return err
	}
	name := fmt.Sprintf("xabar_%s_%s", r.number(), target)
	bom, err := r.billOfMaterials(ctx, binary, packages)
	if err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, name+".cdx.json"), bom, 0o644); err != nil {
		return err
	}
	contents := []packed{{name: "xabar", path: binary, mode: 0o755}}
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		contents = append(contents, packed{name: file, path: filepath.Join(r.Root, file), mode: 0o644})
	}
	return writeArchive(filepath.Join(r.Dir, name+".tar.gz"), name, r.Time, contents)
}

// build makes one binary: static, and without the paths and the habits of this machine.
func (r *Release) build(ctx context.Context, target Target, binary string) error {
	ldflags := fmt.Sprintf("-s -w -X main.release=%s -X main.commit=%s", r.Version, r.Commit)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", binary, "./cmd/xabar")
	cmd.Dir = r.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+target.OS, "GOARCH="+target.Arch,
		"GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// head is the commit that is checked out, and its time.
func head(ctx context.Context, root string) (commit string, at time.Time, err error) {
	line, err := git(ctx, root, "log", "-1", "--format=%H %ct")
	if err != nil {
		return "", time.Time{}, err
	}
	commit, seconds, _ := strings.Cut(line, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("git log says %q", line)
	}
	return commit, time.Unix(unix, 0).UTC(), nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// writeChecksums writes SHA256SUMS over all files of the folder, for `sha256sum -c`.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines []string
	for _, entry := range entries {
		sum, err := checksum(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, sum+"  "+entry.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[2*sha256.Size:], b[2*sha256.Size:]) })
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
