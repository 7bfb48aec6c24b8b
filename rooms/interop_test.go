package rooms_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/engineio"
	"xabar/gateway/socketio"
	"xabar/gateway/socketio/socketiotest"
	"xabar/internal/testkit/redistest"
)

// mixed is a Node server and one of ours on the same Redis.
type mixed struct {
	redis   *redistest.Server
	key     string
	sharded bool
	peer    *peer
	io      *socketio.Server
	url     string
	heard   chan string // "hello" of other servers
}

func startMixed(t *testing.T, redis *redistest.Server, sharded bool) *mixed {
	opts := isolated()
	opts.Sharded = sharded
	r := open(t, redis.URL, opts)
	m := &mixed{redis: redis, key: opts.Key, sharded: sharded, heard: make(chan string, 16)}
	m.io = socketio.NewServer(socketio.Options{
		Options: engineio.Options{Logger: slog.New(slog.DiscardHandler)}, Adapter: r.Adapters(),
	})
	m.io.OnServerSide("hello", func(args socketio.Args, _ func(...any) error) {
		m.heard <- string(args.Arg(0).Raw())
	})
	m.io.OnServerSide("question", func(args socketio.Args, ack func(...any) error) {
		if err := ack([]any{"go answers", args.Arg(0).Raw()}); err != nil {
			t.Error(err)
		}
	})
	run(t, r)
	m.url = socketiotest.Start(t, m.io)
	m.peer = startPeer(t, op{"url": redis.URL, "sharded": sharded, "key": opts.Key})
	healthy(t, r)
	eventually(t, "the servers know each other", func() bool {
		n, err := m.io.Adapter().ServerCount(t.Context())
		var there int
		m.peer.do(op{"op": "count"}, &there)
		return err == nil && n == 2 && there == 2
	})
	return m
}

// side is where something is sent from.
type side interface {
	emit(rooms, except []string, event string, args ...any)
	join(rooms []string, room string)
	leave(rooms []string, room string)
	disconnect(rooms []string, close bool)
	serverSide(event string, arg any)
}

// asking is a side that takes answers.
type asking interface {
	side
	emitAck(rooms []string, event string) func() []string
	fetch(rooms []string) []string
	serverSideAck(event string, arg any) string
}

type goSide struct {
	t  *testing.T
	io *socketio.Server
}

func (s goSide) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s goSide) emit(rooms, except []string, event string, args ...any) {
	s.t.Helper()
	s.ok(s.io.To(rooms...).Except(except...).Emit(event, args...))
}
func (s goSide) join(rooms []string, room string)  { s.ok(s.io.To(rooms...).SocketsJoin(room)) }
func (s goSide) leave(rooms []string, room string) { s.ok(s.io.To(rooms...).SocketsLeave(room)) }
func (s goSide) disconnect(rooms []string, close bool) {
	s.ok(s.io.To(rooms...).DisconnectSockets(close))
}
func (s goSide) serverSide(event string, arg any) { s.ok(s.io.ServerSideEmit(event, arg)) }

func (s goSide) emitAck(rooms []string, event string) func() []string {
	type result struct {
		all []socketio.Args
		err error
	}
	done := make(chan result, 1)
	go func() {
		all, err := s.io.To(rooms...).Timeout(10*time.Second).EmitWithAck(s.t.Context(), event)
		done <- result{all, err}
	}()
	return func() []string {
		r := <-done
		s.ok(r.err)
		var list []string
		for _, a := range r.all {
			list = append(list, string(a.Arg(0).Raw()))
		}
		return list
	}
}

func (s goSide) fetch(rooms []string) []string {
	found, err := s.io.To(rooms...).FetchSockets(s.t.Context())
	s.ok(err)
	var list []string
	for _, f := range found {
		slices.Sort(f.Rooms)
		var hs struct{ Query map[string]string }
		s.ok(json.Unmarshal(f.Handshake, &hs))
		list = append(list, fmt.Sprint(f.ID, f.Rooms, string(f.Data), hs.Query["EIO"]))
	}
	return list
}

