package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEqualFilesMakeEqualArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var archives [2][]byte
	for i := range archives {
		// Written at another time, by the same name in another folder.
		source := filepath.Join(t.TempDir(), "xabar")
		if err := os.WriteFile(source, []byte("binary"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(source, time.Time{}, time.Now().Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "x.tar.gz")
		if err := writeArchive(path, "xabar_1.0.0", at, []packed{{"xabar", source, 0o755}}); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archives differ")
	}
	compressed, err := gzip.NewReader(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(compressed)
	if header, err := archive.Next(); err != nil || header.Name != "xabar_1.0.0/" {
		t.Fatalf("%v %v", header, err)
	}
	header, err := archive.Next()
	if err != nil || header.Name != "xabar_1.0.0/xabar" || header.Mode != 0o755 || !header.ModTime.Equal(at) || header.Uid != 0 {
		t.Errorf("%+v %v", header, err)
	}
	if text, err := io.ReadAll(archive); err != nil || string(text) != "binary" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := archive.Next(); err != io.EOF {
		t.Errorf("and then %v", err)
	}
}

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- later\n\n## [1.2.0] - 2026-01-02\n\n### Added\n\n- this\n\n## [1.1.0]\n\n- before\n"
	for version, want := range map[string]string{
		"v1.2.0": "### Added\n\n- this\n", "v1.1.0": "- before\n", "v1.2": "", "v3.0.0": "",
	} {
		if got := notes(changelog, version); got != want {
			t.Errorf("%s: %q", version, got)
		}
	}
}

func TestTheBillNamesThePackagesOfThePage(t *testing.T) {
	t.Parallel()
	packages, err := npmPackages(filepath.Join("..", "..", "web", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	const bill = `{"bomFormat": "CycloneDX", "metadata": {"timestamp": "2030-01-01T00:00:00Z", "component": {"bom-ref": "root"},
		"tools": [{"name": "tool", "hashes": [{"alg": "MD5", "content": "of this machine's"}]}]},
		"components": [{"bom-ref": "a"}], "dependencies": [{"ref": "a"}, {"ref": "root", "dependsOn": ["a"]}]}`
	text, err := completeBOM([]byte(bill), packages, time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata   struct{ Timestamp string }
		Components []struct {
			Ref    string `json:"bom-ref"`
			Hashes []struct{ Alg, Content string }
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("of this machine's")) {
		t.Errorf("it depends on who built the tool:\n%s", text)
	}
	if got.Metadata.Timestamp != "1970-01-01T00:00:00Z" {
		t.Errorf("time %s", got.Metadata.Timestamp)
	}
	refs := make([]string, len(got.Components))
	for i, c := range got.Components {
		refs[i] = c.Ref
		if i > 0 && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 128) {
			t.Errorf("%s: %v", c.Ref, c.Hashes)
		}
	}
	all := strings.Join(refs, " ")
	for _, want := range []string{"pkg:npm/preact@", "pkg:npm/socket.io-client@", "pkg:npm/%40socket.io/component-emitter@"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if strings.Contains(all, "pkg:npm/vite@") || strings.Contains(all, "playwright") {
		t.Errorf("a tool is in %s", all)
	}
	if on := got.Dependencies[1].DependsOn; len(on) != len(refs) || len(got.Dependencies[0].DependsOn) != 0 {
		t.Errorf("dependencies %v", got.Dependencies)
	}
	for _, bad := range []string{`{}`, `[`, `{"bomFormat": "CycloneDX", "metadata": {}}`} {
		if _, err := completeBOM([]byte(bad), packages, time.Time{}); err == nil {
			t.Errorf("accepted %s", bad)
		}
	}
}

func TestChecksumsAreThoseOfSha256sum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"b": "", "a": "abc"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeChecksums(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestAFolderWithOtherThingsIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"SHA256SUMS", "xabar_1.0.0_linux_amd64.tar.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := emptyFolder(dir); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("%v %v", entries, err)
	}
	thesis := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(thesis, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := emptyFolder(dir); err == nil {
		t.Error("no complaint")
	}
	if _, err := os.Stat(thesis); err != nil {
		t.Error(err)
	}
}

// repository makes a git repository that looks like ours to prepare.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{"CHANGELOG.md": "## [1.0.0]\n\n- all\n", "web/dist/index.html": "<html>"}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."},
		{"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return root
}

func TestAReleaseIsACommitThatTheChangelogKnows(t *testing.T) {
	t.Parallel()
	root := repository(t)
	prepare := func(version string, snapshot bool) error {
		r := Release{Version: version, Root: root, Dir: t.TempDir(), Snapshot: snapshot}
		err := r.prepare(t.Context())
		if err == nil && (len(r.Commit) != 40 || r.Time.IsZero()) {
			t.Errorf("%+v", r)
		}
		return err
	}
	if err := prepare("v1.0.0", false); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "1.0.0", "v1", "v1.0.0; rm -rf /", "v01.0.0"} {
		if err := prepare(bad, true); err == nil {
			t.Errorf("version %q", bad)
		}
	}
	if err := prepare("v1.0.1", false); err == nil || !strings.Contains(err.Error(), "CHANGELOG") {
		t.Errorf("a version that the changelog does not know: %v", err)
	}
	if err := prepare("v1.0.1-rc.1", true); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(root, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prepare("v1.0.0", false); err == nil || !strings.Contains(err.Error(), "new.go") {
		t.Errorf("uncommitted changes: %v", err)
	}
	if err := prepare("v1.0.0", true); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(root, "web/dist/index.html")); err != nil {
		t.Fatal(err)
	}
	if err := prepare("v1.0.0", true); err == nil || !strings.Contains(err.Error(), "page") {
		t.Errorf("without the page: %v", err)
	}
}
