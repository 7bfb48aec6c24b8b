package rooms

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// slot is a command to publish that is used for one publication after the other: what go-redis
// makes for each anew (the command, its arguments, a string, a slice) is made once.
type slot struct {
	verb    verb
	channel argument
	payload argument
	publish *redis.IntCmd // with the two above
	sent    *redis.IntCmd // publish, or one that go-redis has made; nil: none yet
}

// argument is an argument of a command that changes its value.
type argument []byte

// MarshalBinary implements encoding.BinaryMarshaler, by which go-redis reads it.
func (a *argument) MarshalBinary() ([]byte, error) { return *a, nil }

func newSlot() *slot {
	s := &slot{}
	s.publish = redis.NewIntCmd(context.Background(), "publish", &s.channel, &s.payload)
	return s
}

// result is what became of it, in a round trip that ended with err.
func (s *slot) result(err error) error {
	if s.sent == nil {
		return err
	}
	return s.sent.Err()
}

// fill makes commands of a batch, one for each channel of each publication, in order.
func (p *publisher) fill(batch []publication) []*slot {
	n := 0
	for i := range batch {
		list := batch[i].addresses()
		for j := range list {
			if n == len(p.slots) {
				p.slots = append(p.slots, newSlot())
			}
			s := p.slots[n]
			s.verb, s.sent = list[j].verb, nil
			s.channel, s.payload = list[j].append(s.channel[:0]), batch[i].payload
			n++
		}
	}
	return p.slots[:n]
}

// pipeline sends commands. Ordinary publications to a cluster go through one of its masters, so
// that they keep their order.
func (p *publisher) pipeline(ctx context.Context, slots []*slot) error {
	if p.cluster == nil {
		_, err := p.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			return errors.Join(queue(ctx, pipe, slots, classic), queue(ctx, pipe, slots, sharded))
		})
		return err
	}
	master, err := p.cluster.MasterForKey(ctx, clusterKey)
	if err != nil {
		return err
	}
	err = errors.Join(p.exec(ctx, master.Pipeline(), slots, classic), p.exec(ctx, p.cluster.Pipeline(), slots, sharded))
	if err != nil {
		p.cluster.ReloadState(ctx)
	}
	return err
}

func (p *publisher) exec(ctx context.Context, pipe redis.Pipeliner, slots []*slot, v verb) error {
	if err := queue(ctx, pipe, slots, v); err != nil || pipe.Len() == 0 {
		return err
	}
	_, err := pipe.Exec(ctx)
	return err
}

// queue gives the pipeline the commands of one kind.
func queue(ctx context.Context, pipe redis.Pipeliner, slots []*slot, v verb) error {
	for _, s := range slots {
		if s.verb != v {
			continue
		}
		if v == sharded { // a command that go-redis can read the channel of, to find its server
			s.sent = pipe.SPublish(ctx, string(s.channel), []byte(s.payload))
			continue
		}
		s.publish.SetErr(nil)
		s.sent = s.publish
		if err := pipe.Process(ctx, s.sent); err != nil {
			return err
		}
	}
	return nil
}
