//go:build !unix

package engineio

import (
	"net"
	"syscall"
)

// rawConn: without access to the descriptor every connection is written by a goroutine while
// it has something to write.
func rawConn(net.Conn) syscall.RawConn { return nil }

func sysRead(uintptr, []byte) (int, error)  { return 0, errAgain }
func sysWrite(uintptr, []byte) (int, error) { return 0, errAgain }
