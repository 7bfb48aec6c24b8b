package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xabar/chat"
	"xabar/internal/testkit/pgtest"
	"xabar/migrations"
	"xabar/persistence"
	"xabar/persistence/queue"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// on runs a test against both databases; url is one of its own, migrated.
func on(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "xabar.db") },
		"postgres": func(t *testing.T) string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := url(t)
			store, err := persistence.Open(t.Context(), url, persistence.Options{Migrate: true, Logger: silent()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, url)
		})
	}
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func open(t *testing.T, url string, opts queue.Options) queue.Queue {
	t.Helper()
	opts.Migrate, opts.Logger, opts.Poll = true, silent(), 20*time.Millisecond
	q, err := queue.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// run works on jobs until the test ends or stop is called.
func run(t *testing.T, q queue.Queue, work chat.NotifyWork) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx, work) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func job(channel string) chat.NotifyJob {
	return chat.NotifyJob{
		Notification: chat.NewID(), UserID: chat.NewID(), Channel: channel, TargetID: chat.NewID(), Reason: chat.NotDelivered,
		Conversations: []chat.JobConversation{{ConversationID: chat.NewID(), UpTo: 7}},
	}
}

func insert(t *testing.T, q queue.Queue, jobs ...chat.NotifyJob) {
	t.Helper()
	if err := q.Insert(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		panic("not reached")
	}
}

// state waits until the only job is in the state.
func state(t *testing.T, q queue.Queue, want string) chat.NotifyJobState {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		jobs, err := q.List(t.Context(), chat.JobQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) == 1 && jobs[0].State == want {
			return jobs[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s in time: %+v", want, jobs)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestOnce: a job arrives whole, once, also when it is inserted again after a crash.
func TestOnce(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{Channels: []string{"webhook"}})
		want := job("webhook")
		insert(t, q, want)
		insert(t, q, want)
		got := make(chan chat.NotifyAttempt, 10)
		run(t, q, func(_ context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			got <- a
			return 0, false, nil
		})
		a := receive(t, got)
		if a.Number != 1 || a.Notification != want.Notification || a.UserID != want.UserID || a.TargetID != want.TargetID ||
			a.Channel != "webhook" || a.Reason != want.Reason || len(a.Conversations) != 1 || a.Conversations[0] != want.Conversations[0] {
			t.Errorf("got %+v, want %+v", a, want)
		}
		state(t, q, "done")
		insert(t, q, want) // known for a day
		other := want
		other.TargetID = chat.NewID()
		insert(t, q, other)
		if a := receive(t, got); a.TargetID != other.TargetID {
			t.Errorf("a job that was done was done again")
		}
	})
}

// TestRetriesThenFails: attempts that fail are repeated with the pauses, then the job
// is kept as failed, and an operator can start it again.
func TestRetriesThenFails(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{Channels: []string{"webhook"}, Pauses: []time.Duration{50 * time.Millisecond, 50 * time.Millisecond}})
		insert(t, q, job("webhook"))
		got := make(chan chat.NotifyAttempt, 10)
		run(t, q, func(_ context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			got <- a
			return 0, false, errors.New("the endpoint says 500")
		})
		for n := 1; n <= 3; n++ {
			if a := receive(t, got); a.Number != n || a.Last != (n == 3) {
				t.Errorf("attempt %d: %d, last %v", n, a.Number, a.Last)
			}
		}
		failed := state(t, q, "failed")
		if failed.Attempts != 3 || failed.Error != "the endpoint says 500" {
			t.Errorf("kept as %+v", failed)
		}
		if jobs, err := q.List(t.Context(), chat.JobQuery{Failed: true, Limit: 10}); err != nil || len(jobs) != 1 {
			t.Errorf("failed jobs: %+v, %v", jobs, err)
		}
		if err := q.Retry(t.Context(), failed.ID); err != nil {
			t.Fatal(err)
		}
		if a := receive(t, got); !a.Last {
			t.Errorf("the repetition: %+v", a)
		}
		if err := q.Retry(t.Context(), failed.ID+1000); chat.CodeOf(err) != chat.CodeNotFound {
			t.Errorf("a job that is not there: %v", err)
		}
	})
}

