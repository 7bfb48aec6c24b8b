package rooms_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"xabar/gateway/socketio"
	"xabar/internal/testkit/redistest"
	"xabar/rooms"
	"xabar/rooms/roomstest"
)

// patience bounds each wait of these tests.
const patience = 20 * time.Second

var deployments atomic.Int64

// isolated are options under which nodes hear only each other.
func isolated() rooms.Options {
	name := fmt.Sprint("t", deployments.Add(1))
	return rooms.Options{Key: name, Prefix: name, Logger: slog.New(slog.DiscardHandler), LocalRooms: []string{"presence:"}}
}

// open opens a node that is not run yet.
func open(t testing.TB, url string, opts rooms.Options) *rooms.Redis {
	t.Helper()
	r, err := rooms.Open(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a node until the test ends or stop is called.
func run(t testing.TB, r *rooms.Redis) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(patience):
			t.Error("the node does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

// eventually asks again and again until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not so in time: %s", what)
		}
		<-ticker.C
	}
}

func healthy(t testing.TB, nodes ...*rooms.Redis) {
	t.Helper()
	for _, r := range nodes {
		eventually(t, "the node is healthy", func() bool { return len(r.Health()) == 0 })
	}
}

// contract runs the adapters' contract on a deployment.
func contract(t *testing.T, url string, sharded bool) {
	roomstest.Exercise(t, true, func(t *testing.T, nodes int) []socketio.AdapterFactory {
		opts := isolated()
		opts.Sharded = sharded
		var list []socketio.AdapterFactory
		for range nodes {
			r := open(t, url, opts)
			list = append(list, r.Adapters())
			run(t, r)
		}
		return list
	})
}

func TestAdapterContract(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL
	t.Run("classic", func(t *testing.T) { contract(t, url, false) })
	t.Run("sharded", func(t *testing.T) { contract(t, url, true) })
}

func TestAdapterContractInACluster(t *testing.T) {
	t.Parallel()
	url := redistest.StartCluster(t).URL
	t.Run("classic", func(t *testing.T) { contract(t, url, false) })
	t.Run("sharded", func(t *testing.T) { contract(t, url, true) })
}

func TestAdapterContractBehindSentinel(t *testing.T) {
	t.Parallel()
	contract(t, redistest.StartSentinel(t).URL, false)
}
