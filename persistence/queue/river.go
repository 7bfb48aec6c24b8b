package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"xabar/chat"
)

// args are a job's in the database. What is unique makes an insertion that is repeated
// after a crash the same job.
type args struct {
	Notification  chat.ID         `json:"notification" river:"unique"`
	Channel       string          `json:"channel" river:"unique"`
	Target        chat.ID         `json:"target" river:"unique"`
	User          chat.ID         `json:"user"`
	Reason        chat.DueReason  `json:"reason"`
	Conversations []conversations `json:"conversations"`
	Trace         string          `json:"trace,omitempty"` // a traceparent
}

type conversations struct {
	ID   chat.ID `json:"id"`
	UpTo int64   `json:"upTo"`
}

// Kind is River's name of the jobs.
func (args) Kind() string { return "notify" }

func argsOf(j chat.NotifyJob) args {
	a := args{Notification: j.Notification, Channel: j.Channel, Target: j.TargetID, User: j.UserID, Reason: j.Reason}
	for _, c := range j.Conversations {
		a.Conversations = append(a.Conversations, conversations{c.ConversationID, c.UpTo})
	}
	if j.Trace != nil {
		a.Trace = j.Trace.Traceparent()
	}
	return a
}

func (a args) job() chat.NotifyJob {
	j := chat.NotifyJob{Notification: a.Notification, UserID: a.User, Channel: a.Channel, TargetID: a.Target, Reason: a.Reason}
	for _, c := range a.Conversations {
		j.Conversations = append(j.Conversations, chat.JobConversation{ConversationID: c.ID, UpTo: c.UpTo})
	}
	j.Trace, _ = chat.ParseTraceparent(a.Trace)
	return j
}

// riverQueue is a Queue on one of River's drivers.
type riverQueue[TTx any] struct {
	river.WorkerDefaults[args]
	client  *river.Client[TTx]
	opts    Options
	work    atomic.Pointer[chat.NotifyWork] // set by Run
	release func() error
}

func newQueue[TTx any](driver riverdriver.Driver[TTx], opts Options, pollOnly bool, release func() error) (Queue, error) {
	q := &riverQueue[TTx]{opts: opts, release: release}
	workers := river.NewWorkers()
	river.AddWorker(workers, q)
	config := &river.Config{
		Workers:                     workers,
		Logger:                      quiet(opts.Logger),
		PollOnly:                    pollOnly,
		FetchPollInterval:           opts.Poll,
		FetchCooldown:               min(opts.Poll, river.FetchCooldownDefault),
		JobTimeout:                  opts.Timeout,
		RescueStuckJobsAfter:        opts.Rescue,
		MaxAttempts:                 len(opts.Pauses) + 1,
		RetryPolicy:                 pauses(opts.Pauses),
		DiscardedJobRetentionPeriod: Keep,
		CancelledJobRetentionPeriod: Keep,
		SoftStopTimeout:             opts.Timeout / 3,
	}
	for _, channel := range opts.Channels {
		if config.Queues == nil {
			config.Queues = map[string]river.QueueConfig{}
		}
		config.Queues[channel] = river.QueueConfig{MaxWorkers: opts.Workers}
	}
	var err error
	if q.client, err = river.NewClient(driver, config); err != nil {
		return nil, errors.Join(fmt.Errorf("queue: %w", err), release())
	}
	return q, nil
}

// pauses is the retry policy.
type pauses []time.Duration

// NextRetry implements river.ClientRetryPolicy.
func (p pauses) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().UTC().Add(p[min(max(len(job.Errors), 0), len(p)-1)])
}

// Insert implements chat.NotifyQueue.
func (q *riverQueue[TTx]) Insert(ctx context.Context, jobs []chat.NotifyJob) error {
	if len(jobs) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{Args: argsOf(job), InsertOpts: &river.InsertOpts{
			Queue: job.Channel, UniqueOpts: river.UniqueOpts{ByArgs: true},
		}}
	}
	if _, err := q.client.InsertMany(ctx, params); err != nil {
		return fmt.Errorf("queue: insert: %w", err)
	}
	return nil
}

// Run implements chat.NotifyQueue. River ends by itself when ctx does: attempts that
// are under way have a while to end, then they are cut off and made again after the
// next start.
func (q *riverQueue[TTx]) Run(ctx context.Context, work chat.NotifyWork) error {
	if len(q.opts.Channels) == 0 {
		<-ctx.Done()
		return nil
	}
	q.work.Store(&work)
	if err := q.client.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was to end before it had begun
		}
		return fmt.Errorf("queue: start: %w", err)
	}
	<-q.client.Stopped()
	return nil
}

// Work implements river.Worker.
func (q *riverQueue[TTx]) Work(ctx context.Context, job *river.Job[args]) error {
	again, permanent, err := (*q.work.Load())(ctx, chat.NotifyAttempt{
		NotifyJob: job.Args.job(), Number: job.Attempt, Last: job.Attempt >= job.MaxAttempts, CreatedAt: job.CreatedAt,
	})
	switch {
	case err == nil && again > 0:
		return river.JobSnooze(again)
	case err == nil:
		return nil
	case permanent:
		return river.JobCancel(err)
	case errors.Is(ctx.Err(), context.Canceled): // the node stops
		return river.JobSnooze(0)
	}
	return err
}

// List implements chat.NotifyQueue.
func (q *riverQueue[TTx]) List(ctx context.Context, query chat.JobQuery) ([]chat.NotifyJobState, error) {
	params := river.NewJobListParams().Kinds(args{}.Kind()).First(min(max(query.Limit, 1), 1000)).
		OrderBy(river.JobListOrderByID, river.SortOrderDesc)
	if query.Failed {
		params = params.States(rivertype.JobStateDiscarded, rivertype.JobStateCancelled)
	}
	found, err := q.client.JobList(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("queue: list: %w", err)
	}
	states := make([]chat.NotifyJobState, 0, len(found.Jobs))
	for _, row := range found.Jobs {
		state, err := stateOf(row)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// Retry implements chat.NotifyQueue.
func (q *riverQueue[TTx]) Retry(ctx context.Context, id int64) error {
	row, err := q.client.JobGet(ctx, id)
	switch {
	case errors.Is(err, rivertype.ErrNotFound):
		return chat.Errorf(chat.CodeNotFound, "there is no notification %d", id)
	case err != nil:
		return fmt.Errorf("queue: retry: %w", err)
	case row.State == rivertype.JobStateRunning:
		return chat.Errorf(chat.CodeConflict, "notification %d is being sent", id)
	}
	if _, err := q.client.JobRetry(ctx, id); err != nil {
		return fmt.Errorf("queue: retry: %w", err)
	}
	return nil
}

// Close implements Queue.
func (q *riverQueue[TTx]) Close() error { return q.release() }

// quiet leaves River's own notes about what goes well out of the log.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
