// Package postgres is the chat.Store on PostgreSQL 15 and newer.
//
// Start with Open and send.go. What is written all the time (sends, positions,
// the outbox's removals) is queued by package groupcommit and reaches the database
// in batches, each of them one statement and one round trip that numbers, stores
// and answers everything in it. What is read is one keyset query each.
//
// # Locks
//
// Every transaction takes row locks in one order, so that none waits for another
// in a circle: a user's advisory lock (settling, leaving), conversations by id,
// their members by conversation and user, users. Batches are sorted before they
// are sent, and the statements' joins follow the order of their arrays.
//
// # Plans
//
// Statements are prepared once per connection with a generic plan, and the
// connections switch off the plans that the statements must never get (hash and
// merge joins, sequential scans): the same index plan at any table size and with
// any statistics. TestPlans reads EXPLAIN.
//
// # Lists
//
// migrations/postgres/000010_activity.up.sql says how a user's conversations are
// listed and counted in bounded time whatever their number.
package postgres
