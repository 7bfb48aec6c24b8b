//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"xabar/internal/testkit/pgtest"
)

// bench holds what all measurements share.
type bench struct {
	dir      string
	binary   string
	postgres *pgtest.Server
	redis    *redisServer
	made     int // databases

	centrifugo string // its binary
}

func setUp(ctx context.Context, c *config) (b *bench, err error) {
	b = &bench{centrifugo: c.centrifugo}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "xabar-bench-"); err != nil {
		return b, err
	}
	b.binary = filepath.Join(b.dir, "xabar")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/xabar").CombinedOutput(); err != nil {
		return b, fmt.Errorf("build xabar: %w\n%s", err, out)
	}
	b.postgres, err = pgtest.New(pgtest.Options{Durable: true, Settings: map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min", "max_connections": "200",
	}})
	if err != nil {
		return b, err
	}
	b.redis, err = startRedis(ctx, b.dir)
	return b, err
}

func (b *bench) close() error {
	var errs []error
	if b.redis != nil {
		errs = append(errs, b.redis.close())
	}
	if b.postgres != nil {
		errs = append(errs, b.postgres.Close())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// database makes one for a measurement.
func (b *bench) database(ctx context.Context, empty bool) (url string, drop func() error, err error) {
	b.made++
	name := fmt.Sprintf("bench_%d", b.made)
	drop = func() error { return b.execute(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)") }
	if empty {
		return b.postgres.URL(name), drop, b.execute(ctx, "CREATE DATABASE "+name)
	}
	url, err = b.postgres.Database(ctx, name)
	return url, drop, err
}

func (b *bench) execute(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, b.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// freePort is for servers that cannot choose one themselves.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// redisServer persists nothing, as a gateway's Redis may.
type redisServer struct {
	cmd    *exec.Cmd
	port   int
	client *redis.Client
}

func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	r := &redisServer{port: port}
	r.cmd = exec.Command("redis-server", "--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--maxclients", "1000")
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	r.client = redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", r.port)})
	deadline := time.Now().Add(startDeadline)
	for r.client.Ping(ctx).Err() != nil {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return r, errors.New("redis-server does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return r, nil
}

func (r *redisServer) url() string { return fmt.Sprintf("redis://127.0.0.1:%d", r.port) }

func (r *redisServer) flush(ctx context.Context) error {
	return errors.Join(r.client.FlushAll(ctx).Err(), r.client.ConfigResetStat(ctx).Err())
}

// memory is what Redis's data takes; peak the highest since the last flush.
func (r *redisServer) memory(ctx context.Context) (int64, error) { return r.info(ctx, "used_memory") }
func (r *redisServer) peak(ctx context.Context) (int64, error) {
	return r.info(ctx, "used_memory_peak")
}

func (r *redisServer) info(ctx context.Context, name string) (int64, error) {
	text, err := r.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("redis tells no %s", name)
}

func (r *redisServer) close() error {
	err := errors.Join(r.client.Close(), r.cmd.Process.Signal(syscall.SIGTERM))
	_ = r.cmd.Wait() // it says how it was ended
	return err
}

// process is a node.
type process struct {
	cmd *exec.Cmd
	url string
}

const startDeadline = 30 * time.Second

var (
	// The second is Centrifugo's.
	listening = regexp.MustCompile(`(?:listening.*?http://|serving .* endpoints on )(127\.0\.0\.1:\d+)`)
	warning   = regexp.MustCompile(`"level":"(WARN|ERROR)"|Error`)
)

// start runs a node until it says where it listens.
func start(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := write.Close(); err != nil {
		return nil, err
	}
	urls := make(chan string, 1)
	go watch(read, urls)
	p := &process{cmd: cmd}
	select {
	case p.url = <-urls:
		if p.url != "" {
			return p, nil
		}
		return nil, fmt.Errorf("%s has ended: %w", cmd.Path, cmd.Wait())
	case <-time.After(startDeadline):
		p.stop()
		return nil, fmt.Errorf("%s does not listen", cmd.Path)
	}
}

// watch reads a node's log to its end, passes warnings on, and finds its URL.
func watch(log io.ReadCloser, urls chan<- string) {
	defer log.Close()
	defer close(urls)
	lines, found := bufio.NewScanner(log), false
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil && !found {
			found = true
			urls <- "http://" + m[1]
		} else if warning.MatchString(lines.Text()) {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
	}
}

// stop waits for the process.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // it says how it was ended
	kill.Stop()
}

// maxConnections is how many connections one process may hold here.
func maxConnections() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1000
	}
	const spare = 200 // files beside the connections
	return int(min(l.Cur, 1<<20)) - spare
}
