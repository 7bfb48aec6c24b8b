package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"xabar/bench/internal/proc"
	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/internal/testkit/lightclient"
)

// Children are started from the main thread, with whose end they end.
func init() { runtime.LockOSThread() }

// secret signs the tokens of this benchmark's users.
const secret = "a secret of at least thirty-two bytes"

// redisServer is a redis-server without persistence.
type redisServer struct {
	*proc.Process
	url    string
	client *redis.Client
}

func (b *bench) startRedis(ctx context.Context) (*redisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := child(context.WithoutCancel(ctx), "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", b.dir, "--save", "", "--appendonly", "no")
	p, err := proc.Start(ctx, cmd, func(line string) bool { return strings.Contains(line, "eady to accept connections") })
	if err != nil {
		return nil, err
	}
	address := fmt.Sprint("127.0.0.1:", port)
	return &redisServer{p, "redis://" + address, redis.NewClient(&redis.Options{Addr: address})}, nil
}

func (r *redisServer) stop() error { return errors.Join(r.client.Close(), r.Stop()) }

// memory is what Redis uses now, in bytes.
func (r *redisServer) memory(ctx context.Context) (int, error) {
	info, err := r.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	number, _, _ := strings.Cut(rest, "\r\n")
	return strconv.Atoi(number)
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// node is a gateway.
type node struct {
	*proc.Process
	url, admin string
}

// startNodes starts gateways on a new database, without Redis if url is empty. The caller
// stops them.
func (b *bench) startNodes(ctx context.Context, n int, redisURL string) (nodes []*node, err error) {
	database, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err, nodes = errors.Join(err, stopNodes(nodes)), nil
		}
	}()
	for i := range n {
		args := []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json",
			"--data-dir", filepath.Join(b.dir, fmt.Sprint("node", b.made, "-", i)), "--database-url", database, "--jwt-secret", secret,
			"--limit-events", "off", "--limit-sends", "off", "--limit-handshakes", "off", "--limit-connections", "off",
			"--limit-conversations", "off"}
		if redisURL != "" {
			args = append(args, "--redis-url", redisURL)
		}
		cmd := child(context.WithoutCancel(ctx), filepath.Join(b.dir, "xabar"), args...)
		for _, variable := range os.Environ() {
			if !strings.HasPrefix(variable, "XABAR_") {
				cmd.Env = append(cmd.Env, variable)
			}
		}
		var at struct {
			Msg   string `json:"msg"`
			URL   string `json:"url"`
			Admin string `json:"admin_url"`
		}
		p, err := proc.Start(ctx, cmd, func(line string) bool {
			return json.Unmarshal([]byte(line), &at) == nil && at.Msg == "listening"
		})
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, &node{p, at.URL, at.Admin})
	}
	for _, n := range nodes {
		if err := n.ready(ctx); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

func stopNodes(nodes []*node) error {
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Stop())
	}
	return errors.Join(errs...)
}

// ready waits until the node is connected with the others.
func (n *node) ready(ctx context.Context) error {
	return wait(ctx, "a node is ready", func() (bool, error) {
		metrics, err := n.metrics(ctx)
		return err == nil && metrics["xabar_redis_degraded"] == 0, err
	})
}

// metrics are the node's figures without labels.
func (n *node) metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	figures := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); found && err == nil {
			figures[name] = number
		}
	}
	return figures, lines.Err()
}

// wait asks until it is so, for a minute at most.
func wait(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := so()
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("it did not become true that %s: %w", what, ctx.Err())
		}
	}
}

// connect connects a user by name to a node, keeping its own positions.
func (n *node) connect(ctx context.Context, name string, event func(string, []byte, func())) (*lightclient.Client, error) {
	token, _, err := auth.NewMinter([]byte(secret), nil).Mint(chat.UserRef(name), name, time.Hour)
	if err != nil {
		return nil, err
	}
	return lightclient.Dial(ctx, lightclient.Options{
		URL: n.url, Auth: map[string]any{"token": token, "sync": true}, Event: event,
	})
}
