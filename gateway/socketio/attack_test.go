package socketio_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
)

// attackMoves are what a hostile or hasty client does, in any order.
var attackMoves = []string{
	`0`, `0/a,`, `0/b,{"x":1}`, `0/dyn-1,`, `0/dyn-2,`, `0/nope,`, `1`, `1/a,`, `1/dyn-1,`,
	`2["join","r1"]`, `2["join","r2"]`, `2/a,["join","r1"]`, `2["leave","r1"]`, `2["ask"]`, `2/a,7["ask"]`,
	`2["broadcast"]`, `2/dyn-1,["broadcast"]`, `30[]`, `31["x"]`, `3/a,0[]`, `2["slow"]`,
	`51-["x",{"_placeholder":true,"num":0}]`, `b:bin`, `2["panic"]`, `garbage`, `2[`, `2["bye"]`, `2["byebye"]`,
}

func attackServer(ns *socketio.Namespace) {
	ns.Handle("join", func(ev *socketio.Event) {
		var room string
		_ = ev.Arg(0).Decode(&room)
		_ = ev.Socket().Join(room, room+"-too")
	})
	ns.Handle("leave", func(ev *socketio.Event) { ev.Socket().Leave("r1") })
	ns.Handle("ask", func(ev *socketio.Event) {
		_ = ev.Ack("x")
		_ = ev.Socket().EmitAck("question", func(socketio.Args, error) {})
		_ = ev.Socket().Timeout(time.Millisecond).EmitAck("question", func(socketio.Args, error) {})
	})
	ns.Handle("broadcast", func(ev *socketio.Event) { _ = ns.To("r1", "r2").Except("r2-too").Emit("hello", []byte("bin")) })
	ns.Handle("slow", func(*socketio.Event) { time.Sleep(time.Millisecond) })
	ns.Handle("panic", func(*socketio.Event) { panic("attack") })
	ns.Handle("bye", func(ev *socketio.Event) { ev.Socket().Disconnect(false) })
	ns.Handle("byebye", func(ev *socketio.Event) { go ev.Socket().Disconnect(true) })
}

// attackTime is how long TestAttack goes on; ATTACK_TIME asks for more ("1m", as make attack does).
func attackTime(t *testing.T) time.Duration {
	v := os.Getenv("ATTACK_TIME")
	if v == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(v)
	must(t, err)
	return d
}

// attacked is a server under attack, with what its hooks have counted.
type attacked struct {
	io         *socketio.Server
	url        string
	namespaces []*socketio.Namespace
	dynamic    *socketio.ParentNamespace
	pending    atomic.Int64 // acknowledgements
	connected  atomic.Int64 // sockets
	joined     atomic.Int64 // sockets ever
	malformed  atomic.Int64 // packets
}

func newAttacked(t *testing.T) *attacked {
	a := &attacked{}
	a.io, a.url = start(t, socketio.Options{
		ConnectTimeout: 50 * time.Millisecond, MaxPendingAcks: 8, MaxAttachmentBytes: 1000,
		Options: engineio.Options{
			AllowEIO3: true, SendBudget: 100_000, MaxPayload: 20_000, UpgradeTimeout: 50 * time.Millisecond,
			PingInterval: 50 * time.Millisecond, PingTimeout: 5 * time.Second,
			BodyTimeout: 200 * time.Millisecond, CloseTimeout: 200 * time.Millisecond,
		},
		Hooks: socketio.Hooks{
			PendingAcks: func(d int) { a.pending.Add(int64(d)) },
			Connect:     func(string) { a.connected.Add(1); a.joined.Add(1) },
			Malformed:   func(error) { a.malformed.Add(1) },
			Disconnect:  func(string, string) { a.connected.Add(-1) },
		},
	})
	a.namespaces = []*socketio.Namespace{a.io.Namespace, a.io.Of("/a"), a.io.Of("/b")}
	for _, ns := range a.namespaces {
		attackServer(ns)
	}
	a.dynamic = a.io.OfPattern(regexp.MustCompile(`^/dyn-\d$`))
	a.dynamic.OnConnection(func(s *socketio.Socket) { _ = s.Join("r1") })
	a.dynamic.Handle("broadcast", func(ev *socketio.Event) { _ = ev.Socket().Namespace().Emit("hello") })
	return a
}

