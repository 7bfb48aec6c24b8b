package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is three masters that share the slots.
type Cluster struct {
	Masters []*Server
	URL     string // as rooms.Open takes it
}

// StartCluster starts one and returns when all masters agree that it is complete.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range 3 {
		bus := strconv.Itoa(freePort(t))
		c.Masters = append(c.Masters, Start(t, "--cluster-enabled", "yes", "--cluster-port", bus,
			"--cluster-node-timeout", "2000",
			// a master that has lost its slots stays one
			"--cluster-allow-replica-migration", "no", "--cluster-config-file", "nodes-"+bus+".conf"))
	}
	var addrs []string
	for i, m := range c.Masters {
		from, to := i*16384/3, (i+1)*16384/3-1
		m.Do("CLUSTER", "ADDSLOTSRANGE", from, to)
		m.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i > 0 {
			addrs = append(addrs, "addr="+m.Addr)
			host, port, _ := net.SplitHostPort(c.Masters[0].Addr)
			m.Do("CLUSTER", "MEET", host, port, c.Masters[0].busPort(t))
		}
	}
	c.URL = "redis://" + c.Masters[0].Addr + "?cluster=true&" + strings.Join(addrs, "&")
	for _, m := range c.Masters {
		m.Eventually("cluster_state:ok and three masters", func() bool {
			info := fmt.Sprint(m.Do("CLUSTER", "INFO"))
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:3") &&
				strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return c
}

func (s *Server) busPort(t testing.TB) string {
	t.Helper()
	for i, arg := range s.args() {
		if arg == "--cluster-port" {
			return s.args()[i+1]
		}
	}
	t.Fatal("not a server of a cluster")
	return ""
}

// Do sends one command, on a connection of its own, and fails the test if Redis refuses it. A
// Sentinel closes its servers' connections when it gives them new parts; then Do sends again.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	answer, err := s.do(args...)
	for range 3 {
		if !errors.Is(err, io.EOF) {
			break
		}
		answer, err = s.do(args...)
	}
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return answer
}

func (s *Server) do(args ...any) (any, error) {
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, MaxRetries: -1, PoolSize: 1})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := client.Do(ctx, args...).Result()
	if closing := client.Close(); err == nil {
		err = closing
	}
	return answer, err
}

// Eventually asks again and again until ok, or fails the test.
func (s *Server) Eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			s.t.Fatalf("redis: not so in time: %s", what)
		}
		<-ticker.C
	}
}

// Sentinel is a master and its replica, watched by one Sentinel, which fails over within
// seconds.
type Sentinel struct {
	Master, Replica, Watcher *Server
	URL                      string // as rooms.Open takes it
}

// StartSentinel starts them and returns when the Sentinel knows both servers.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{Master: Start(t)}
	host, port, err := net.SplitHostPort(s.Master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s.Replica = Start(t, "--replicaof", host+" "+port)
	s.Replica.Eventually("the replica is in step", func() bool {
		return strings.Contains(fmt.Sprint(s.Replica.Do("INFO", "replication")), "master_link_status:up")
	})
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n", host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Watcher = start(t, "+monitor master", func() []string { return []string{conf, "--sentinel"} })
	s.URL = "redis://" + s.Watcher.Addr + "?master_name=main"
	s.Watcher.Eventually("the Sentinel knows the replica", func() bool {
		return strings.Contains(fmt.Sprint(s.Watcher.Do("SENTINEL", "replicas", "main")), s.Replica.Addr)
	})
	return s
}

// MoveSlots gives all slots of one master to another, as a resharding does, and returns when
// all masters know. There must be no keys in them.
func (c *Cluster) MoveSlots(from, to int) {
	source, target := c.Masters[from], c.Masters[to]
	sourceID, targetID := source.Do("CLUSTER", "MYID"), target.Do("CLUSTER", "MYID")
	var importing, mine []any
	for slot := from * 16384 / 3; slot <= (from+1)*16384/3-1; slot++ {
		importing = append(importing, []any{"CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID})
		mine = append(mine, []any{"CLUSTER", "SETSLOT", slot, "NODE", targetID})
	}
	target.doAll(importing)
	target.doAll(mine) // it takes a higher epoch by this, which convinces the others
	source.doAll(mine)
	for _, m := range c.Masters {
		m.Eventually("the slots have moved", func() bool {
			shards, ok := m.Do("CLUSTER", "SLOTS").([]any)
			return ok && !strings.Contains(fmt.Sprint(shards...), fmt.Sprint(sourceID))
		})
	}
}

// doAll sends commands in one round trip.
func (s *Server) doAll(commands []any) {
	s.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, MaxRetries: -1, PoolSize: 1})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, args := range commands {
			pipe.Do(ctx, args.([]any)...)
		}
		return nil
	})
	if closing := client.Close(); err == nil {
		err = closing
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// AddReplica starts a replica of a master and returns when it is in step and all masters know it.
func (c *Cluster) AddReplica(master *Server) *Server {
	t := master.t
	t.Helper()
	bus := strconv.Itoa(freePort(t))
	r := Start(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000",
		"--cluster-config-file", "nodes-"+bus+".conf")
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	r.Do("CLUSTER", "MEET", host, port, master.busPort(t))
	id := fmt.Sprint(master.Do("CLUSTER", "MYID"))
	r.Eventually("it knows its master", func() bool {
		_, err := r.do("CLUSTER", "REPLICATE", id)
		return err == nil
	})
	own := fmt.Sprint(r.Do("CLUSTER", "MYID"))
	for _, m := range c.Masters {
		m.Eventually("the replica is known", func() bool {
			return strings.Contains(fmt.Sprint(m.Do("CLUSTER", "REPLICAS", id)), own)
		})
	}
	r.Eventually("the replica is in step", func() bool {
		return strings.Contains(fmt.Sprint(r.Do("INFO", "replication")), "master_link_status:up")
	})
	return r
}
