package doctest

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"xabar/internal/testkit"
)

// document is a Markdown file: its path from the module's folder, and its text without code
// blocks.
type document struct{ path, prose string }

// skipped are folders that are not ours, or not kept.
var skipped = map[string]bool{"node_modules": true, ".git": true, "dist": true, "bin": true, "xabar-data": true}

func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	root := testkit.Root()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped[entry.Name()] {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		all = append(all, document{relative, prose(string(text))})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d documents", len(all))
	}
	return all
}

// prose is a text without its fenced code.
func prose(text string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:3]
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence == "":
			b.WriteString(line)
		}
	}
	return b.String()
}

var (
	inlineLink = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)`)
	attribute  = regexp.MustCompile(`(?:href|src|srcset)="([^"]+)"`)
	inlineCode = regexp.MustCompile("`[^`]*`")
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// links are the targets in a document that are not code.
func (d document) links() []string {
	text := inlineCode.ReplaceAllString(d.prose, "")
	var targets []string
	for _, expression := range []*regexp.Regexp{inlineLink, attribute} {
		for _, match := range expression.FindAllStringSubmatch(text, -1) {
			targets = append(targets, match[1])
		}
	}
	return targets
}

// anchors are the names of a document's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(prose(text), -1) {
		title := linkText.ReplaceAllString(match[1], "$1")
		var b strings.Builder
		for _, c := range strings.ToLower(title) {
			switch {
			case unicode.IsLetter(c), unicode.IsDigit(c), c == '-', c == '_':
				b.WriteRune(c)
			case c == ' ':
				b.WriteByte('-')
			}
		}
		name := b.String()
		for n := 1; all[name]; n++ {
			name = b.String() + "-" + string(rune('0'+n))
		}
		all[name] = true
	}
	return all
}

// broken says what is wrong with a link; "" if nothing is.
func broken(root, from, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "it cannot be read"
	}
	if u.Scheme != "" || u.Host != "" {
		return "" // another site's: nothing here asks the network
	}
	path := filepath.Join(root, from)
	if u.Path != "" {
		path = filepath.Join(filepath.Dir(path), filepath.FromSlash(u.Path))
		if strings.HasPrefix(u.Path, "/") {
			return "it begins with a slash"
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "there is no such file"
	}
	if u.Fragment == "" || info.IsDir() || filepath.Ext(path) != ".md" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if !anchors(string(text))[u.Fragment] {
		return "there is no such heading"
	}
	return ""
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, d := range documents(t) {
		for _, target := range d.links() {
			checked++
			if why := broken(testkit.Root(), d.path, target); why != "" {
				t.Errorf("%s: %s: %s", d.path, target, why)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were looked at", checked)
	}
}

// TestEveryDocumentIsInTheIndex: what nobody can find is not read.
func TestEveryDocumentIsInTheIndex(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents(t) {
		name, inDocs := strings.CutPrefix(filepath.ToSlash(d.path), "docs/")
		if inDocs && name != "README.md" && !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

func TestLinksAreRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "# One: `two` & three\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n",
		"b/c":  "x",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for target, good := range map[string]bool{
		"a.md": true, "a.md#one-two--three": true, "#twice": true, "#twice-1": true, "b/c": true, "b": true, "https://x/#y": true,
		"mailto:a@b": true, "#no-heading": false, "a.md#four": false, "c.md": false, "/a.md": false, "%zz": false,
	} {
		if why := broken(root, "a.md", target); (why == "") != good {
			t.Errorf("%s: %q", target, why)
		}
	}
	d := document{"a.md", prose("[x](one.md) `[no](code.md)` ![y](two.png \"title\")\n```\n[no](fence.md)\n```\n<img src=\"three.png\">")}
	if got := strings.Join(d.links(), " "); got != "one.md two.png three.png" {
		t.Errorf("links: %s", got)
	}
}
