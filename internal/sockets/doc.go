// Package sockets reads and writes TCP and Unix sockets without a word to Go's scheduler.
//
// Around a system call the runtime prepares for one that blocks, and wakes its monitor thread
// (runtime.sysmon) if that sleeps. The monitor then looks around every 20 µs until the process is idle
// again. A gateway that is not busy is idle between any two packets: there a quarter of its CPU went to
// a thread that found nothing to do. Sockets of package net never block (they say EAGAIN, and the
// goroutine waits in the poller), so there is nothing to prepare for.
//
// The monitor still wakes for every timer, for every other system call, and is awake while the process is
// busy.
//
// Read and Write are for whoever has the descriptor, in a callback of syscall.RawConn; Quiet is for
// whoever takes a net.Conn.
package sockets

import "errors"

// ErrAgain says that the socket has nothing to read, or no room to write: wait for it.
var ErrAgain = errors.New("sockets: not ready")
