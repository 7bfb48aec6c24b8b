//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/PID/stat's times (USER_HZ, 100 on every Linux).
const tick = time.Second / 100

// usage is what a server has used (CPU) and uses (the rest).
type usage struct {
	cpu     time.Duration
	rss     int // bytes
	threads int
}

func (s *server) usage() (u usage, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return u, err
	}
	// The name stands in parentheses and may hold anything. What follows starts with field 3 of proc(5).
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	numbers := make(map[int]int)
	for _, field := range []int{14, 15, 20, 24} { // utime, stime, num_threads, rss
		if len(fields) <= field-3 {
			return u, fmt.Errorf("/proc/PID/stat is %q", text)
		}
		if numbers[field], err = strconv.Atoi(fields[field-3]); err != nil {
			return u, err
		}
	}
	u.cpu = time.Duration(numbers[14]+numbers[15]) * tick
	u.threads, u.rss = numbers[20], numbers[24]*os.Getpagesize()
	return u, nil
}

// spareFiles is how many descriptors a process needs beside its connections.
const spareFiles = 100

// raiseFileLimit allows as many open files as this process may ask for. The servers inherit it.
func raiseFileLimit() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

// maxConnections is how many connections one process may hold here.
func maxConnections() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1000
	}
	return int(min(l.Cur, 1<<20)) - spareFiles
}
