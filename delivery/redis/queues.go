package redis

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

const (
	// rereadAfter is the age at which a Pop reads a set of queues again.
	rereadAfter = time.Second
	// rememberFor is the time for which Pop keeps a queue after its last read from the set. Redis may have lost the set.
	rememberFor = time.Minute
)

// known holds the queues of a type that a process knows. Transport.mu guards it.
type known struct {
	read   time.Time
	queues map[string]time.Time // queue → time when it was read last
}

// readQueues returns the queues of each type. It asks Redis for those that it has not read for a second.
func (p *popper) readQueues(ctx context.Context, c rueidis.Client, types []string) ([][]string, error) {
	now := time.Now()
	stale := p.staleTypes(types, now)
	p.reread = false
	if len(stale) > 0 {
		reads := make([]rueidis.Completed, len(stale))
		for i, typ := range stale {
			reads[i] = c.B().Zrevrange().Key(p.queues(typ)).Start(0).Stop(maxQueues - 1).Build()
		}
		for i, result := range c.DoMulti(ctx, reads...) {
			names, err := result.AsStrSlice()
			if redisError(err, "WRONGTYPE") {
				p.stats.wrongType.Add(1)
				names, err = nil, c.Do(ctx, c.B().Unlink().Key(p.queues(stale[i])).Build()).Error()
			}
			if err != nil {
				return nil, err
			}
			p.learn(stale[i], names, now)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	queues := make([][]string, len(types))
	for i, typ := range types {
		if k := p.known[p.queues(typ)]; k != nil {
			queues[i] = slices.Sorted(maps.Keys(k.queues))
		}
	}
	return queues, nil
}

func (p *popper) staleTypes(types []string, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stale []string
	for _, typ := range types {
		if k := p.known[p.queues(typ)]; p.reread || k == nil || now.Sub(k.read) >= rereadAfter {
			stale = append(stale, typ)
		}
	}
	return stale
}

// learn notes the queues that were read for a type and forgets old ones.
func (p *popper) learn(typ string, names []string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.queues(typ)
	k := p.Transport.known[key]
	if k == nil {
		k = &known{queues: make(map[string]time.Time)}
		p.Transport.known[key] = k
	}
	k.read = now
	for _, name := range names {
		k.queues[name] = now
	}
	maps.DeleteFunc(k.queues, func(_ string, at time.Time) bool {
		return now.Sub(at) > rememberFor || len(k.queues) > 2*maxQueues && at.Before(now)
	})
}
