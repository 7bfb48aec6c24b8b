package loadtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ticks are the units of /proc/PID/stat's times (USER_HZ, 100 on every Linux).
const ticks = 100

// status is what /proc/PID/stat says.
type status struct {
	pid, parent int
	cpu         int64 // ticks, those of children that have ended included
	rss         int64 // bytes
}

func readStatus(path string) (s status, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	// The name stands in parentheses and may hold anything. What follows starts with field 3 of proc(5).
	head, tail, _ := strings.Cut(string(text), " (")
	if s.pid, err = strconv.Atoi(head); err != nil {
		return s, err
	}
	fields := strings.Fields(tail[strings.LastIndexByte(tail, ')')+1:])
	if len(fields) < 22 {
		return s, fmt.Errorf("%s is %q", path, text)
	}
	number := func(field int) (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(fields[field-3], 10, 64)
		}
		return n
	}
	s.parent = int(number(4))
	s.cpu = number(14) + number(15) + number(16) + number(17) // utime, stime, cutime, cstime
	s.rss = number(24) * int64(os.Getpagesize())
	return s, err
}

// usageOf sums up each process with its descendants, PostgreSQL's for one. Of shared
// memory each of them counts what it has touched.
func usageOf(processes []Process) (map[string]Usage, error) {
	if len(processes) == 0 {
		return nil, nil
	}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := map[int]status{}
	for _, path := range paths {
		if s, err := readStatus(path); err == nil { // one that has just ended counts in its parent
			all[s.pid] = s
		}
	}
	usage := map[string]Usage{}
	for _, p := range processes {
		if _, ok := all[p.PID]; !ok {
			return nil, fmt.Errorf("there is no process %d (%s)", p.PID, p.Name)
		}
		u := usage[p.Name]
		for _, s := range all {
			if descends(all, s, p.PID) {
				u.CPU += float64(s.cpu) / ticks
				u.RSS += s.rss
			}
		}
		usage[p.Name] = u
	}
	return usage, nil
}

func descends(all map[int]status, s status, from int) bool {
	for s.pid != from {
		parent, ok := all[s.parent]
		if !ok || parent.pid == s.pid {
			return false
		}
		s = parent
	}
	return true
}

func ownUsage() (u Usage) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err == nil {
		u.CPU = float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	if s, err := readStatus("/proc/self/stat"); err == nil {
		u.RSS = s.rss
	}
	return u
}
