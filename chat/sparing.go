package chat

import (
	"sync"
	"time"
)

// sparing says of something that may happen very often when it is told. The zero value has
// told nothing yet. Safe for concurrent use.
type sparing struct {
	mu     sync.Mutex // guards the fields below
	last   time.Time
	untold int
}

// now says whether it is told now: not within every of the last time. before is how many
// were not told since then.
func (s *sparing) now(at time.Time, every time.Duration) (before int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && at.Sub(s.last).Abs() < every {
		s.untold++
		return 0, false
	}
	before, s.untold, s.last = s.untold, 0, at
	return before, true
}
