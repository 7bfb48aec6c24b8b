// Package storetest is the contract of chat.Store in tests: Exercise runs the
// same cases against every backend. New behaviour of a store starts here.
//
// A backend gives a Factory; what it does differently it declares on its Harness,
// and the cases assert the declared behaviour.
package storetest

import (
	"sync"
	"testing"
	"time"

	"xabar/chat"
)

// Factory makes a Harness on an empty, migrated database of its own. It is called
// once per case, from tests that run in parallel, and cleans up with t.Cleanup.
type Factory func(t *testing.T) *Harness

// Harness is one database, and the powers that a test needs beside the Store.
type Harness struct {
	// Clock is the clock of every Store that Open makes.
	Clock *Clock
	// Open opens a Store on the database; another call opens another one, as a
	// second node would. Exercise closes it.
	Open func(t *testing.T, tuning Tuning) chat.Store
	// Stall holds up every commit (a send or a move that starts now stays
	// uncommitted) until release is called. The Stores must wait, not fail, for at
	// least 3 s.
	Stall func(t *testing.T) (release func())
	// Statements run the backend's own SQL, for what no port does yet.
	Statements Statements

	// NoHoles declares that seqs of one conversation never have holes, because no
	// race can be lost after the number was taken.
	NoHoles bool
}

// Tuning makes limits small enough to be met in a test. Zero values are the
// backend's defaults.
type Tuning struct {
	QueueBound int // sends and moves that can wait, over all shards of the Store
}

// Statements change the database behind the Store's back.
type Statements struct {
	// Change edits a message as a later stage will: new text, editedAt, and the
	// next version of the conversation on both.
	Change func(conversation chat.ID, seq int64, text string) error
	// InsertText stores a message with the next seq and this text, for the CHECK.
	InsertText func(conversation, sender chat.ID, text string) error
	// Hole takes a seq of the conversation without storing a message.
	Hole func(conversation chat.ID) error
	// CountMessages counts the conversation's rows.
	CountMessages func(conversation chat.ID) (int, error)
	// CountReceipts counts the rows of the log of advances of the conversation.
	CountReceipts func(conversation chat.ID) (int, error)
}

// Clock is a clock that tests step.
type Clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// NewClock starts at a fixed time, in whole milliseconds.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
}

// Now is the time until the next Step.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Step moves the clock, back when d is negative.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
