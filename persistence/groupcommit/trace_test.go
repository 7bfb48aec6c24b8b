package groupcommit

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"xabar/chat"
	"xabar/internal/testkit/collector"
	"xabar/internal/tracing"
)

// Requests that share a batch share its span: it stands within the first one that is recorded,
// and is linked with the others both ways.
func TestTheSpanOfABatch(t *testing.T) {
	t.Parallel()
	to := collector.Start(t)
	tracer, err := tracing.Open(t.Context(), tracing.Config{Endpoint: to.URL, Ratio: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan int, 10), make(chan struct{})
	b := New(Options{Span: "store.test"}, func(_ context.Context, _ int, batch []*Item[int, int]) {
		begun <- len(batch)
		<-goOn
	})
	answered := make(chan error, 10)
	done := func(_ int, err error) { answered <- err }
	b.Enqueue(t.Context(), 0, 0, done) // holds the shard up, so that the others come together
	if n := <-begun; n != 1 {
		t.Fatalf("%d in the first batch", n)
	}
	var roots []chat.Span
	b.Enqueue(t.Context(), 0, 1, done) // not recorded
	for n := range 3 {
		root := tracer.Start(nil, chat.ServerSpan, "root")
		roots = append(roots, root)
		b.Enqueue(chat.WithSpan(t.Context(), root), 0, n, done)
	}
	close(goOn)
	for range 5 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	b.Close()
	for _, root := range roots {
		root.End(nil)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	byName := map[string][]collector.Span{}
	for _, span := range to.Spans() {
		byName[span.Name] = append(byName[span.Name], span)
	}
	requests, batches := byName["store.test"], byName["store.batch"]
	if len(requests) != 3 || len(batches) != 1 {
		t.Fatalf("%d requests and %d batches: %+v", len(requests), len(batches), to.Spans())
	}
	batch := batches[0]
	if batch.Attributes["xabar.batch.size"] != int64(4) || len(batch.Links) != 2 {
		t.Errorf("%+v", batch)
	}
	for _, r := range requests {
		within, linked := batch.Parent == r.ID, slices.Contains(batch.Links, r.ID) && slices.Equal(r.Links, []string{batch.ID})
		if within == linked {
			t.Errorf("%+v\nis not of\n%+v", r, batch)
		}
	}
}
