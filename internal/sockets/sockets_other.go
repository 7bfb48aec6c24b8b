//go:build !unix

package sockets

import (
	"net"
	"syscall"
)

// Read is not called: there is no Raw.
func Read(uintptr, []byte) (int, error) { return 0, ErrAgain }

// Write is not called either.
func Write(uintptr, []byte) (int, error) { return 0, ErrAgain }

// Empty is not called either.
func Empty(uintptr) bool { return false }

// Raw is nil where there are no descriptors.
func Raw(net.Conn) syscall.RawConn { return nil }

// Quiet returns the connection as it is.
func Quiet(conn net.Conn) net.Conn { return conn }
