package deptest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule is what the packages under a folder may import themselves, besides each
// other and the standard library. Tests, and packages that serve tests, are free.
type rule struct {
	folder string
	ours   []string // packages of this module
	others []string // modules; nil: any but those of databases and brokers
	why    string
}

var rules = []rule{
	{
		folder: "chat",
		others: []string{"github.com/google/uuid", "github.com/hashicorp/golang-lru/v2"},
		why:    "chat decides and does no I/O: whoever changes a rule needs to know no driver and no protocol",
	},
	{
		folder: "gateway/engineio",
		ours:   []string{"internal/sockets"},
		others: []string{
			"github.com/gobwas/ws", "github.com/gobwas/httphead", "github.com/klauspost/compress",
			"golang.org/x/sys", "golang.org/x/time",
		},
		why: "the transport knows nothing of Socket.IO and chat: others may import it",
	},
	{
		folder: "gateway/socketio",
		ours:   []string{"gateway/engineio"},
		others: []string{"github.com/vmihailenco/msgpack/v5"},
		why:    "the Socket.IO server knows nothing of chat: others may import it",
	},
	{
		folder: "migrations",
		others: []string{"github.com/golang-migrate/migrate/v4"},
		why:    "a schema depends on no code: what ran once must run the same for good",
	},
	{
		folder: "persistence",
		ours:   []string{"chat", "migrations", "internal/sockets"},
		others: []string{"github.com/google/uuid", "github.com/jackc/pgx/v5", "modernc.org/sqlite", "golang.org/x/sync", "github.com/riverqueue/river"},
		why:    "a store knows the domain and its database, and nothing of who asks",
	},
	{
		folder: "rooms",
		ours:   []string{"chat", "gateway/socketio", "internal/sockets"},
		others: []string{"github.com/redis/go-redis/v9", "github.com/vmihailenco/msgpack/v5", "github.com/google/uuid", "golang.org/x/sync"},
		why:    "rooms implements the ports of chat and socketio, and stores nothing",
	},
	{
		folder: "gateway/events",
		ours:   []string{"chat", "gateway/dialect", "gateway/socketio", "internal/ratelimit"},
		why:    "the chat events reach storage and other nodes only through chat's ports",
	},
	{
		folder: "gateway/dialect",
		ours:   []string{"chat"},
		others: []string{"go.yaml.in/yaml/v4"},
		why:    "a description says what is called what, and knows no socket and no database",
	},
	{
		folder: "gateway/httpapi",
		ours:   []string{"chat", "internal/ratelimit"},
		why:    "the HTTP door calls the same Service as the other one, and decides nothing",
	},
	{
		folder: "gateway/notify",
		ours:   []string{"chat"},
		why:    "what is told to whom, and how, is decided without knowing where it is kept",
	},
	{
		folder: "gateway/auth",
		ours:   []string{"chat"},
		why:    "whom a token speaks for is decided without knowing how it came",
	},
	{
		folder: "gateway/notify",
		ours:   []string{"chat"},
		why:    "what is due and what it says is decided without knowing the database, the queue or the sockets",
	},
	{
		folder: "internal/tracing",
		ours:   []string{"chat", "internal/ratelimit"},
		others: []string{"go.opentelemetry.io/otel"},
		why:    "a tracer implements chat's port, and knows nothing of what is traced",
	},
	{
		folder: "internal/ratelimit",
		why:    "a limit knows nothing of what it limits",
	},
}

// drivers reach a database or broker, which is persistence's and rooms' to do.
var drivers = []string{
	"database/sql", "github.com/jackc/pgx/v5", "modernc.org/sqlite",
	"github.com/golang-migrate/migrate/v4", "github.com/redis/go-redis/v9",
}

func (r rule) allows(path string, standard bool) bool {
	ours, isOurs := strings.CutPrefix(path, "xabar/")
	switch {
	case isOurs:
		return under(ours, r.folder) || anyUnder(ours, r.ours)
	case r.others == nil:
		return !anyUnder(path, drivers)
	case standard:
		return r.folder == "persistence" || r.folder == "migrations" || !anyUnder(path, drivers)
	default:
		return anyUnder(path, r.others)
	}
}

func under(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func anyUnder(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return under(path, folder) })
}

// servesTests says of a package that it is there for tests of others.
func servesTests(path string) bool {
	return strings.HasSuffix(path, "test") || under(path, "xabar/internal/testkit")
}

// listed is what `go list` tells of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", "xabar/...").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestWhoImportsWhom(t *testing.T) {
	packages := list(t)
	standard := map[string]bool{"C": true}
	for _, p := range packages {
		if p.Standard {
			standard[p.ImportPath] = true
		}
	}
	for _, r := range rules {
		met := false
		for _, p := range packages {
			if !under(p.ImportPath, "xabar/"+r.folder) || servesTests(p.ImportPath) {
				continue
			}
			met = true
			for _, path := range p.Imports {
				if !r.allows(path, standard[path]) {
					t.Errorf("%s imports %s, but %s. If that has changed, change the rule here.", p.ImportPath, path, r.why)
				}
			}
		}
		if !met {
			t.Errorf("there is no package under %s: the rule protects nothing", r.folder)
		}
	}
}

func TestRulesForbid(t *testing.T) {
	byFolder := make(map[string]rule)
	for _, r := range rules {
		byFolder[r.folder] = r
	}
	for _, forbidden := range [][2]string{
		{"chat", "xabar/persistence"}, {"chat", "database/sql"}, {"chat", "github.com/labstack/echo/v4"},
		{"gateway/engineio", "xabar/chat"}, {"gateway/socketio", "xabar/chat"}, {"gateway/socketio", "xabar/rooms"},
		{"gateway/events", "xabar/persistence/sqlite"}, {"gateway/httpapi", "database/sql"},
		{"gateway/httpapi", "xabar/gateway/events"}, {"rooms", "xabar/persistence"}, {"persistence", "xabar/gateway/events"},
		{"migrations", "xabar/chat"}, {"gateway/auth", "github.com/redis/go-redis/v9"},
	} {
		if byFolder[forbidden[0]].allows(forbidden[1], !strings.Contains(forbidden[1], ".") && !strings.HasPrefix(forbidden[1], "xabar/")) {
			t.Errorf("%s may import %s", forbidden[0], forbidden[1])
		}
	}
}

// TestOnlyTracingKnowsOpenTelemetry keeps it behind chat.Tracer.
func TestOnlyTracingKnowsOpenTelemetry(t *testing.T) {
	for _, p := range list(t) {
		if !under(p.ImportPath, "xabar") || under(p.ImportPath, "xabar/internal/tracing") || under(p.ImportPath, "xabar/internal/testkit") {
			continue
		}
		for _, path := range p.Imports {
			if under(path, "go.opentelemetry.io") {
				t.Errorf("%s imports %s: it has chat.Tracer to record with", p.ImportPath, path)
			}
		}
	}
}

// TestTheBinaryShipsNoTestCode fails if a helper of tests is imported by accident.
func TestTheBinaryShipsNoTestCode(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "xabar/cmd/xabar").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if path == "testing" || path == "go.uber.org/goleak" || under(path, "xabar/internal/testkit") {
			t.Errorf("the binary contains %s", path)
		}
	}
}