func (s goSide) serverSideAck(event string, arg any) string {
	all, err := s.io.ServerSideEmitWithAck(s.t.Context(), event, arg)
	s.ok(err)
	if len(all) != 1 {
		s.t.Fatalf("%d answers", len(all))
	}
	return string(all[0].Arg(0).Raw())
}

// nodeSide is the Node server, or the emitter in its process.
type nodeSide struct {
	p       *peer
	emitter bool
}

func (s nodeSide) op(name string, rooms []string, more op) op {
	more["op"], more["rooms"], more["emitter"] = name, rooms, s.emitter
	return more
}

func (s nodeSide) emit(rooms, except []string, event string, args ...any) {
	packed := make([]any, len(args))
	for i, a := range args {
		packed[i] = a
		if b, ok := a.([]byte); ok {
			packed[i] = op{"$bin": base64.StdEncoding.EncodeToString(b)}
		}
	}
	s.p.do(s.op("emit", rooms, op{"except": except, "event": event, "args": packed}), nil)
}
func (s nodeSide) join(rooms []string, room string) {
	s.p.do(s.op("join", rooms, op{"join": room}), nil)
}
func (s nodeSide) leave(rooms []string, room string) {
	s.p.do(s.op("leave", rooms, op{"leave": room}), nil)
}
func (s nodeSide) disconnect(rooms []string, close bool) {
	s.p.do(s.op("disconnect", rooms, op{"close": close}), nil)
}
func (s nodeSide) serverSide(event string, arg any) {
	s.p.do(s.op("serverSide", nil, op{"event": event, "args": []any{arg}}), nil)
}

func (s nodeSide) emitAck(rooms []string, event string) func() []string {
	answer := s.p.begin(s.op("emitAck", rooms, op{"event": event, "timeout": 10_000}))
	return func() []string {
		line := <-answer
		var all []json.RawMessage
		if err := json.Unmarshal(line.Result, &all); err != nil || line.Error != "" {
			s.p.t.Fatalf("%s %v", line.Error, err)
		}
		var list []string
		for _, a := range all {
			list = append(list, string(a))
		}
		return list
	}
}

func (s nodeSide) fetch(rooms []string) []string {
	var found []struct {
		ID    string
		Rooms []string
		Data  json.RawMessage
		Query map[string]string
	}
	s.p.do(s.op("fetch", rooms, op{}), &found)
	var list []string
	for _, f := range found {
		slices.Sort(f.Rooms)
		list = append(list, fmt.Sprint(f.ID, f.Rooms, string(f.Data), f.Query["EIO"]))
	}
	return list
}

func (s nodeSide) serverSideAck(event string, arg any) string {
	var all []json.RawMessage
	s.p.do(s.op("serverSideAck", nil, op{"event": event, "args": []any{arg}}), &all)
	if len(all) != 1 {
		s.p.t.Fatalf("%d answers", len(all))
	}
	return string(all[0])
}

// table is one case's clients: two on each server, in rooms a and b of its own.
type table struct {
	*testing.T
	m    *mixed
	from side
	a, b string // rooms
	all  []*guest
}

type guest struct {
	*socketiotest.Client
	id    string
	rooms []string
	node  bool
}

var tables atomic.Int64

func (m *mixed) table(t *testing.T, from side) *table {
	n := tables.Add(1)
	c := &table{T: t, m: m, from: from, a: fmt.Sprint("a", n), b: fmt.Sprint("b", n)}
	for _, node := range []bool{true, false} {
		c.all = append(c.all, c.guest(node, c.a), c.guest(node, c.a, c.b))
	}
	return c
}

// guest connects a client and returns when what is sent to its rooms gets there.
func (c *table) guest(node bool, rooms ...string) *guest {
	c.Helper()
	url := c.m.url
	if node {
		url = c.m.peer.url
	}
	g := &guest{Client: socketiotest.Dial(c, url, socketiotest.Options{}), rooms: rooms, node: node}
	g.id = g.Connect("/", "")
	if node {
		list, err := json.Marshal([]any{"join", rooms})
		if err != nil {
			c.Fatal(err)
		}
		g.Send("2" + string(list))
		g.Expect(`2["joined"]`)
	} else {
		s := c.m.io.Socket(g.id)
		s.SetData(map[string]string{"user": "go"})
		if err := s.Join(rooms...); err != nil {
			c.Fatal(err)
		}
	}
	for _, room := range rooms {
		c.subscribed(room, node)
	}
	return g
}

