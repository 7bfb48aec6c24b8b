//go:build linux && !race

package sockets

import (
	"syscall"
	"unsafe"
)

// RawSyscall is the one that the scheduler does not hear of. (The race detector does not either, which
// takes what goes through a socket for an order of events: its builds use the other file.)
func call(number, fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func read(fd uintptr, b []byte) (int, error)  { return call(syscall.SYS_READ, fd, b) }
func write(fd uintptr, b []byte) (int, error) { return call(syscall.SYS_WRITE, fd, b) }

func peek(fd uintptr, b []byte) (int, error) {
	const flags = syscall.MSG_PEEK | syscall.MSG_DONTWAIT
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