// administer joins, disconnects and asks whole rooms, except is the one to be left alone.
func (a *attacked) administer(ctx context.Context, except string) {
	for i := 0; ctx.Err() == nil; i++ {
		for _, ns := range a.namespaces[1:] {
			_ = ns.To("r1").SocketsJoin(fmt.Sprint("admin", i%3))
			_ = ns.To("r2").DisconnectSockets(i%2 == 0)
		}
		// The wait for answers that never come is what paces this.
		_, _ = a.io.Except(except).Timeout(3*time.Millisecond).EmitWithAck(ctx, "all")
	}
}

// assault attacks for d, with a bystander that is not disturbed.
func (a *attacked) assault(t *testing.T, d time.Duration) {
	bystander, s := joinSocket(t, a.io.Namespace, a.url)
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { a.administer(ctx, s.ID()) })
	for seed := range uint64(4) {
		wg.Go(func() {
			for rng := rand.New(rand.NewPCG(seed, 42)); ctx.Err() == nil; {
				attackByWebSocket(a.url, rng)
			}
		})
		wg.Go(func() {
			for rng := rand.New(rand.NewPCG(seed, 43)); ctx.Err() == nil; {
				attackByPolling(a.url, rng)
			}
		})
	}
	for ctx.Err() == nil {
		bystander.Sync()
	}
	wg.Wait()
	bystander.Sync()
	bystander.Drop()
	eventually(t, "all are gone", func() bool {
		return a.io.Engine().Sockets() == 0 && a.connected.Load() == 0 && a.pending.Load() == 0 && a.io.Deadlines() == 0
	})
}

// footprint is what the process has once garbage is gone.
func footprint() (goroutines int, heap uint64) {
	http.DefaultClient.CloseIdleConnections()
	for range 3 { // pools and finalizers take more than one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

// heapSlack is how much more heap there may be: what runtime and tests keep.
const heapSlack = 2 << 20

// Whatever clients do, and however it interleaves, nothing of them stays (no goroutine, memory, socket,
// room or timer), and who behaves is not disturbed. It does not run beside other tests, for they would
// be counted.
func TestAttack(t *testing.T) {
	a := newAttacked(t)
	a.assault(t, 500*time.Millisecond) // fills pools and caches
	eventually(t, "quiet", func() bool {
		n, _ := footprint()
		time.Sleep(10 * time.Millisecond)
		m, _ := footprint()
		return n == m
	})
	goroutines, heap := footprint()
	a.assault(t, attackTime(t))
	for _, ns := range a.namespaces {
		if ns.Len() != 0 || len(ns.Memory().Rooms()) != 0 {
			t.Errorf("%s: %d sockets and the rooms %v are left", ns.Name(), ns.Len(), ns.Memory().Rooms())
		}
	}
	if n := len(a.dynamic.Children()); n != 0 {
		t.Errorf("%d dynamic namespaces are left", n)
	}
	eventually(t, "goroutines at base", func() bool { n, _ := footprint(); return n <= goroutines })
	now, after := footprint()
	if after > heap+heapSlack {
		t.Errorf("heap of %d kB, %d kB before", after>>10, heap>>10)
	}
	if a.joined.Load() < 100 || a.malformed.Load() < 100 {
		t.Errorf("%d joins and %d malformed packets are no attack", a.joined.Load(), a.malformed.Load())
	}
	t.Logf("%d joins, %d malformed packets", a.joined.Load(), a.malformed.Load())
	t.Logf("goroutines %d before, %d after; heap %d kB before, %d kB after", goroutines, now, heap>>10, after>>10)
}

// attackByWebSocket does some moves on one connection and leaves.
func attackByWebSocket(url string, rng *rand.Rand) {
	var frames [][]byte
	if rng.IntN(4) > 0 {
		frames = append(frames, clientFrame("40"))
	}
	for range rng.IntN(30) {
		move := pick(rng)
		if data, binary := strings.CutPrefix(move, "b:"); binary {
			frames = append(frames, ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewBinaryFrame([]byte(data)))))
		} else {
			frames = append(frames, clientFrame("4"+move))
		}
	}
	if rng.IntN(3) == 0 {
		frames = append(frames, clientFrame("1"))
	}
	throw("ws"+strings.TrimPrefix(url, "http")+"/socket.io/?EIO=4&transport=websocket", frames, rng)
}

