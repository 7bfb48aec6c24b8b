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
