package chat

import "time"

// RateLimited is the answer to whoever does too much: wait, and the same will do.
func RateLimited(wait time.Duration) *Error {
	e := Errorf(CodeRateLimited, "")
	// Up to whole milliseconds: who waits exactly as long as told must be let in.
	e.RetryAfter = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	return e
}

// unlimited is a Limiter that lets everything through.
type unlimited struct{}

func (unlimited) Take(ID) (time.Duration, bool) { return 0, true }
func (unlimited) Return(ID)                     {}
