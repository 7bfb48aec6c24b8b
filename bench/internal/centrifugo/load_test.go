//go:build linux

package centrifugo

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toy speaks as much of Centrifugo's protocol as the load needs, right but for its fault, which the first
// member feels.
type toy struct {
	fault string

	mu      sync.Mutex // guards what follows, and is held while messages go out
	members []net.Conn
	count   int
	held    string
}

type command struct {
	ID        int64
	Subscribe *struct{ Channel string }
	Publish   *struct{ Data json.RawMessage }
}

func (s *toy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		frame, err := wsutil.ReadClientText(conn)
		if err != nil {
			return
		}
		for line := range strings.SplitSeq(string(frame), "\n") {
			var c command
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				return
			}
			s.handle(conn, &c)
		}
	}
}

func (s *toy) handle(conn net.Conn, c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Subscribe != nil {
		s.members = append(s.members, conn)
	}
	if c.Publish != nil && s.fault == "refuses" && s.count == 3 {
		s.count++
		s.write(conn, fmt.Sprintf(`{"id":%d,"error":{"code":100,"message":"internal server error"}}`, c.ID))
		return
	}
	s.write(conn, fmt.Sprintf(`{"id":%d,"answer":{}}`, c.ID))
	if c.Publish == nil {
		return
	}
	push := `{"push":{"channel":"group","pub":{"data":` + string(c.Publish.Data) +
		`,"info":{"user":"","client":"` + strings.Repeat("c", 36) + `"}}}}`
	for i, member := range s.members {
		for _, text := range s.faulty(i, push) {
			s.write(member, text)
		}
	}
	s.count++
}

// faulty is what a member gets instead of a push.
func (s *toy) faulty(member int, push string) []string {
	switch {
	case s.fault == "is mute":
		return nil
	case member > 0:
		return []string{push}
	case s.fault == "loses" && s.count == 3, s.fault == "reorders" && s.count == 3:
		s.held = push
		return nil
	case s.fault == "reorders" && s.count == 4:
		return []string{push, s.held}
	case s.fault == "doubles" && s.count == 3:
		return []string{push + "\n" + push} // Centrifugo joins what waits
	}
	return []string{push}
}

func (s *toy) write(conn net.Conn, text string) {
	_ = wsutil.WriteServerText(conn, []byte(text)) // a connection that has ended is its reader's matter
}

func TestWhatTheServerDoesWrongIsFound(t *testing.T) {
	for fault, kinds := range map[string][]string{
		"":         nil,
		"loses":    {"lost"},
		"reorders": {"out of order"},
		"doubles":  {"doubled"},
		"refuses":  {"refused"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&toy{fault: fault})
			defer server.Close()
			result, err := Run(t.Context(), Options{
				URL: server.URL, PID: os.Getpid(), Clients: 5, Window: 2, Size: 375,
				Duration: 200 * time.Millisecond, Settle: 100 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range result.Faults {
				found = append(found, f.Kind)
			}
			if slices.Sort(found); !slices.Equal(found, kinds) {
				t.Errorf("faults %+v, wanted %q", result.Faults, kinds)
			}
			answered, received := result.Latency["answered"].Count, result.Latency["received"].Count
			if fault == "" && (answered < 10 || received != 4*answered) {
				t.Errorf("%d answered, %d received by 4 members", answered, received)
			}
		})
	}
}

func TestARunWithoutMessagesIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&toy{fault: "is mute"})
	defer server.Close()
	_, err := Run(t.Context(), Options{
		URL: server.URL, PID: os.Getpid(), Clients: 2, Window: 1, Size: 375,
		Duration: 50 * time.Millisecond, Settle: 50 * time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), "no message was received") {
		t.Errorf("error %v", err)
	}
}
