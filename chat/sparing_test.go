package chat

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// unheardBroadcaster reaches nobody, as during an outage of Redis.
type unheardBroadcaster struct{}

func (unheardBroadcaster) Publish(context.Context, Event) error { return errors.New("no way") }

// tickingClock is set by its test.
type tickingClock struct{ at time.Time }

func (c *tickingClock) Now() time.Time { return c.at }

// An outage in which every event fails does not fill the log.
func TestEventsThatReachNobodyAreToldSparingly(t *testing.T) {
	var out bytes.Buffer
	clock := &tickingClock{time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	s := NewService(ServiceConfig{Broadcaster: unheardBroadcaster{}, Clock: clock, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	publish := func(n int) {
		for range n {
			s.publish(t.Context(), PresenceChanged{})
		}
	}
	publish(1000)
	if n := strings.Count(out.String(), "did not reach"); n != 1 {
		t.Errorf("%d warnings of 1,000 events in a moment", n)
	}
	out.Reset()
	clock.at = clock.at.Add(publishWarnings)
	publish(1000)
	if text := out.String(); strings.Count(text, "did not reach") != 1 || !strings.Contains(text, "untold_before=999") {
		t.Errorf("later the log says %s", text)
	}
	// A clock that was set back is no reason for silence.
	clock.at = clock.at.Add(-time.Hour)
	out.Reset()
	publish(1)
	if !strings.Contains(out.String(), "did not reach") {
		t.Error("nothing is told after the clock was set back")
	}
}
