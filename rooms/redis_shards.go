package rooms

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// slotCount is the number of hash slots of a cluster.
const slotCount = 16384

// shards are the links for sharded channels in a cluster: one to each master, as only the
// master of a channel's slot takes its subscription. When slots move or a master is
// replaced, all are made anew.
type shards struct {
	server    *server
	sub       *subscriber
	log       *slog.Logger
	recovered func(since time.Time)
	doubt     chan struct{} // holds one: the slots may have moved

	// limbo takes subscriptions as long as the slots are not known. It is never connected.
	limbo *link
	table atomic.Pointer[slotTable]
}

// slotTable says which link has a slot. It is never changed.
type slotTable struct {
	owners [slotCount]string // addresses
	links  map[string]*link
	stop   context.CancelFunc
	done   *sync.WaitGroup
}

func newShards(s *server, sub *subscriber, log *slog.Logger, recovered func(time.Time)) *shards {
	sh := &shards{server: s, sub: sub, log: log, recovered: recovered, doubt: make(chan struct{}, 1)}
	sh.limbo = newLink(sub, log, s.conn, nil)
	return sh
}

// link is the one for a channel.
func (sh *shards) link(channel string) *link {
	t := sh.table.Load()
	if t == nil {
		return sh.limbo
	}
	if l := t.links[t.owners[slotOf(channel)]]; l != nil {
		return l
	}
	return sh.limbo
}

// up says that the slots are known and every link hears its channels.
func (sh *shards) up() bool {
	t := sh.table.Load()
	if t == nil {
		return false
	}
	for _, l := range t.links {
		if !l.up() {
			return false
		}
	}
	return true
}

// suspect has the slots looked up again.
func (sh *shards) suspect(error) {
	select {
	case sh.doubt <- struct{}{}:
	default:
	}
}

// run looks after the links until ctx ends, and returns when they have ended.
func (sh *shards) run(ctx context.Context) {
	const pause = 500 * time.Millisecond // between two looks
	for ctx.Err() == nil {
		if err := sh.look(ctx); err != nil && ctx.Err() == nil {
			sh.log.Warn("the slots of the Redis cluster are not known", "error", err)
			sh.suspect(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		select {
		case <-ctx.Done():
		case <-sh.doubt:
		}
	}
	if t := sh.table.Load(); t != nil {
		t.stop()
		t.done.Wait()
	}
}

// look compares the cluster's slots with the table and makes a new one if they differ.
func (sh *shards) look(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, 2*ioTimeout)
	defer cancel()
	//nolint:staticcheck // CLUSTER SHARDS, its successor, gives no address that is ready to dial
	slots, err := sh.server.cluster.ClusterSlots(asking).Result()
	if err != nil {
		return err
	}
	var owners [slotCount]string
	for _, part := range slots {
		if len(part.Nodes) == 0 {
			continue
		}
		for slot := max(part.Start, 0); slot <= part.End && slot < slotCount; slot++ {
			owners[slot] = part.Nodes[0].Addr
		}
	}
	old := sh.table.Load()
	if old != nil && old.owners == owners {
		return nil
	}
	sh.replace(ctx, old, owners)
	return nil
}

func (sh *shards) replace(ctx context.Context, old *slotTable, owners [slotCount]string) {
	former := []*link{sh.limbo}
	lost := time.Now()
	if old != nil {
		old.stop()
		old.done.Wait()
		former = append(former, slices.Collect(maps.Values(old.links))...)
		sh.sub.mu.RLock()
		for _, l := range old.links {
			if l.lost.Before(lost) {
				lost = l.lost
			}
		}
		sh.sub.mu.RUnlock()
	}
	t := &slotTable{owners: owners, links: map[string]*link{}, done: &sync.WaitGroup{}}
	running, stop := context.WithCancel(ctx)
	t.stop = stop
	for _, addr := range owners {
		if addr == "" || t.links[addr] != nil {
			continue
		}
		l := newLink(sh.sub, sh.log.With("server", addr), sh.server.conn, func(context.Context) (string, error) { return addr, nil })
		l.slots, l.recovered, l.failed = slotOf, sh.recovered, sh.suspect
		l.missing, l.lost = old != nil, lost
		t.links[addr] = l
	}
	sh.table.Store(t)
	sh.sub.move(former)
	for _, l := range t.links {
		t.done.Go(func() { l.run(running) })
	}
	sh.log.Info("the Redis cluster's slots are known", "masters", len(t.links))
}

// slotOf is a channel's hash slot: CRC-16/XMODEM of the name, or of its first non-empty part
// in braces (Redis Cluster specification, "Hash tags").
func slotOf(channel string) int {
	if open := strings.IndexByte(channel, '{'); open >= 0 {
		if n := strings.IndexByte(channel[open+1:], '}'); n > 0 {
			channel = channel[open+1 : open+1+n]
		}
	}
	var crc uint16
	for i := range len(channel) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^channel[i]]
	}
	return int(crc) % slotCount
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// serverCount sums PUBSUB NUMSUB or SHARDNUMSUB of a channel over a deployment's masters.
func (s *server) serverCount(ctx context.Context, v verb, channel string) (int, error) {
	count := func(ctx context.Context, c redis.Cmdable) (int, error) {
		var result *redis.MapStringIntCmd
		if v == sharded {
			result = c.PubSubShardNumSub(ctx, channel)
		} else {
			result = c.PubSubNumSub(ctx, channel)
		}
		found, err := result.Result()
		return int(found[channel]), err
	}
	if s.cluster == nil {
		return count(ctx, s.client)
	}
	var total atomic.Int64
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		n, err := count(ctx, c)
		total.Add(int64(n))
		return err
	})
	return int(total.Load()), err
}
