package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xabar/chat"
	"xabar/internal/testkit"
)

// packageFiles parses a folder's files without its tests.
func packageFiles(t *testing.T, folder string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testkit.Root(), folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// handler is what gateway/events does with an event: the method of client, and the types of
// what comes in and goes out.
type handler struct{ method, request, answer string }

// handlers reads gateway/events/table.go and the methods that it names.
func handlers(files []*ast.File) map[string]handler {
	found := map[string]handler{}
	methods := map[string]*ast.FuncType{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[n.Name.Name] = n.Type
				}
			case *ast.CallExpr:
				name := calledName(n.Fun)
				if name != "queued" && name != "reading" || len(n.Args) < 3 {
					return true
				}
				event, okEvent := n.Args[1].(*ast.BasicLit)
				method, okMethod := n.Args[2].(*ast.SelectorExpr)
				if text, err := strconv.Unquote(event.Value); okEvent && okMethod && err == nil {
					found[text] = handler{method: method.Sel.Name}
				}
			}
			return true
		})
	}
	for event, h := range found {
		signature := methods[h.method]
		if signature == nil {
			continue
		}
		parameters := signature.Params.List
		h.request = typeName(parameters[1].Type)
		if signature.Results != nil {
			h.answer = typeName(signature.Results.List[0].Type)
		} else if done, ok := parameters[2].Type.(*ast.FuncType); ok {
			h.answer = typeName(done.Params.List[0].Type)
		}
		found[event] = h
	}
	return found
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// jsonFields are the names that the package's struct of this name has on the wire.
func jsonFields(files []*ast.File, name string) []string {
	var names []string
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range body.Fields.List {
					if field.Tag == nil {
						if embedded := typeName(field.Type); len(field.Names) == 0 {
							names = append(names, jsonFields(files, embedded)...)
						}
						continue
					}
					tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
					wire, _, _ := strings.Cut(tag, ",")
					names = append(names, wire)
				}
			}
			return false
		})
	}
	return names
}

// cells are the columns of a table's rows by the name in their first one.
func cells(section string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(section) {
		line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		columns := strings.Split(strings.Trim(line, "|"), "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(strings.ReplaceAll(columns[i], "\x00", "|"))
		}
		all[strings.Trim(columns[0], "`")] = columns[1:]
	}
	return all
}

// sharedFields are of request types that several events have, and of no use to these.
var sharedFields = map[string]string{"contacts": "conversationId", "conversations": "conversationId"}

func TestTheReferenceHasEveryFieldOfPayloadsAndAnswers(t *testing.T) {
	files := packageFiles(t, filepath.Join("gateway", "events"))
	rows := cells(protocolSection(t, "Client to server"))
	known := handlers(files)
	if len(known) < 10 {
		t.Fatalf("only %v found in the code", known)
	}
	checked := 0
	for event, h := range known {
		row := rows[event]
		if len(row) != 3 {
			t.Errorf("%s has %d columns beside its name, not payload, answer and errors", event, len(row))
			continue
		}
		word := func(column, field string) bool {
			return regexp.MustCompile(`\b` + regexp.QuoteMeta(field) + `\b`).MatchString(column)
		}
		for _, field := range jsonFields(files, h.request) {
			checked++
			if !word(row[0], field) && sharedFields[event] != field {
				t.Errorf("%s takes %s, which its row lacks: %s", event, field, row[0])
			}
		}
		for _, field := range jsonFields(files, h.answer) {
			checked++
			if !word(row[1], field) {
				t.Errorf("%s answers %s, which its row lacks: %s", event, field, row[1])
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d fields were compared", checked)
	}
	session := cells(protocolSection(t, "Server to client"))["session"]
	for _, name := range append(jsonFields(files, "sessionPayload"), jsonFields(files, "sessionLimits")...) {
		if len(session) != 1 || !strings.Contains(session[0], name) {
			t.Errorf("the row of session lacks %s: %v", name, session)
		}
	}
}

func TestTheReferenceNamesErrorsThatExist(t *testing.T) {
	codes := map[string]bool{}
	for _, code := range chat.Codes() {
		codes[string(code)] = true
	}
	for event, row := range cells(protocolSection(t, "Client to server")) {
		if len(row) != 3 {
			continue // told above
		}
		names := nameInCode.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 && row[2] != "-" && row[2] != "none" {
			t.Errorf("%s has no errors: %q", event, row[2])
		}
		for _, name := range names {
			if !codes[name[1]] {
				t.Errorf("%s: there is no error %s", event, name[1])
			}
		}
	}
}

// TestTheReferenceHasTheLimitsOfTheCode compares numbers where they have names.
func TestTheReferenceHasTheLimitsOfTheCode(t *testing.T) {
	section := protocolSection(t, "Limits")
	options, err := os.ReadFile(filepath.Join(testkit.Root(), "gateway", "engineio", "options.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"&o.PingInterval, 25*time.Second", "&o.PingTimeout, 20*time.Second", "&o.SendBudget, 1<<20"} {
		if !strings.Contains(string(options), text) {
			t.Errorf("gateway/engineio/options.go has another default than the reference: %s", text)
		}
	}
	for what, limit := range map[string]string{
		"text of a message":                  "1 to " + thousands(chat.MaxTextLength) + " code points",
		"`clientMsgId`":                      "1 to " + thousands(chat.MaxClientMsgIDLength) + " characters",
		"external id of a user":              "1 to " + thousands(chat.MaxExternalIDLength) + " characters",
		"title of a group":                   "1 to " + thousands(chat.MaxTitleLength) + " code points",
		"members of a group":                 "2 to " + thousands(chat.MaxGroupMembers),
		"a page of anything":                 "1 to " + thousands(chat.PageLimit),
		"`positions` in `sync`":              thousands(chat.MaxSyncPositions),
		"`userIds` in `presence`":            thousands(chat.MaxPresenceUsers),
		"receipts with times":                "up to " + thousands(chat.ReceiptMembers) + " members",
		"`typing` passed on":                 "one per " + chat.TypingInterval.String()[:1] + " s, and dropped after " + chat.TypingExpires.String()[:1] + " s",
		"a packet":                           thousands(maxPayload) + " bytes",
		"what may wait for a connection":     "1 MiB",
		"heartbeat":                          "every 25 s, answered within 20 s",
		"acknowledgement of a message | 1 s": "2 min",
	} {
		found := slices.ContainsFunc(slices.Collect(strings.Lines(section)), func(line string) bool {
			return strings.HasPrefix(line, "| "+what) && strings.Contains(line, limit)
		})
		if !found {
			t.Errorf("docs/protocol.md does not say of %s: %s", what, limit)
		}
	}
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
