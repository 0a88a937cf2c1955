package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/task"
)

const (
	// maxBlock limits the time for which one command blocks, and so the delay of a queue that is new to a waiting Pop.
	maxBlock = time.Second
	// maxPopped limits the elements of one reply.
	maxPopped = 10_000
	// maxKeys limits the keys of one command. Calls take turns with the rest.
	maxKeys = 1000
	// maxRounds limits the commands of a Pop that wait for nothing.
	maxRounds = 8
	// immediate is the age of a reply that did not wait for a push.
	immediate = 2 * time.Millisecond
)

// element returns a list's element for a task.
func element(id task.ID) string {
	if id.IsZero() {
		return "00000000000000000000000000"
	}
	return id.String()
}

// Pop implements delivery.Transport. It may return fewer hints than there are.
func (t *Transport) Pop(ctx context.Context, namespace string, lanes []delivery.Lane, limit int, wait time.Duration) ([]task.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.group.Context().Err() != nil {
		return nil, delivery.ErrClosed
	}
	if limit < 1 {
		return nil, nil
	}
	p := popper{Transport: t, keys: keysOf(t.target.prefix, namespace), lanes: lanes, limit: min(limit, maxPopped), end: time.Now().Add(wait)}
	if len(lanes) == 0 {
		return nil, p.sleep(ctx, wait)
	}
	for late := 0; ; {
		block := max(min(time.Until(p.end), maxBlock), 0)
		err := t.do(ctx, block, func(ctx context.Context, c rueidis.Client) error { return p.pop(ctx, c, block) })
		if len(p.ids) > 0 {
			return p.ids, nil
		}
		if err != nil {
			return nil, err
		}
		if time.Until(p.end) <= 0 {
			if late++; p.idle || late > maxRounds {
				return nil, nil
			}
		}
		if p.repairs > maxRounds {
			return nil, fmt.Errorf("the Redis at %s: keys of other types appear again and again under %q; another program must use another Options.Prefix", t.target.addr(), p.tag)
		}
	}
}

// popper is one call of Pop.
type popper struct {
	*Transport
	keys
	lanes   []delivery.Lane
	limit   int
	end     time.Time
	ids     []task.ID
	idle    bool // the last command found nothing
	repairs int
	reread  bool // a queue was added to a set
}

// sleep waits for the time of a Pop without lanes.
func (p *popper) sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.group.Context().Done():
		return delivery.ErrClosed
	}
}

// pop waits for hints at most for a time, and then takes what else is there.
func (p *popper) pop(ctx context.Context, c rueidis.Client, block time.Duration) error {
	keys, news, err := p.readKeys(ctx, c)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := p.take(ctx, c, keys, news, block); err != nil || len(p.ids) == 0 || len(keys) == 1 || time.Since(start) > immediate {
		return err
	}
	for range maxRounds - 1 {
		n := len(p.ids)
		if n == p.limit {
			break
		}
		if err := p.take(ctx, c, keys, news, 0); err != nil || len(p.ids) == n {
			break // there are hints to return
		}
	}
	return nil
}

// take pops from the first key that has elements.
func (p *popper) take(ctx context.Context, c rueidis.Client, keys []string, news map[string]bool, block time.Duration) error {
	n := int64(p.limit - len(p.ids))
	var cmd rueidis.Completed
	if block >= time.Millisecond {
		cmd = c.B().Blmpop().Timeout(block.Seconds()).Numkeys(int64(len(keys))).Key(keys...).Left().Count(n).Build()
	} else {
		cmd = c.B().Lmpop().Numkeys(int64(len(keys))).Key(keys...).Left().Count(n).Build()
	}
	popped, err := c.Do(ctx, cmd).AsLMPop()
	switch {
	case rueidis.IsRedisNil(err):
		p.idle = true
		return nil
	case redisError(err, "WRONGTYPE"):
		p.idle = false
		p.repairs++
		return p.repair(ctx, c, keys)
	case err != nil:
		return err
	}
	p.idle = false
	if news[popped.Key] {
		p.reread = true
		return nil
	}
	for _, value := range popped.Values {
		if id, err := task.ParseID(value); err == nil {
			p.ids = append(p.ids, id)
		} else {
			p.stats.rubbish.Add(1)
		}
	}
	return nil
}

// repair deletes keys that are not lists. They have our prefix, and nothing in Redis is worth keeping.
func (p *popper) repair(ctx context.Context, c rueidis.Client, keys []string) error {
	types := make([]rueidis.Completed, len(keys))
	for i, key := range keys {
		types[i] = c.B().Type().Key(key).Build()
	}
	for i, result := range c.DoMulti(ctx, types...) {
		kind, err := result.ToString()
		if err != nil {
			return err
		}
		if kind == "list" || kind == "none" {
			continue
		}
		if err := c.Do(ctx, c.B().Unlink().Key(keys[i]).Build()).Error(); err != nil {
			return err
		}
		p.stats.wrongType.Add(1)
	}
	return nil
}

// readKeys returns the keys of the lanes, rotated, and which of them hold news.
func (p *popper) readKeys(ctx context.Context, c rueidis.Client) (list []string, news map[string]bool, err error) {
	var types []string
	for _, lane := range p.lanes {
		if lane.Queue != "" {
			list = append(list, p.hints(lane))
		} else if !slices.Contains(types, lane.Type) {
			types = append(types, lane.Type)
		}
	}
	if len(types) > 0 {
		queues, err := p.readQueues(ctx, c, types)
		if err != nil {
			return nil, nil, err
		}
		news = make(map[string]bool)
		for i, typ := range types {
			for _, queue := range queues[i] {
				list = append(list, p.hints(delivery.Lane{Queue: queue, Type: typ}))
			}
			news[p.news(typ)] = true
		}
	}
	if len(list) > 0 {
		turn := int(p.turn.Add(1) % uint64(len(list)))
		list = append(list[turn:len(list):len(list)], list[:turn]...)
		list = list[:min(len(list), maxKeys)]
	}
	for key := range news { // behind all hints, so that they delay none
		list = append(list, key)
	}
	return list, news, nil
}