// TestLater: a job that was told to come later comes not sooner, and as the same
// attempt.
func TestLater(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{Channels: []string{"telegram"}})
		insert(t, q, job("telegram"))
		type attempt struct {
			chat.NotifyAttempt
			at time.Time
		}
		got := make(chan attempt, 10)
		const later = 1500 * time.Millisecond
		first := true
		run(t, q, func(_ context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			got <- attempt{a, time.Now()}
			if first {
				first = false
				return later, false, nil
			}
			return 0, false, nil
		})
		one, two := receive(t, got), receive(t, got)
		if two.Number != 1 || two.at.Sub(one.at) < later {
			t.Errorf("came again as attempt %d after %v", two.Number, two.at.Sub(one.at))
		}
		state(t, q, "done")
	})
}

// TestSchema: one that is not there is refused, where nobody may migrate.
func TestSchema(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		if q, err := queue.Open(t.Context(), url, queue.Options{Logger: silent()}); !errors.Is(err, migrations.ErrOlder) || q != nil {
			t.Errorf("without a schema: %v, %v", q, err)
		}
		// Nodes that start together.
		var opening sync.WaitGroup
		for range 4 {
			opening.Go(func() {
				q, err := queue.Open(t.Context(), url, queue.Options{Logger: silent(), Migrate: true})
				if err != nil {
					t.Errorf("together: %v", err)
					return
				}
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		opening.Wait()
		q, err := queue.Open(t.Context(), url, queue.Options{Logger: silent()})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestPermanent: no more attempts.
func TestPermanent(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{Channels: []string{"webhook"}, Pauses: []time.Duration{time.Millisecond}})
		insert(t, q, job("webhook"))
		run(t, q, func(context.Context, chat.NotifyAttempt) (time.Duration, bool, error) {
			return 0, true, errors.New("never")
		})
		if failed := state(t, q, "failed"); failed.Attempts != 1 {
			t.Errorf("%d attempts", failed.Attempts)
		}
	})
}

// TestChannelsAreApart: one whose attempts hang holds up no other.
func TestChannelsAreApart(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{Channels: []string{"slow", "quick"}, Workers: 2})
		for range 5 {
			insert(t, q, job("slow"))
		}
		insert(t, q, job("quick"))
		release, quick := make(chan struct{}), make(chan struct{}, 1)
		stop := run(t, q, func(ctx context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			if a.Channel == "quick" {
				quick <- struct{}{}
				return 0, false, nil
			}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return 0, false, ctx.Err()
		})
		receive(t, quick)
		close(release)
		stop()
	})
}

// TestLostAttempt: an attempt of which nobody recorded the end is made again.
func TestLostAttempt(t *testing.T) {
	on(t, func(t *testing.T, url string) {
		q := open(t, url, queue.Options{
			Channels: []string{"webhook"}, Timeout: time.Second, Rescue: 2 * time.Second, Pauses: []time.Duration{time.Second},
		})
		insert(t, q, job("webhook"))
		hung, release := make(chan struct{}, 1), make(chan struct{})
		again := make(chan chat.NotifyAttempt, 10)
		stop := run(t, q, func(_ context.Context, a chat.NotifyAttempt) (time.Duration, bool, error) {
			if a.Number > 1 {
				again <- a
				return 0, false, nil
			}
			hung <- struct{}{}
			<-release // deaf to ctx: as if it were gone
			return 0, false, nil
		})
		receive(t, hung)
		select {
		case <-again:
		case <-time.After(90 * time.Second):
			t.Error("nobody took it up")
		}
		close(release)
		stop()
	})
}
