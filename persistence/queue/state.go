package queue

import (
	"encoding/json"
	"fmt"

	"github.com/riverqueue/river/rivertype"

	"xabar/chat"
)

// stateOf says what a job's row means to an operator.
func stateOf(row *rivertype.JobRow) (chat.NotifyJobState, error) {
	var a args
	if err := json.Unmarshal(row.EncodedArgs, &a); err != nil {
		return chat.NotifyJobState{}, fmt.Errorf("queue: job %d: %w", row.ID, err)
	}
	state := chat.NotifyJobState{NotifyJob: a.job(), ID: row.ID, Attempts: row.Attempt, At: row.CreatedAt}
	switch row.State {
	case rivertype.JobStateCompleted:
		state.State = "done"
	case rivertype.JobStateDiscarded, rivertype.JobStateCancelled:
		state.State = "failed"
	case rivertype.JobStateRunning:
		state.State = "running"
	default:
		state.State, state.NextAt = "waiting", row.ScheduledAt
	}
	if n := len(row.Errors); n > 0 {
		state.Error = row.Errors[n-1].Error
	}
	return state, nil
}
