package chat

import (
	"context"
	"time"
)

// NotifyJob is one notification on its way to one target. It has no text and no
// secret: what is said is read when it is sent.
type NotifyJob struct {
	Notification  ID                // the same for every target
	UserID        ID                //
	Channel       string            //
	TargetID      ID                // of NotifyTarget; zero in a channel for everybody
	Reason        DueReason         //
	Conversations []JobConversation // one, or several that were held back together
	Trace         *TraceContext     // the span that made it; nil: none that is recorded
}

// JobConversation is a conversation that a notification tells of, up to a seq.
type JobConversation struct {
	ConversationID ID
	UpTo           int64
}

// NotifyAttempt is a job being worked on.
type NotifyAttempt struct {
	NotifyJob
	Number    int // from 1; being told to come later does not count
	Last      bool
	CreatedAt time.Time
}

// NotifyWork makes one attempt. With an again above 0 the job is worked on again after
// that time, as the same attempt; an error is repeated later, or ends the job as
// failed if permanent.
type NotifyWork func(ctx context.Context, a NotifyAttempt) (again time.Duration, permanent bool, err error)

// NotifyQueue keeps jobs until they are done, over restarts.
type NotifyQueue interface {
	// Insert stores jobs, all or none. A job for the same notification and target as
	// one that is there (a day at least) is passed over.
	Insert(ctx context.Context, jobs []NotifyJob) error
	// Run works on jobs until ctx ends, each channel by itself, and returns when no
	// attempt is under way.
	Run(ctx context.Context, work NotifyWork) error
	// List shows jobs, the newest first.
	List(ctx context.Context, q JobQuery) ([]NotifyJobState, error)
	// Retry makes a job due now. Errors: not_found; conflict (it is being worked on).
	Retry(ctx context.Context, id int64) error
}

// JobQuery selects jobs: all, or those that have failed.
type JobQuery struct {
	Failed bool
	Limit  int // 1 to 1000
}

// NotifyJobState is a job as an operator sees it.
type NotifyJobState struct {
	NotifyJob
	ID       int64
	State    string // waiting, running, done, failed
	Attempts int
	At       time.Time // when it was created
	NextAt   time.Time // when it is worked on next, while waiting
	Error    string    // of the last attempt that failed
}
