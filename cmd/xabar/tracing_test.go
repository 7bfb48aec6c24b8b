package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// spanName finds the spans that begin with a name of their own.
var spanName = regexp.MustCompile(`(?:(?:ChildSpan|StartSpan|GoOn|StartFrom|StartLinked|\.Child)\(.*Span, |Span: +|\.Span = )"([a-z_.]+)"`)

// The guide's table has every span, and none that there isn't.
func TestTheGuideListsEverySpan(t *testing.T) {
	t.Parallel()
	var begun []string
	for _, folder := range []string{"chat", "gateway", "persistence", "rooms"} {
		err := filepath.WalkDir(filepath.Join(testkit.Root(), folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range spanName.FindAllSubmatch(source, -1) {
				begun = append(begun, string(match[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	guide, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "guides", "tracing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "<!-- compared with the code by a test -->\n")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("the guide has no table of spans")
	}
	var listed []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(first, -1) {
			listed = append(listed, name[1])
		}
	}
	slices.Sort(begun)
	slices.Sort(listed)
	if begun = slices.Compact(begun); len(begun) < 15 || !slices.Equal(begun, listed) {
		t.Errorf("there are\n%v, the guide lists\n%v", begun, listed)
	}
}