func clientFrame(text string) []byte {
	return ws.MustCompileFrame(ws.MaskFrameInPlace(ws.NewTextFrame([]byte(text))))
}

// throw opens a WebSocket, sends frames, at times all at once, reads a little or nothing, and hangs up.
func throw(url string, frames [][]byte, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), socketiotest.Wait)
	defer cancel()
	conn, br, _, err := ws.Dial(ctx, url)
	if err != nil {
		return
	}
	defer conn.Close()
	if br != nil {
		defer ws.PutReader(br)
	}
	if rng.IntN(2) == 0 {
		frames = [][]byte{slices.Concat(frames...)}
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	for _, f := range frames {
		if _, err := conn.Write(f); err != nil {
			return
		}
	}
	if rng.IntN(2) == 0 {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, conn, int64(rng.IntN(2000)))
	}
}

func pick(rng *rand.Rand) string { return attackMoves[rng.IntN(len(attackMoves))] }

// attackByPolling opens a session and sends overlapping requests, whose bodies hold many packets, and
// upgrades that stop halfway.
func attackByPolling(url string, rng *rand.Rand) {
	query := "/socket.io/?transport=polling&EIO=" + []string{"4", "4", "3"}[rng.IntN(3)]
	_, rest, found := strings.Cut(strings.ReplaceAll(ask(http.MethodGet, url+query, ""), `\`, ""), `"sid":"`)
	if !found {
		return
	}
	sid, _, _ := strings.Cut(rest, `"`)
	target := url + query + "&sid=" + sid
	var wg sync.WaitGroup
	for range 1 + rng.IntN(5) {
		switch rng.IntN(4) {
		case 0:
			wg.Go(func() { ask(http.MethodGet, target, "") })
		case 1, 2:
			body := attackBody(rng)
			wg.Go(func() { ask(http.MethodPost, target, body) })
		case 3:
			seed := rng.Uint64()
			wg.Go(func() { halfUpgrade(target, rand.New(rand.NewPCG(seed, 1))) })
		}
	}
	ask(http.MethodPost, target, "1") // so that no GET waits for the heartbeat
	wg.Wait()
}

// attackBody is a polling body: CONNECTs of several namespaces first, and more behind them.
func attackBody(rng *rand.Rand) string {
	packets := []string{"40", "40/a,", "40/dyn-1,"}[:rng.IntN(4)]
	for range rng.IntN(10) {
		move := pick(rng)
		if data, binary := strings.CutPrefix(move, "b:"); binary {
			packets = append(packets, "b"+base64.StdEncoding.EncodeToString([]byte(data)))
		} else {
			packets = append(packets, "4"+move)
		}
	}
	return strings.Join(packets, "\x1e")
}

// ask does a request and returns the answer's body, "" if there is none: who attacks does not mind.
func ask(method, url, body string) string {
	ctx, cancel := context.WithTimeout(context.Background(), socketiotest.Wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// halfUpgrade opens a WebSocket for a polling session and sends a few frames, right and wrong, maybe cut.
func halfUpgrade(target string, rng *rand.Rand) {
	moves := []string{"2probe", "2probe", "5", "5", "6", "40", "x", "4" + pick(rng), "4" + pick(rng)}
	var out []byte
	for range rng.IntN(6) {
		out = append(out, clientFrame(moves[rng.IntN(len(moves))])...)
	}
	if len(out) > 0 && rng.IntN(4) == 0 {
		out = out[:rng.IntN(len(out))]
	}
	url := strings.Replace(strings.Replace(target, "http:", "ws:", 1), "transport=polling", "transport=websocket", 1)
	throw(url, [][]byte{out}, rng)
}

// Many events, acknowledgements and disconnections leave no sink behind that was released.
func TestSinksAreForgotten(t *testing.T) {
	t.Parallel()
	io, url := start(t, socketio.Options{})
	_, s := joinSocket(t, io.Namespace, url)
	sink := sinkFunc(func(*socketio.Socket, socketio.Args) {})
	for range 100 {
		p, err := io.Prepare("m", sink)
		must(t, err)
		_, err = s.EmitPrepared(p)
		must(t, err)
		p.Release()
	}
	if n := io.SinkCount(); n != 0 {
		t.Errorf("%d sinks are left", n)
	}
}
