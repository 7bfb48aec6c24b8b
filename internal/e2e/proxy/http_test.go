package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// client is an HTTP client whose connections come from its own address.
func client(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{ExpectContinueTimeout: testkit.Patience, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// request returns the answer's status and body. headers are pairs.
func request(t *testing.T, c *http.Client, method, url string, body io.Reader, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(testkit.Context(t), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

const handshake = "/socket.io/?EIO=4&transport=polling"

var sidInOpen = regexp.MustCompile(`"sid":"([^"]+)"`)

// open begins a session and returns its id, "" if there is none.
func open(t *testing.T, c *http.Client, url string, headers ...string) string {
	t.Helper()
	status, body := request(t, c, http.MethodGet, url+handshake, nil, headers...)
	if found := sidInOpen.FindStringSubmatch(body); status == http.StatusOK && found != nil {
		return found[1]
	}
	return ""
}

// The node sees the client's address and not the proxy's, nor what the client claims.
func TestTheNodeSeesTheClientsAddress(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i, b := range balancers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			url, address := b.start(t, c.nodes), fmt.Sprint("127.0.0.", 20+i)
			user, from := c.nodes[0].Login(b.name), client(t, address)
			lies := []string{"X-Forwarded-For", "6.6.6.6"}
			sid := open(t, from, url, lies...)
			connect, err := json.Marshal(obj{"token": user.Token})
			if err != nil {
				t.Fatal(err)
			}
			status, body := request(t, from, http.MethodPost, url+handshake+"&sid="+sid, strings.NewReader("40"+string(connect)), lies...)
			if status != http.StatusOK {
				t.Fatalf("session %q: %d %s", sid, status, body)
			}
			key := []string{"Authorization", "Bearer " + serverKey}
			var sessions string
			eventually(t, "the user has a session", func() bool {
				_, sessions = request(t, from, http.MethodGet, url+"/admin/users/"+user.User.ID+"/sessions", nil, key...)
				return strings.Contains(sessions, `"address":`)
			})
			if !strings.Contains(sessions, fmt.Sprintf(`"address":%q`, address)) {
				t.Errorf("the client at %s has %s", address, sessions)
			}
		})
	}
}

// A body over the nodes' limit is refused before it reaches them; one of just that size is not.
func TestBodies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, b := range balancers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			url, from := b.start(t, c.nodes), client(t, "127.0.0.1")
			const limit = 1_000_000 // maxPayload
			post := func(size int) int {
				sid := open(t, from, url)
				// A refusal comes before the body; who sends it all the same may see the connection close first.
				status, _ := request(t, from, http.MethodPost, url+handshake+"&sid="+sid, bytes.NewReader(bytes.Repeat([]byte{'4'}, size)), "Expect", "100-continue")
				return status
			}
			if status := post(limit); status != http.StatusOK {
				t.Errorf("a body of %d bytes: %d", limit, status)
			}
			if status := post(limit + 1); status != http.StatusRequestEntityTooLarge {
				t.Errorf("a body of %d bytes: %d", limit+1, status)
			}
		})
	}
}
