package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"xabar/internal/testkit/faultproxy"
	"xabar/internal/testkit/pgtest"
)

// secret signs the tokens of the soak's users.
const secret = "a secret of at least thirty-two bytes"

// presenceTTL is that of the nodes: shorter than some of the faults.
const presenceTTL = 10 * time.Second

// notifyWait is the shortest that the nodes take.
const notifyWait = 10 * time.Second

// waysToNode is how many proxies lead to each node.
const waysToNode = 2

// cluster is everything that is run and broken.
type cluster struct {
	postgres *pgtest.Server
	database string // URL, without a proxy
	redis    *child
	redisURL string
	client   *redis.Client
	nodes    []*node
}

// node is a gateway, and the proxies around it.
type node struct {
	*child
	number              int // from 1
	url, admin          string
	ways                []*faultproxy.Proxy // of clients
	toRedis, toDatabase *faultproxy.Proxy
}

// startCluster starts everything; what was started is to be closed also after an error.
func startCluster(ctx context.Context, dir, binary string, nodes int) (c *cluster, err error) {
	c = &cluster{}
	c.postgres, err = pgtest.New(pgtest.Options{Durable: true, Settings: map[string]string{"shared_buffers": "128MB"}})
	if err != nil {
		return c, err
	}
	if c.database, err = c.postgres.Database(ctx, "soak"); err != nil {
		return c, err
	}
	if err = c.startRedis(ctx, dir); err != nil {
		return c, err
	}
	for i := range nodes {
		n, err := c.newNode(dir, binary, i+1)
		c.nodes = append(c.nodes, n)
		if err == nil {
			err = n.startUntil(ctx, n.ready)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *cluster) startRedis(ctx context.Context, dir string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("%w: install Redis (Debian: apt-get install redis-server)", err)
	}
	address := fmt.Sprint("127.0.0.1:", port)
	c.redis = &child{name: "redis", path: path, log: filepath.Join(dir, "redis.log"), args: []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"}}
	c.redisURL = address
	c.client = redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	return c.redis.startUntil(ctx, c.redisReady)
}

func (c *cluster) redisReady(ctx context.Context) error { return c.client.Ping(ctx).Err() }

func (c *cluster) newNode(dir, binary string, number int) (*node, error) {
	n := &node{number: number}
	name := fmt.Sprint("node", number)
	public, err := freePort()
	if err != nil {
		return n, err
	}
	admin, err := freePort()
	if err != nil {
		return n, err
	}
	listen, adminListen := fmt.Sprint("127.0.0.1:", public), fmt.Sprint("127.0.0.1:", admin)
	n.url, n.admin = "http://"+listen, "http://"+adminListen
	database, err := url.Parse(c.database)
	if err != nil {
		return n, err
	}
	if n.toDatabase, err = faultproxy.New(database.Host); err != nil {
		return n, err
	}
	if n.toRedis, err = faultproxy.New(c.redisURL); err != nil {
		return n, err
	}
	for range waysToNode {
		way, err := faultproxy.New(listen)
		if err != nil {
			return n, err
		}
		way.Narrow(64 << 10)
		n.ways = append(n.ways, way)
	}
	database.Host = n.toDatabase.Addr
	n.child = &child{name: name, path: binary, log: filepath.Join(dir, name+".log"), args: []string{
		"serve", "--listen", listen, "--admin-listen", adminListen, "--log-format", "json", "--data-dir", filepath.Join(dir, name),
		"--database-url", database.String(), "--redis-url", "redis://" + n.toRedis.Addr, "--jwt-secret", secret,
		"--presence-ttl", presenceTTL.String(), "--notify-wait", notifyWait.String(),
		// All users come from one address, and make their conversations in a moment.
		"--limit-handshakes", "off", "--limit-conversations", "off"}}
	n.env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "XABAR_") }), "GORACE=atexit_sleep_ms=0")
	return n, nil
}

// close ends everything. The nodes have been stopped before, if all went well.
func (c *cluster) close() error {
	var errs []error
	for _, n := range c.nodes {
		if n.child != nil {
			errs = append(errs, n.kill())
		}
		for _, p := range append([]*faultproxy.Proxy{n.toRedis, n.toDatabase}, n.ways...) {
			if p != nil {
				errs = append(errs, p.Close())
			}
		}
	}
	if c.redis != nil {
		errs = append(errs, c.client.Close(), c.redis.kill())
	}
	if c.postgres != nil {
		errs = append(errs, c.postgres.Close())
	}
	return errors.Join(errs...)
}

// heal ends all faults of the proxies, and resumes what is paused.
func (c *cluster) heal() {
	for _, n := range c.nodes {
		for _, p := range append([]*faultproxy.Proxy{n.toRedis, n.toDatabase}, n.ways...) {
			p.Heal()
		}
	}
}

// ready says whether the node is, and is not degraded.
func (n *node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	body, err := get(ctx, n.admin+"/readyz")
	if err == nil && !strings.Contains(body, `"status":"ok"`) {
		err = fmt.Errorf("%s says %s", n.name, strings.TrimSpace(body))
	}
	return err
}

// restart starts the node again and waits until it serves, be it degraded.
func (n *node) restart(ctx context.Context) error {
	return n.startUntil(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := get(ctx, n.admin+"/healthz")
		return err
	})
}

// drain ends the node gracefully; it must exit with 0.
func (n *node) drain() error {
	if err := n.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s ended on SIGTERM with %w", n.name, err)
	}
	return nil
}

// get fetches a page; any status but 200 is an error.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var body strings.Builder
	if _, err := bufio.NewReader(response.Body).WriteTo(&body); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s %.200s", url, response.Status, body.String())
	}
	return body.String(), nil
}

// metrics are a node's figures: each series by itself, and added up over its labels.
type metrics map[string]float64

func (n *node) metrics(ctx context.Context) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := get(ctx, n.admin+"/metrics")
	if err != nil {
		return nil, err
	}
	m := metrics{}
	for line := range strings.Lines(body) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		series := line[:at]
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", n.name, line, err)
		}
		m[series] = value
		if name, _, labelled := strings.Cut(series, "{"); labelled {
			m[name] += value
		}
	}
	return m, nil
}

// collect has the node collect its garbage: twice, so that finalizers and pools are through.
func (n *node) collect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for range 2 {
		if _, err := get(ctx, n.admin+"/debug/pprof/heap?gc=1&debug=0"); err != nil {
			return err
		}
	}
	return nil
}
