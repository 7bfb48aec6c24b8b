package notify

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"xabar/internal/testkit/collector"
	"xabar/internal/tracing"
)

// From being due to being sent a notification can be followed, and what it says can't.
func TestANotificationIsTraced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "sqlite:"+filepath.Join(t.TempDir(), "xabar.db"))
	to := collector.Start(t)
	tracer, err := tracing.Open(f.ctx, tracing.Config{Endpoint: to.URL, Ratio: 1, Logger: silent()})
	f.ok(err)
	f.s.Tracer = tracer
	ada, bob := f.user("ada"), f.user("bob")
	conversation := f.direct(ada, bob)
	f.send(ada, conversation, "a most private word")
	f.elapse(time.Minute)
	f.ok(tracer.Close(context.WithoutCancel(f.ctx)))

	spans := map[string]collector.Span{}
	for _, span := range to.Spans() {
		spans[span.Name] = span
	}
	due, sent := spans["notification.due"], spans["notification.send"]
	if due.ID == "" || !slices.Equal(sent.Links, []string{due.ID}) || sent.Trace == due.Trace {
		t.Fatalf("%+v\nis not linked with\n%+v", sent, due)
	}
	if sent.Attributes["xabar.outcome"] != "sent" || sent.Attributes["xabar.channel"] != "web-push" ||
		sent.Attributes["xabar.user.id"] != bob.String() || sent.Attributes["xabar.conversation.id"] != conversation.String() {
		t.Errorf("%v", sent.Attributes)
	}
	for _, secret := range []string{"private", "ada", "bob", "browser"} {
		if bytes.Contains(to.Raw(), []byte(secret)) {
			t.Errorf("traces have %q", secret)
		}
	}
}
