package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"xabar/chat"
	"xabar/gateway/events"
	"xabar/internal/testkit"
	"xabar/internal/testkit/lightclient"
	"xabar/internal/testkit/pgtest"
	"xabar/internal/testkit/redistest"
)

var updateMetrics = flag.Bool("update-metrics", false, "write the tables of docs/metrics.md")

// runApp runs a node in this process until the test ends.
func runApp(t *testing.T, args ...string) *App {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	app, err := NewApp(ctx, appConfig(t, args...), slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the node ended with %v", err)
		}
	})
	return app
}

// measuredNode is a node with everything that has metrics switched on; alone is one with
// SQLite and without Redis.
func measuredNode(t *testing.T, alone bool) *App {
	t.Helper()
	if alone {
		return runApp(t)
	}
	return runApp(t, "--database-url", pgtest.Database(t), "--redis-url", redistest.Start(t).URL, "--limit-events", "20/s:40")
}

// traffic lets two users talk: messages, receipts, history, an event that nobody knows, more
// events than a limit lets through, a token that is no good.
func traffic(t *testing.T, app *App) {
	t.Helper()
	ctx := testkit.Context(t)
	users := map[string]chat.User{}
	clients := map[string]*lightclient.Client{}
	for _, name := range []string{"ada", "bob"} {
		user, err := app.store.AddDemoUser(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		code, token, stderr := xabar(t, "token", user.ID.String(), "--data-dir", app.cfg.DataDir)
		if code != 0 {
			t.Fatal(stderr)
		}
		client, err := lightclient.Dial(ctx, lightclient.Options{
			URL: app.Addresses().Public, Auth: map[string]any{"token": strings.TrimSpace(token), "sync": true},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		users[name], clients[name] = user, client
	}
	if _, err := lightclient.Dial(ctx, lightclient.Options{URL: app.Addresses().Public, Auth: map[string]any{"token": "x"}}); err == nil {
		t.Error("a token that is none lets in")
	}
	ask := func(event string, payload any) string {
		var answer struct {
			Message struct{ ConversationID string }
		}
		if err := clients["ada"].Ask(ctx, event, payload, &answer); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		return answer.Message.ConversationID
	}
	conversation := ""
	for n := range 5 {
		conversation = ask("message:send", map[string]any{"toUserId": users["bob"].ID, "clientMsgId": fmt.Sprint(n), "text": "salam"})
	}
	for range 30 {
		ask("history", map[string]any{"conversationId": conversation})
		ask("an:event:that:clients:made:up", nil)
	}
	response, err := http.Get(app.Addresses().Public + "/me")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "a message was acknowledged", func() bool {
		return value(t, app, "xabar_acks_total", "outcome=in_time") >= 5
	})
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); !check(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", testkit.Patience, what)
		}
	}
}

// family is a metric as it was scraped.
type family struct {
	kind   string
	labels map[string]map[string]bool // label -> its values
	values map[string]float64         // "a=b,c=d" -> value; a histogram's is its count
}

