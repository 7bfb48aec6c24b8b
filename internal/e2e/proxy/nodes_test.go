package proxy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

const (
	jwtSecret = "a secret of at least thirty-two bytes"
	serverKey = "the-server-key-of-this-test"
)

// cluster is two nodes, xabar-1 and xabar-2, and the clients that use them.
type cluster struct {
	t     *testing.T
	nodes []*testkit.Gateway
	js    *testkit.JS
}

// newCluster starts the nodes on two addresses, as on two machines, with the same ports.
func newCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, js: testkit.NewJS(t)}
	database, redis := pgtest.Database(t), redistest.Start(t).URL
	port, adminPort := freePort(t), freePort(t)
	for i := range 2 {
		host := fmt.Sprintf("127.0.0.%d", i+1)
		c.nodes = append(c.nodes, testkit.StartGateway(t, testkit.GatewayOptions{Args: append([]string{
			"--listen", net.JoinHostPort(host, port), "--admin-listen", net.JoinHostPort(host, adminPort), "--node-name", nodeName(i),
			"--database-url", database, "--redis-url", redis, "--jwt-secret", jwtSecret, "--server-key", serverKey,
			"--trusted-proxies", "127.0.0.1", "--allow-eio3",
		}, args...)}))
	}
	for _, node := range c.nodes {
		ready(t, node)
	}
	return c
}

func nodeName(i int) string { return fmt.Sprint("xabar-", i+1) }

func ready(t *testing.T, node *testkit.Gateway) {
	t.Helper()
	eventually(t, node.AdminURL+" is ready", func() bool {
		status, body := node.Get("/readyz")
		return status == http.StatusOK && strings.Contains(body, `"status":"ok"`)
	})
}

// page is a connected official client of a user.
type page struct {
	*testkit.Client
	t    *testing.T
	user testkit.DemoUser
	node string // the name of the node that it is connected to
}

func (c *cluster) page(t *testing.T, url, name string, opts testkit.ClientOptions) *page {
	t.Helper()
	user := c.nodes[0].Login(name)
	opts.URL, opts.Token = url, user.Token
	if opts.Version == 2 { // it has no auth
		opts.Options = map[string]any{"extraHeaders": obj{"Authorization": "Bearer " + user.Token}}
	}
	p := &page{Client: c.js.Connected(t, opts), t: t, user: user}
	ctx := testkit.Context(t)
	if _, err := p.WaitFor(ctx, "session", nil); err != nil {
		t.Fatal(err)
	}
	state, err := p.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.node, _, _ = strings.Cut(state.EngineID, ".")
	if p.node != nodeName(0) && p.node != nodeName(1) {
		t.Fatalf("the session %q names no node", state.EngineID)
	}
	return p
}

// apart connects two users that are on different nodes. The proxy chooses: who is at the wrong node stays, and
// so makes the other one the better choice for the next.
func (c *cluster) apart(t *testing.T, url, name string, opts testkit.ClientOptions) (a, b *page) {
	t.Helper()
	a = c.page(t, url, name+" A", opts)
	for i := range 10 {
		if b = c.page(t, url, fmt.Sprint(name, " B", i), opts); b.node != a.node {
			return a, b
		}
	}
	t.Fatalf("11 connections are all at %s", a.node)
	return nil, nil
}

// reply is an answer of the gateway.
type reply struct {
	OK      bool            `json:"ok"`
	Error   json.RawMessage `json:"error"`
	Message struct {
		ConversationID string `json:"conversationId"`
		Seq            int64  `json:"seq"`
	} `json:"message"`
	Messages []json.RawMessage `json:"messages"`
}

type obj = map[string]any

// must emits and takes success for an answer.
func (p *page) must(event string, payload any) (r reply) {
	p.t.Helper()
	raw, err := p.Emit(testkit.Context(p.t), event, payload)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil || !r.OK {
		p.t.Fatalf("%s %v: %s %v", event, payload, raw, err)
	}
	return r
}

// hears waits for a message with this seq.
func (p *page) hears(seq int64) {
	p.t.Helper()
	p.hearsSeq("message", seq)
}

func (p *page) hearsSeq(event string, seq int64) {
	p.t.Helper()
	_, err := p.WaitFor(testkit.Context(p.t), event, func(h testkit.Heard) bool {
		return testkit.Decode[struct{ Seq int64 }](h).Seq == seq
	})
	if err != nil {
		p.t.Fatal(err)
	}
}
