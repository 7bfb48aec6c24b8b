package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xabar/chat"
	"xabar/internal/testkit"
)

// protocolSection is a section of docs/protocol.md, without its heading.
func protocolSection(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/protocol.md has no section %q", heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

var nameInCode = regexp.MustCompile("`([a-z_:]+)`")

// rows are the names that the first column of a section's table has.
func rows(section string) []string {
	var names []string
	for line := range strings.Lines(section) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(first, "`") {
			for _, name := range nameInCode.FindAllStringSubmatch(first, -1) {
				names = append(names, name[1])
			}
		}
	}
	return names
}

// eventNames are the literals that gateway/events gives as their first string to
// calls of these functions.
func eventNames(t *testing.T, functions ...string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testkit.Root(), "gateway", "events", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains(functions, calledName(call.Fun)) {
				return true
			}
			for _, arg := range call.Args {
				literal, ok := arg.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				name, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				break
			}
			return true
		})
	}
	return names
}

func calledName(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.IndexExpr:
		return calledName(f.X)
	case *ast.IndexListExpr:
		return calledName(f.X)
	}
	return ""
}

func TestTheReferenceHasEveryEventThatClientsCanSend(t *testing.T) {
	code, docs := eventNames(t, "queued", "reading", "Handle"), rows(protocolSection(t, "Client to server"))
	slices.Sort(code)
	slices.Sort(docs)
	if len(code) == 0 || !slices.Equal(code, docs) {
		t.Errorf("in the code: %v\nin docs/protocol.md: %v", code, docs)
	}
}

func TestTheReferenceHasEveryEventThatTheServerSends(t *testing.T) {
	code, docs := eventNames(t, "emit", "Emit", "announce", "Prepare", "PrepareRaw"), rows(protocolSection(t, "Server to client"))
	if len(code) < 5 {
		t.Errorf("only %v found in the code", code)
	}
	for _, name := range code {
		if !slices.Contains(docs, name) {
			t.Errorf("docs/protocol.md lacks %s", name)
		}
	}
}

func TestTheReferenceHasEveryErrorCode(t *testing.T) {
	section := protocolSection(t, "Answers and errors")
	for _, code := range chat.Codes() {
		retry := "no"
		if code.Retryable() {
			retry = "yes"
		}
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\| .* \\| %s \\|$", code, retry))
		if !row.MatchString(section) {
			t.Errorf("docs/protocol.md lacks %s (retryable: %s)", code, retry)
		}
	}
	if got, want := len(rows(section)), len(chat.Codes()); got != want {
		t.Errorf("%d codes in docs/protocol.md, %d in the code", got, want)
	}
}