// subscribed waits until a room's channel is heard. (Node's classic adapter always does.)
func (c *table) subscribed(room string, node bool) {
	c.Helper()
	command := "NUMSUB"
	if c.m.sharded {
		command = "SHARDNUMSUB"
	} else if node {
		return
	}
	channel := c.m.key + "#/#" + room + "#"
	want := int64(1)
	if c.m.sharded && !node {
		want = 2 // Node's client in this room came first
	}
	c.m.redis.Eventually(channel+" is heard", func() bool {
		answer, ok := c.m.redis.Do("PUBSUB", command, channel).([]any)
		return ok && len(answer) == 2 && answer[1].(int64) >= want
	})
}

// expect has every client in one of rooms get packet next.
func (c *table) expect(packet string, rooms ...string) {
	c.Helper()
	for _, g := range c.all {
		if slices.ContainsFunc(rooms, func(r string) bool { return slices.Contains(g.rooms, r) }) {
			g.Expect(packet)
		}
	}
}

// settle: nobody has got anything else.
func (c *table) settle() {
	c.Helper()
	for _, g := range c.all {
		c.from.emit([]string{g.id}, nil, "settle")
		g.Expect(`2["settle"]`)
	}
}

// interopCases are what every side must be able to do to clients of both servers.
var interopCases = []struct {
	name string
	run  func(c *table)
}{
	{"a room", func(c *table) {
		c.from.emit([]string{c.b}, nil, "e", 1, "é", map[string]any{"x": nil, "y": 1.5, "z": []int{1, -2}})
		c.expect(`2["e",1,"é",{"x":null,"y":1.5,"z":[1,-2]}]`, c.b)
	}},
	{"several rooms, each client once", func(c *table) {
		c.from.emit([]string{c.a, c.b}, nil, "e")
		c.expect(`2["e"]`, c.a, c.b)
	}},
	{"everybody", func(c *table) {
		c.from.emit(nil, nil, "e")
		c.expect(`2["e"]`, c.a, c.b)
	}},
	{"except a room", func(c *table) {
		c.from.emit([]string{c.a}, []string{c.b}, "e")
		for _, g := range c.all {
			if !slices.Contains(g.rooms, c.b) {
				g.Expect(`2["e"]`)
			}
		}
	}},
	{"binary", func(c *table) {
		c.from.emit([]string{c.a}, nil, "e", []byte{0, 255}, "x")
		for _, g := range c.all {
			g.Expect(`51-["e",{"_placeholder":true,"num":0},"x"]`)
			g.ExpectBinary([]byte{0, 255})
		}
	}},
	{"joining and leaving", func(c *table) {
		room := "new " + c.a
		c.from.join([]string{c.a}, room)
		c.all[2].joined(c, room, true)
		if c.m.sharded {
			c.m.redis.Eventually("Node hears it", func() bool {
				answer := c.m.redis.Do("PUBSUB", "SHARDNUMSUB", c.m.key+"#/#"+room+"#").([]any)
				return answer[1].(int64) == 2
			})
		} else {
			c.subscribed(room, false)
		}
		c.from.emit([]string{room}, nil, "e")
		c.expect(`2["e"]`, c.a)
		c.from.leave([]string{c.b}, room)
		c.all[3].joined(c, room, false)
		c.from.emit([]string{room}, nil, "e")
		for _, g := range c.all {
			if !slices.Contains(g.rooms, c.b) {
				g.Expect(`2["e"]`)
			}
		}
	}},
	{"disconnecting", func(c *table) {
		c.from.disconnect([]string{c.b}, false)
		for _, g := range []*guest{c.all[1], c.all[3]} {
			g.Expect("1")
		}
		c.from.disconnect([]string{c.a}, true)
		for _, g := range []*guest{c.all[0], c.all[2]} {
			g.ExpectClose()
		}
		c.all = nil
	}},
	{"server side", func(c *table) {
		c.from.serverSide("hello", "é")
		_, go2 := c.from.(goSide)
		if n, ok := c.from.(nodeSide); !ok || n.emitter {
			line := <-c.m.peer.heard
			if line.Event != "hello" || string(line.Args[0]) != `"é"` {
				c.Errorf("Node heard %s", line.Args)
			}
		}
		if !go2 {
			if got := <-c.m.heard; got != `"é"` {
				c.Errorf("heard %s", got)
			}
		}
	}},
}

