package rooms

import (
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// Kind is the form in which Redis is run.
type Kind string

// The kinds.
const (
	Standalone Kind = "standalone"
	Sentinel   Kind = "sentinel"
	Cluster    Kind = "cluster"
)

// Client reaches the Redis that url names as Open does, for tools that examine it. The caller
// closes it. Errors never repeat url.
func Client(url string) (redis.UniversalClient, Kind, error) {
	s, err := parseURL(url)
	if err != nil {
		return nil, "", err
	}
	logDriver.Do(func() { redis.SetLogger(driverLog{slog.New(slog.DiscardHandler)}) })
	switch {
	case s.cluster != nil:
		return s.client, Cluster, nil
	case s.sentinel:
		return s.client, Sentinel, nil
	default:
		return s.client, Standalone, nil
	}
}
