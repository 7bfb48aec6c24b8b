package doctor

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// LimitsInput is what Limits needs.
type LimitsInput struct {
	Connections int    // that this node should carry
	Others      int    // files that it needs beside them: database, Redis, logs
	Proc        string // default /proc
	Cgroup      string // default /sys/fs/cgroup
}

// bytesPerConnection is what docs/scaling.md reckons with.
const bytesPerConnection = 16 << 10

// Limits compares what the system allows a process with a number of connections.
func Limits(r *Report, in LimitsInput) {
	if in.Proc == "" {
		in.Proc = "/proc"
	}
	if in.Cgroup == "" {
		in.Cgroup = "/sys/fs/cgroup"
	}
	l := limits{r.Section("limits"), in}
	l.files()
	if runtime.GOOS != "linux" {
		return
	}
	l.backlog()
	l.ports()
	l.tracked()
	l.memory()
}

type limits struct {
	s  Section
	in LimitsInput
}

// files are file descriptors. Go's runtime has raised the soft limit to the hard one already.
func (l limits) files() {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		l.s.Warn("files", "ulimit -n", "the limit cannot be read: %v", err)
		return
	}
	need := uint64(l.in.Connections + l.in.Others)
	do := fmt.Sprintf("systemd: LimitNOFILE=%d; containers: --ulimit nofile=%d; shells: ulimit -n", 2*need, 2*need)
	if now.Cur < need {
		l.s.Problem("files", do, "%d file descriptors, of this shell: too few for %d connections (--connections)", now.Cur, l.in.Connections)
		return
	}
	l.s.OK("files", "%s file descriptors, of this shell, for %d connections", many(now.Cur), l.in.Connections)
}

func many(n uint64) string {
	if n > 1<<40 {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

// number reads a file of one number.
func number(path string) (int, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}

// smallBacklog is fewer connections than may come in a moment, when a node of many goes away.
const smallBacklog = 1024

func (l limits) backlog() {
	n, ok := number(l.in.Proc + "/sys/net/core/somaxconn")
	switch {
	case !ok: // not in this container
	case n < smallBacklog:
		l.s.Warn("backlog", "sysctl net.core.somaxconn=4096", "net.core.somaxconn is %d: when clients of another node come all at once, some wait for a second connection attempt", n)
	default:
		l.s.OK("backlog", "net.core.somaxconn is %d", n)
	}
}

// ports bound what a proxy on the same machine can open to one address of the gateway.
func (l limits) ports() {
	text, err := os.ReadFile(l.in.Proc + "/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return // not in this container
	}
	var from, to int
	if _, err := fmt.Sscan(string(text), &from, &to); err != nil {
		return
	}
	n := to - from + 1
	if n < l.in.Connections {
		l.s.Warn("ports", "sysctl net.ipv4.ip_local_port_range=\"10000 65535\"; more than that need several listening addresses",
			"%d: a proxy on this machine can hold no more connections to one address than that", n)
		return
	}
	l.s.OK("ports", "%d: as many connections a proxy on this machine can hold to one address", n)
}

// tracked is the table of a firewall that knows connections: when it is full, packets are dropped.
func (l limits) tracked() {
	n, ok := number(l.in.Proc + "/sys/net/netfilter/nf_conntrack_max")
	if ok && n < 2*l.in.Connections {
		l.s.Warn("conntrack", fmt.Sprintf("sysctl net.netfilter.nf_conntrack_max=%d", 4*l.in.Connections), "the firewall tracks at most %d connections, and drops others", n)
	}
}

func (l limits) memory() {
	bound, of, ok := l.memoryBound()
	if !ok {
		return
	}
	need := l.in.Connections * bytesPerConnection * 2
	found := fmt.Sprintf("%d MB of the %s; %d connections take about %d MB, twice that in bursts", bound>>20, of, l.in.Connections, need>>21)
	if bound < need {
		l.s.Warn("memory", "give it more memory, or run more nodes", "%s", found)
		return
	}
	l.s.OK("memory", "%s", found)
}

// memoryBound is the container's, else the machine's, in bytes.
func (l limits) memoryBound() (bytes int, of string, ok bool) {
	if n, ok := number(l.in.Cgroup + "/memory.max"); ok { // "max" is no number
		return n, "container", true
	}
	text, err := os.ReadFile(l.in.Proc + "/meminfo")
	if err != nil {
		return 0, "", false
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kilobytes); err == nil {
			return kilobytes << 10, "machine", true
		}
	}
	return 0, "", false
}