// joined waits until a client's socket on our server is in a room, or is not.
func (g *guest) joined(c *table, room string, in bool) {
	c.Helper()
	eventually(c, "the socket is in its room, or left it", func() bool {
		return slices.Contains(c.m.io.Socket(g.id).Rooms(), room) == in
	})
}

// askingCases are for sides that take answers: both servers, but not the emitter.
var askingCases = []struct {
	name string
	run  func(c *table, from asking)
}{
	{"acknowledgements", func(c *table, from asking) {
		answers := from.emitAck([]string{c.a}, "q")
		for i, g := range c.all {
			packet := g.Next()
			id, ok := strings.CutSuffix(strings.TrimPrefix(packet, "42"), `["q"]`)
			if !ok {
				c.Fatalf("got %q, want a question", packet)
			}
			g.Send(fmt.Sprintf(`3%s[{"n":%d},"only the first counts"]`, id, i))
		}
		got := answers()
		slices.Sort(got)
		if want := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`}; !slices.Equal(got, want) {
			c.Errorf("answers %v", got)
		}
	}},
	{"fetchSockets", func(c *table, from asking) {
		got := from.fetch([]string{c.b})
		var want []string
		for _, g := range c.all {
			if slices.Contains(g.rooms, c.b) {
				in := append([]string{g.id}, g.rooms...)
				slices.Sort(in)
				user := map[bool]string{true: "node", false: "go"}[g.node]
				want = append(want, fmt.Sprint(g.id, in, fmt.Sprintf(`{"user":%q}`, user), "4"))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			c.Errorf("fetched %v\nwant %v", got, want)
		}
	}},
	{"server side with acknowledgement", func(c *table, from asking) {
		want := `["go answers",7]`
		if _, ok := from.(goSide); ok {
			want = `["node answers",7]`
		}
		if got := from.serverSideAck("question", 7); got != want {
			c.Errorf("answer %s, want %s", got, want)
		}
	}},
}

func interop(t *testing.T, m *mixed, from side) {
	for _, one := range interopCases {
		t.Run(one.name, func(t *testing.T) {
			c := m.table(t, from)
			one.run(c)
			c.settle()
		})
	}
	asking, ok := from.(asking)
	if n, node := from.(nodeSide); !ok || node && n.emitter {
		return
	}
	for _, one := range askingCases {
		t.Run(one.name, func(t *testing.T) {
			c := m.table(t, from)
			one.run(c, asking)
			c.settle()
		})
	}
}

func TestInteropClassic(t *testing.T) {
	t.Parallel()
	m := startMixed(t, redistest.Start(t), false)
	t.Run("from Go", func(t *testing.T) { interop(t, m, goSide{t, m.io}) })
	t.Run("from Node", func(t *testing.T) { interop(t, m, nodeSide{p: m.peer}) })
	t.Run("from the emitter", func(t *testing.T) { interop(t, m, nodeSide{p: m.peer, emitter: true}) })
	t.Run("a room that is a number in Node", func(t *testing.T) {
		c := &table{T: t, m: m, from: goSide{t, m.io}}
		g := c.guest(false, "42")
		for _, emitter := range []bool{false, true} {
			m.peer.do(op{"op": "emit", "rooms": []int{42}, "event": "e", "emitter": emitter}, nil)
			g.Expect(`2["e"]`)
			m.peer.do(op{"op": "emit", "rooms": []any{42, "other"}, "event": "e", "emitter": emitter}, nil)
			g.Expect(`2["e"]`)
		}
	})
}

func TestInteropSharded(t *testing.T) {
	t.Parallel()
	m := startMixed(t, redistest.Start(t), true)
	t.Run("from Go", func(t *testing.T) { interop(t, m, goSide{t, m.io}) })
	t.Run("from Node", func(t *testing.T) { interop(t, m, nodeSide{p: m.peer}) })
}
