package doctor

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"xabar/internal/testkit/redistest"
)

func examineRedis(t *testing.T, address string, sharded bool) (*Report, []ClockSample) {
	t.Helper()
	var r Report
	return &r, Redis(t.Context(), &r, RedisInput{URL: address, Sharded: sharded, Now: time.Now})
}

// withUser is the URL with credentials.
func withUser(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestAGoodRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, sharded := range []bool{false, true} {
		r, samples := examineRedis(t, server.URL, sharded)
		allWell(t, r)
		want(t, r, "redis", "pub/sub", OK, "come through")
		want(t, r, "redis", "memory", OK, "noeviction")
		want(t, r, "redis", "buffers", OK, "33554432 8388608 60")
		if len(samples) != 1 || samples[0].Ahead.Abs() > time.Second {
			t.Errorf("clock: %v", samples)
		}
	}
	var r, clock Report
	samples := Redis(t.Context(), &r, RedisInput{URL: server.URL, Now: off(-time.Minute)})
	Clock(&clock, off(-time.Minute), samples)
	want(t, &clock, "clock", "time", Problem, "Redis", "ahead of this machine's")
	if keys := server.Do("KEYS", "*"); len(keys.([]any)) != 0 {
		t.Errorf("it leaves %v", keys)
	}
}

func TestSettingsOfRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru",
		"--client-output-buffer-limit", "pubsub 1mb 512kb 10", "--timeout", "300")
	r, _ := examineRedis(t, server.URL, false)
	want(t, r, "redis", "memory", Problem, "allkeys-lru", "look offline", "CONFIG SET maxmemory-policy noeviction")
	want(t, r, "redis", "buffers", Warning, "1048576 524288 10")
	want(t, r, "redis", "timeout", Warning, "300 s")
	server.Do("CONFIG", "SET", "maxmemory", "0")
	server.Do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
	r, _ = examineRedis(t, server.URL, false)
	want(t, r, "redis", "memory", Warning, "allkeys-lru")
	want(t, r, "redis", "buffers", Warning, "fill Redis's memory")
}

func TestWhoMayDoWhatInRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "xabar", "on", ">right-word", "~xabar:*", "&*", "+@all", "-@dangerous", "+info", "+cluster")
	server.Do("ACL", "SETUSER", "narrow", "on", ">right-word", "~other:*", "&other:*", "+@all", "-@dangerous", "+info")
	server.Do("ACL", "SETUSER", "blind", "on", ">right-word", "~*", "&*", "+@all", "-@dangerous")

	r, _ := examineRedis(t, withUser(t, server.URL, "xabar", "right-word"), true)
	allWell(t, r) // this is the one that the guide recommends

	r, _ = examineRedis(t, withUser(t, server.URL, "narrow", "right-word"), false)
	want(t, r, "redis", "keys", Problem, "ACL SETUSER")
	want(t, r, "redis", "pub/sub", Problem, "ACL SETUSER")
	want(t, r, "redis", "pub/sub of rooms", Problem, "ACL SETUSER")
	want(t, r, "redis", "pub/sub by pattern", Problem, "ACL SETUSER")

	r, _ = examineRedis(t, withUser(t, server.URL, "blind", "right-word"), false)
	want(t, r, "redis", "version", Warning, "INFO is refused", "+info")

	r, samples := examineRedis(t, withUser(t, server.URL, "xabar", "hunter2-wrong"), false)
	want(t, r, "redis", "reachable", Problem, "WRONGPASS", "--redis-url")
	noSecret(t, r, "hunter2-wrong")
	if samples != nil || len(r.Findings()) != 1 {
		t.Errorf("it goes on: %s", text(t, r))
	}
	server.Do("CONFIG", "SET", "requirepass", "right-word")
	r, _ = examineRedis(t, server.URL, false)
	want(t, r, "redis", "reachable", Problem, "NOAUTH", "user and password")
}

func TestTheFormOfRedis(t *testing.T) {
	t.Parallel()
	alone := redistest.Start(t)
	host, port, _ := strings.Cut(alone.Addr, ":")
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	r, _ := examineRedis(t, replica.URL, false)
	want(t, r, "redis", "form", Problem, "replica of "+alone.Addr, "master_name")

	part := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", "0")
	r, _ = examineRedis(t, part.URL, false)
	want(t, r, "redis", "form", Problem, "part of a cluster", "?cluster=true")

	r, _ = examineRedis(t, alone.URL+"?cluster=true", false)
	if r.Count(Problem) == 0 {
		t.Errorf("a server that is alone passes for a cluster:\n%s", text(t, r))
	}
	for _, address := range []string{"redis://", "http://:hunter2-wrong@host", "redis://:hunter2-wrong@[bad"} {
		r, _ = examineRedis(t, address, false)
		want(t, r, "redis", "address", Problem, "redis://user:password@host:6379")
		noSecret(t, r, "hunter2-wrong")
	}
	r, _ = examineRedis(t, "redis://:hunter2-wrong@"+closedPort(t), false)
	want(t, r, "redis", "reachable", Problem, "refused", "bind")
	noSecret(t, r, "hunter2-wrong")
	r, _ = examineRedis(t, "redis://"+closedPort(t)+"?master_name=chat", false)
	want(t, r, "redis", "reachable", Problem, "Sentinels")
}

func TestAClusterOfRedis(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	r, _ := examineRedis(t, cluster.URL, true)
	allWell(t, r)
	want(t, r, "redis", "cluster", OK, "sharded")
	r, _ = examineRedis(t, cluster.URL, false)
	allWell(t, r, "cluster")
	want(t, r, "redis", "cluster", Warning, "--redis-sharded")
}

func TestRedisBehindSentinel(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	r, samples := examineRedis(t, sentinel.URL, false)
	allWell(t, r)
	want(t, r, "redis", "form", OK, "sentinel")
	if len(samples) != 1 {
		t.Errorf("clock: %v", samples)
	}
	u, err := url.Parse(sentinel.URL)
	if err != nil {
		t.Fatal(err)
	}
	r, _ = examineRedis(t, "redis://"+u.Host, false) // the Sentinel, taken for a server
	want(t, r, "redis", "form", Problem, "master_name")
}
