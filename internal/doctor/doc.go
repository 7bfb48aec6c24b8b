// Package doctor examines what a gateway depends on, before it serves or while it does: the
// database, Redis, clocks, limits of the system, and the way that clients take through proxies.
// `xabar doctor` prints what it finds.
//
// A Report collects Findings. Each says what was looked at, what was found, and, unless that is
// well, what to do about it. The functions that examine (Postgres, SQLite, Redis, Limits, Public, …)
// take an Input and write into a Report; none fails, since what can't be examined is a finding
// too. They change nothing that stays: what they write to try it (a message in the log of
// PostgreSQL, a key in Redis, a file beside the SQLite database) is gone afterwards.
//
// Seen is the one part that runs inside the gateway: it tells whoever can prove to hold the server
// key how a request looked when it arrived there.
package doctor
