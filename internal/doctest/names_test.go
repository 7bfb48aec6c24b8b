package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// index is what the module's code declares: by package, its names and those of its types' methods
// and fields (Type.Name).
type index map[string]map[string]bool

func (x index) add(pkg string, names ...string) {
	if x[pkg] == nil {
		x[pkg] = map[string]bool{}
	}
	x[pkg][strings.Join(names, ".")] = true
}

// folders of code that has names of its own.
var code = []string{"chat", "cmd", "gateway", "internal", "migrations", "persistence", "rooms", "web"}

func readIndex(t *testing.T) index {
	t.Helper()
	x := index{}
	for _, folder := range code {
		err := filepath.WalkDir(filepath.Join(testkit.Root(), folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && skipped[entry.Name()] {
				return fs.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			x.file(file)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x index) file(file *ast.File) {
	pkg := file.Name.Name
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				x.add(pkg, d.Name.Name)
			} else {
				x.add(pkg, receiver(d.Recv.List[0].Type), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				x.spec(pkg, spec)
			}
		}
	}
}

func (x index) spec(pkg string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			x.add(pkg, name.Name)
		}
	case *ast.TypeSpec:
		x.add(pkg, s.Name.Name)
		var members *ast.FieldList
		switch body := s.Type.(type) {
		case *ast.StructType:
			members = body.Fields
		case *ast.InterfaceType:
			members = body.Methods
			// What it embeds counts as its own, one level deep, by the promise of the package's names.
			for _, field := range members.List {
				if embedded, ok := field.Type.(*ast.Ident); ok {
					x.add(pkg, s.Name.Name, "<"+embedded.Name)
				}
			}
		default:
			return
		}
		for _, field := range members.List {
			for _, name := range field.Names {
				x.add(pkg, s.Name.Name, name.Name)
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// has says whether a package declares Name, Type.Member, or a member of what an interface embeds.
func (x index) has(pkg, name string) bool {
	if x[pkg][name] {
		return true
	}
	owner, member, ok := strings.Cut(name, ".")
	if !ok {
		return false
	}
	for declared := range x[pkg] {
		if embedded, ok := strings.CutPrefix(declared, owner+".<"); ok && x.has(pkg, embedded+"."+member) {
			return true
		}
	}
	return false
}

var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	pathInText = regexp.MustCompile(`^[A-Za-z0-9_.@-]+(/[A-Za-z0-9_.@-]+)+/?$`)
	nameInText = regexp.MustCompile(`^([a-z0-9]+)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)$`)
)

// roots are the first parts of paths in this repository.
var roots = []string{".ci", "bench", "chat", "cmd", "deploy", "docs", "gateway", "internal", "migrations", "persistence", "rooms", "web"}

// examples are files that a guide has its reader make.
var examples = []string{"gateway/notify/ntfy/ntfy.go", "gateway/notify/ntfy/ntfy_test.go"}

// TestFilesAndNamesOfTheCodeExist looks at everything in `code` in the documents that reads like a
// path of this repository or like package.Name.
func TestFilesAndNamesOfTheCodeExist(t *testing.T) {
	t.Parallel()
	x := readIndex(t)
	paths, names := 0, 0
	for _, d := range documents(t) {
		if strings.HasPrefix(d.path, filepath.Join("docs", "decisions")) || d.path == "CHANGELOG.md" {
			continue // they tell of what was
		}
		for _, match := range codeSpan.FindAllStringSubmatch(d.prose, -1) {
			text := match[1]
			if pathInText.MatchString(text) && !slices.Contains(examples, text) && slices.Contains(roots, text[:strings.Index(text, "/")]) {
				paths++
				if _, err := os.Stat(filepath.Join(testkit.Root(), filepath.FromSlash(text))); err != nil {
					t.Errorf("%s names %s, which is not there", d.path, text)
				}
			}
			if name := nameInText.FindStringSubmatch(text); name != nil && x[name[1]] != nil && !isFile(name[2]) {
				names++
				if !x.has(name[1], name[2]) {
					t.Errorf("%s names %s, which the code does not declare", d.path, text)
				}
			}
		}
	}
	if paths < 40 || names < 30 {
		t.Errorf("only %d paths and %d names were looked at", paths, names)
	}
}

func TestNamesAreFound(t *testing.T) {
	t.Parallel()
	x := readIndex(t)
	for name, declared := range map[string]bool{
		"NewService": true, "Service": true, "Service.Send": true, "Service.show": true, "Store.Sync": true, "SendMessage.Text": true,
		"PageLimit": true, "NoSuchThing": false, "Service.NoSuchThing": false, "NoSuchThing.Send": false,
	} {
		if x.has("chat", name) != declared {
			t.Errorf("chat.%s", name)
		}
	}
}

// isFile says that what follows a point is the ending of a file's name: chat.mjs.
func isFile(after string) bool {
	return slices.Contains([]string{"md", "mjs", "js", "ts", "tsx", "sh", "go", "sql", "yaml", "db", "com", "org"}, after)
}

// TestTheArchitectureNamesEveryPackage compares its map with the folders.
func TestTheArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## Packages\n")
	table, _, _ := strings.Cut(rest, "\n## ")
	for _, folder := range []string{"persistence", "gateway", "internal", "cmd"} {
		entries, err := os.ReadDir(filepath.Join(testkit.Root(), folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := folder + "/" + entry.Name()
			if !entry.IsDir() || folder == "persistence" && entry.Name() == "internal" {
				continue
			}
			if !strings.Contains(table, "`"+name+"`") {
				t.Errorf("the map of docs/architecture.md lacks %s", name)
			}
		}
	}
}