// gather scrapes the node, as its admin address does.
func gather(t *testing.T, app *App) map[string]*family {
	t.Helper()
	scraped, err := app.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]*family{}
	for _, one := range scraped {
		f := &family{strings.ToLower(one.GetType().String()), map[string]map[string]bool{}, map[string]float64{}}
		families[one.GetName()] = f
		for _, m := range one.GetMetric() {
			var pairs []string
			for _, l := range m.GetLabel() {
				if f.labels[l.GetName()] == nil {
					f.labels[l.GetName()] = map[string]bool{}
				}
				f.labels[l.GetName()][l.GetValue()] = true
				pairs = append(pairs, l.GetName()+"="+l.GetValue())
			}
			f.values[strings.Join(pairs, ",")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return families
}

// value is that of one series; 0 if there is none.
func value(t *testing.T, app *App, name, labels string) float64 {
	t.Helper()
	f := gather(t, app)[name]
	if f == nil {
		t.Fatalf("there is no %s", name)
	}
	return f.values[labels]
}

// TestMetrics drives a node and looks at what it says: alone, and with everything that it
// can be connected to.
func TestMetrics(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "with PostgreSQL and Redis": false} {
		t.Run(name, func(t *testing.T) {
			app := measuredNode(t, alone)
			traffic(t, app)
			families := gather(t, app)
			checkDefinitions(t, app.registry.defined, families)
			checkEvents(t, app, families, alone)
			checkNames(t, app)
			checkQueries(t, families, alone)
			if !alone {
				checkReference(t, app.registry.defined)
			}
		})
	}
}

// checkDefinitions: what is served is what was defined, and the other way round.
func checkDefinitions(t *testing.T, defined []definition, families map[string]*family) {
	t.Helper()
	known := map[string]bool{}
	for _, d := range defined {
		if known[d.name] {
			t.Errorf("%s is defined twice", d.name)
		}
		known[d.name] = true
		f := families[d.name]
		if f == nil {
			if len(d.labels) == 0 {
				t.Errorf("%s is defined, and not served", d.name)
			}
			continue // nothing of it has happened
		}
		labels := make([]string, 0, len(f.labels))
		for label := range f.labels {
			labels = append(labels, label)
		}
		want := slices.Sorted(slices.Values(d.labels))
		if slices.Sort(labels); f.kind != d.kind || !slices.Equal(labels, want) {
			t.Errorf("%s: a %s with %v is defined, a %s with %v served", d.name, d.kind, want, f.kind, labels)
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "xabar_") && !known[name] {
			t.Errorf("%s is served, and not defined", name)
		}
	}
}

// checkEvents: the traffic is counted, and names that clients make up are no labels.
func checkEvents(t *testing.T, app *App, families map[string]*family, alone bool) {
	t.Helper()
	for name, labels := range map[string]string{
		"xabar_events_total":            "event=message:send,outcome=ok",
		"xabar_event_duration_seconds":  "event=message:send",
		"xabar_fanout_duration_seconds": "", "xabar_fanout_sockets": "", "xabar_send_check_seconds": "", "xabar_ack_duration_seconds": "",
	} {
		if n := families[name].values[labels]; n != 5 {
			t.Errorf("%s{%s} is %v after 5 messages", name, labels, n)
		}
	}
	queue := "queue=send"
	if alone {
		queue = "queue=write"
	}
	for _, name := range []string{"xabar_store_queue_wait_seconds", "xabar_store_batch_requests", "xabar_store_batch_duration_seconds"} {
		if n := families[name].values[queue]; n < 5 {
			t.Errorf("%s{%s} is %v after 5 messages", name, queue, n)
		}
	}
	seen := families["xabar_events_total"].labels["event"]
	if seen["an:event:that:clients:made:up"] || !seen[events.OtherEvents] || len(seen) != 14 {
		t.Errorf("events are counted by %v", seen)
	}
	unknown := families["xabar_events_total"].values["event=other,outcome=unknown_event"]
	limited := families["xabar_rate_limited_total"].values["limit=events"]
	if alone && (unknown != 30 || limited != 0) || !alone && (unknown == 0 || limited == 0 || unknown >= 30) {
		t.Errorf("%v events that nobody knows, %v refused by the limit", unknown, limited)
	}
	for series, want := range map[[2]string]float64{
		{"xabar_connections", "transport=websocket"}:            2,
		{"xabar_sockets", ""}:                                   2,
		{"xabar_users", ""}:                                     2,
		{"xabar_sockets_refused_total", "code=unauthenticated"}: 1,
		{"xabar_http_requests_total", "code=401,method=get"}:    1,
		{"xabar_store_up", ""}:                                  1,
	} {
		if got := value(t, app, series[0], series[1]); got != want {
			t.Errorf("%s{%s} is %v, not %v", series[0], series[1], got, want)
		}
	}
}

// checkNames asks Prometheus' own linter about what the admin address serves.
func checkNames(t *testing.T, app *App) {
	t.Helper()
	response, err := http.Get(app.Addresses().Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	problems, err := promlint.New(response.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// checkReference compares the tables of docs/metrics.md with the code. With -update-metrics
// it writes them.
func checkReference(t *testing.T, defined []definition) {
	t.Helper()
	path := filepath.Join(testkit.Root(), "docs", "metrics.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	updated := string(text)
	for _, part := range []string{
		partProcess, partConnections, partEvents, partDelivery, partQueues, partDatabase, partCluster, partNotifications, partHTTP,
	} {
		head, rest, found := strings.Cut(updated, "\n## "+part+"\n")
		_, after, ended := strings.Cut(rest, "<!-- end of table -->")
		intro, _, begun := strings.Cut(rest, "<!-- table -->\n")
		if !found || !ended || !begun {
			t.Fatalf("docs/metrics.md has no part %q with a table", part)
		}
		updated = head + "\n## " + part + "\n" + intro + "<!-- table -->\n" + referenceTable(defined, part) + "<!-- end of table -->" + after
	}
	if updated == string(text) {
		return
	}
	if !*updateMetrics {
		t.Fatal("docs/metrics.md does not say what the code does: go test ./cmd/xabar -run TestMetrics -update-metrics writes its tables")
	}
	if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
		t.Fatal(err)
	}
}

func referenceTable(defined []definition, part string) string {
	var table strings.Builder
	table.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range defined {
		if d.part != part {
			continue
		}
		labels := ""
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", d.name, d.kind, labels, d.help)
	}
	return table.String()
}

// TestMetricsOfAMessageAllocateNothing: what is counted for a message costs no memory.
func TestMetricsOfAMessageAllocateNothing(t *testing.T) {
	count := metricsOfAMessage()
	if n := testing.AllocsPerRun(1000, count); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// BenchmarkMetricsOfAMessage is everything that is counted for a direct message: its
// event, answer, batch, fan-out, and the recipient's acknowledgement and position.
func BenchmarkMetricsOfAMessage(b *testing.B) {
	count := metricsOfAMessage()
	b.ReportAllocs()
	for b.Loop() {
		count()
	}
}

// metricsOfAMessage gives what counts a direct message in a batch of its own: the most
// that one can cost.
func metricsOfAMessage() func() {
	r := newRegistry()
	limited, panics := newRefusalMetrics(r)
	engine, hooks, hub := newEngineMetrics(r, limited, panics), newSocketHooks(r, panics), newEventMetrics(r, limited)
	observe := newBatchMetrics(r)
	sends, positions, outbox := observe("send"), observe("position"), observe("outbox")
	event := hub.Event("message:send")
	return func() {
		engine.Received(200)
		if hooks.EventIn != nil {
			hooks.EventIn("/", "message:send")
		}
		hub.Checked(20 * time.Microsecond)
		for _, queue := range []interface {
			Waited(time.Duration)
			Ran(int, time.Duration)
		}{sends, positions, outbox} {
			queue.Waited(time.Millisecond)
			queue.Ran(1, 2*time.Millisecond)
		}
		event.Answered("", 3*time.Millisecond)
		engine.Sent(300)
		hub.FannedOut(1)
		hub.Shown(50 * time.Microsecond)
		engine.Sent(300)
		engine.Received(10)
		hub.Acknowledged(time.Millisecond)
		hub.Acks(1, 0, 0)
	}
}
