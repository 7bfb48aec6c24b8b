// Package meter is how a store tells what it does, so that whoever runs it can make
// metrics of it: of each batch at once (Observe, given to Open), of everything else when
// asked (Source). The stores know no metrics library.
package meter

import (
	"time"

	"xabar/persistence/groupcommit"
)

// Names of the queues whose batches are observed. A PostgreSQL store has the first three,
// a SQLite store the last.
const (
	Sends     = "send"     // messages
	Positions = "position" // delivered and read
	Outbox    = "outbox"   // removals of what was fanned out
	Writes    = "write"    // all of these, and every other change
	Reads     = "read"     // what connections read when they begin; not observed
)

// Queues are all names that are observed.
var Queues = []string{Sends, Positions, Outbox, Writes}

// Observe gives what hears of one queue's batches, by the queue's name; nil: nobody.
type Observe func(queue string) groupcommit.Observer

// For is the observer of a queue; nil if nobody observes.
func (o Observe) For(queue string) groupcommit.Observer {
	if o == nil {
		return nil
	}
	return o(queue)
}

// Source is a store that can be asked.
type Source interface {
	Stats() Stats
}

// Stats are a store's figures of the moment.
type Stats struct {
	Queues []Queue
	Pools  []Pool
}

// Queue is how full a queue is: of several shards, the fullest one.
type Queue struct {
	Name           string
	Waiting, Bound int // requests
}

// Pool is a pool of connections to the database.
type Pool struct {
	Name       string // "read" or "write"
	Used, Idle int    // connections now
	Max        int
	Waits      int64         // so far: uses that had to wait for a connection, or for a new one
	WaitTime   time.Duration // that these took
}
