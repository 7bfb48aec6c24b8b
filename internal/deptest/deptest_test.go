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

// rule is what the packages under Packages may import, themselves (not through
// others): the standard library, Allowed, and packages below any of these. Tests are free.
type rule struct {
	packages []string
	allowed  []string
	why      string
}

var rules = []rule{
	{
		packages: []string{"chat"},
		allowed:  []string{"github.com/google/uuid", "github.com/hashicorp/golang-lru/v2"},
		why:      "chat decides and does no I/O: whoever changes a rule needs to know no driver and no protocol",
	},
	{
		packages: []string{"gateway/engineio"},
		allowed: []string{
			"github.com/gobwas/ws", "github.com/gobwas/httphead", "github.com/klauspost/compress",
			"golang.org/x/sys", "golang.org/x/time",
		},
		why: "the transport knows nothing of Socket.IO and chat: others may import it",
	},
	{
		packages: []string{"gateway/socketio"},
		allowed:  []string{"xabar/gateway/engineio", "github.com/vmihailenco/msgpack/v5"},
		why:      "the Socket.IO server knows nothing of chat: others may import it",
	},
	{
		packages: []string{"rooms"},
		allowed: []string{
			"xabar/chat", "xabar/gateway/socketio",
			"github.com/redis/go-redis/v9", "github.com/vmihailenco/msgpack/v5", "github.com/google/uuid", "golang.org/x/sync",
		},
		why: "rooms implements the ports of chat and socketio and stores nothing",
	},
	{
		packages: []string{"migrations"},
		allowed:  []string{"github.com/golang-migrate/migrate/v4"},
		why:      "a schema depends on no code: what ran once must run the same for good",
	},
	{
		packages: []string{"persistence"},
		allowed: []string{
			"xabar/chat", "xabar/migrations", "github.com/google/uuid",
			"github.com/jackc/pgx/v5", "modernc.org/sqlite", "golang.org/x/sync", "pgregory.net/rapid",
		},
		why: "a store knows the domain and its database, and nothing of who asks",
	},
	{
		packages: []string{"gateway/events"},
		allowed:  []string{"xabar/chat", "xabar/gateway/socketio", "github.com/google/uuid", "golang.org/x/time", "golang.org/x/sync"},
		why:      "the chat events reach storage and other nodes only through chat's ports",
	},
	{
		packages: []string{"gateway/httpapi"},
		allowed:  []string{"xabar/chat", "github.com/labstack/echo/v4", "github.com/prometheus/client_golang", "github.com/google/uuid", "golang.org/x/time"},
		why:      "the HTTP door calls the same Service as the other one, and decides nothing",
	},
	{
		packages: []string{"gateway/auth"},
		allowed: []string{
			"xabar/chat", "github.com/golang-jwt/jwt/v5", "github.com/MicahParks/jwkset",
			"github.com/hashicorp/golang-lru/v2", "golang.org/x/time",
		},
		why: "who a token speaks for is decided without knowing how it came",
	},
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

func under(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// testOnly packages serve tests of others and may use what tests use.
func testOnly(path string) bool {
	last := path[strings.LastIndex(path, "/")+1:]
	return strings.HasSuffix(last, "test") || under(path, "xabar/internal/testkit")
}

func TestWhoImportsWhom(t *testing.T) {
	packages := list(t)
	standard := map[string]bool{"C": true}
	for _, p := range packages {
		if p.Standard {
			standard[p.ImportPath] = true
		}
	}
	met := make(map[int]bool)
	for _, p := range packages {
		for i, r := range rules {
			inside := func(path string) bool {
				return slices.ContainsFunc(r.packages, func(name string) bool { return under(path, "xabar/"+name) })
			}
			if !inside(p.ImportPath) || testOnly(p.ImportPath) {
				continue
			}
			met[i] = true
			for _, imported := range p.Imports {
				allowed := slices.ContainsFunc(r.allowed, func(path string) bool { return under(imported, path) })
				if !standard[imported] && !inside(imported) && !allowed {
					t.Errorf("%s imports %s.\n%s.\nIf that has changed, change the rule here.", p.ImportPath, imported, r.why)
				}
			}
		}
	}
	for i, r := range rules {
		if !met[i] {
			t.Errorf("no package is under %v: the rule protects nothing", r.packages)
		}
	}
}

// TestTheBinaryShipsNoTestCode would fail if a helper of tests were imported by accident.
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
