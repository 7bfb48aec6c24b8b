package outbound

import (
	"net/http"
	"strconv"
	"time"
)

// Bounds of what a server may ask for: no loop without a pause, and no pause in which
// a notification gets pointless.
const (
	minRetryAfter = time.Second
	maxRetryAfter = 24 * time.Hour
	// DefaultRetryAfter is for who says that it is too much, and not for how long.
	DefaultRetryAfter = 30 * time.Second
)

// retryAfter reads the header: seconds or a date. 0 if there is none that can be read.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil && seconds >= 0 {
		return Pause(seconds)
	}
	if at, err := http.ParseTime(header); err == nil {
		return bound(at.Sub(now))
	}
	return 0
}

// Pause is that many seconds, within bounds.
func Pause(seconds int64) time.Duration {
	return bound(time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second)
}

func bound(d time.Duration) time.Duration { return min(max(d, minRetryAfter), maxRetryAfter) }
