package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/*/stat's times (USER_HZ, 100 on every Linux).
const tick = time.Second / 100

// serverCPU is the user and system time that a PostgreSQL has used: its
// postmaster, all of its living children, and those it has buried.
func serverCPU(postmaster int) (time.Duration, error) {
	own, err := readStat(postmaster)
	if err != nil {
		return 0, err
	}
	total := own.self + own.children
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if errors.Is(err, os.ErrNotExist) {
			continue // ended meanwhile: then the postmaster counts it
		}
		if err == nil && s.parent == postmaster {
			total += s.self
		}
	}
	return total, nil
}

type stat struct {
	parent         int
	self, children time.Duration
}

// readStat reads /proc/PID/stat (man 5 proc).
func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	// The name stands in parentheses and may hold anything.
	_, rest, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 15 {
		return stat{}, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	n := func(i int) int64 {
		v, parseErr := strconv.ParseInt(fields[i], 10, 64)
		err = errors.Join(err, parseErr)
		return v
	}
	ticks := func(n int64) time.Duration { return time.Duration(n * int64(tick)) }
	s := stat{parent: int(n(1)), self: ticks(n(11) + n(12)), children: ticks(n(13) + n(14))}
	return s, err
}
