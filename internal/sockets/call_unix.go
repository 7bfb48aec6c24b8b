//go:build unix && (!linux || race)

package sockets

import "syscall"

func read(fd uintptr, b []byte) (int, error)  { return syscall.Read(int(fd), b) }
func write(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }

func peek(fd uintptr, b []byte) (int, error) {
	n, _, err := syscall.Recvfrom(int(fd), b, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n, err
}
