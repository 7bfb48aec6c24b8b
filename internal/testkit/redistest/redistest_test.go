package redistest_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/internal/testkit/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLives(t *testing.T) {
	s := redistest.Start(t)
	ping := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return s.Ping(ctx)
	}
	if err := ping(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if ping(100*time.Millisecond) == nil {
		t.Fatal("a paused server answers")
	}
	s.Resume()
	if err := ping(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	addr := s.Addr
	s.Kill()
	if ping(time.Second) == nil {
		t.Fatal("a killed server answers")
	}
	s.Restart()
	if err := ping(10 * time.Second); err != nil || s.Addr != addr {
		t.Fatalf("after a restart at %s: %v", s.Addr, err)
	}
}

func TestAClusterTakesEveryKey(t *testing.T) {
	c := redistest.StartCluster(t)
	if len(c.Masters) != 3 {
		t.Fatalf("%d masters", len(c.Masters))
	}
	if got := c.Masters[0].Do("CLUSTER", "COUNTKEYSINSLOT", 0); got != int64(0) {
		t.Fatalf("keys in slot 0: %v", got)
	}
}

func TestASentinelReplacesADeadMaster(t *testing.T) {
	s := redistest.StartSentinel(t)
	s.Master.Kill()
	s.Replica.Eventually("the replica is the master", func() bool {
		role, ok := s.Replica.Do("ROLE").([]any)
		return ok && len(role) > 0 && role[0] == "master"
	})
}
