package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// DocBlock is the code block that a document, named from the module's folder, marks for a test to run:
//
//	<!-- run by a test, as it stands: name -->
func DocBlock(t testing.TB, document, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(), filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, marked := strings.Cut(string(text), "<!-- run by a test, as it stands: "+name+" -->\n```")
	_, rest, fenced := strings.Cut(rest, "\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !marked || !fenced || !closed {
		t.Fatalf("%s has no block %s", document, name)
	}
	return block + "\n"
}
