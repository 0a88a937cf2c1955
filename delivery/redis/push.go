package redis

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/goweaver/weaver/delivery"
)

const (
	// announceEvery is the interval at which a process adds a queue to the set of its type again.
	announceEvery = 10 * time.Second
	// maxQueues limits the set of queues of a type. Those that were not announced for the longest time are removed.
	maxQueues = 1000
	// maxElements limits the elements of one RPUSH.
	maxElements = 1000
	// maxAnnounced is the maximum number of entries in Transport.announced.
	maxAnnounced = 100_000
)

// command is a write to a key. build returns a new Completed at each call, because rueidis recycles them.
type command struct {
	key   string
	build func(rueidis.Builder) rueidis.Completed
}

// Push implements delivery.Transport. It takes every hint.
func (t *Transport) Push(ctx context.Context, namespace string, hints []delivery.Hint) error {
	if len(hints) == 0 {
		return t.explain(ctx, ctx.Err())
	}
	var order []delivery.Lane
	byLane := make(map[delivery.Lane][]string)
	for _, h := range hints {
		if byLane[h.Lane] == nil {
			order = append(order, h.Lane)
		}
		byLane[h.Lane] = append(byLane[h.Lane], element(h.Task))
	}
	k := keysOf(t.target.prefix, namespace)
	var commands []command
	var due []string
	now := time.Now()
	for _, lane := range order {
		key := k.hints(lane)
		commands = append(commands, t.pushLane(key, byLane[lane])...)
		if t.announceDue(key, now) {
			commands = append(commands, announce(k, lane, now)...)
			due = append(due, key)
		}
	}
	err := t.do(ctx, 0, func(ctx context.Context, c rueidis.Client) error { return t.run(ctx, c, commands) })
	if err == nil {
		t.setAnnounced(due, now)
	}
	return err
}

// pushLane appends to a list and drops what is too much.
func (t *Transport) pushLane(key string, elements []string) []command {
	var commands []command
	for some := range slices.Chunk(elements, maxElements) {
		commands = append(commands, command{key, func(b rueidis.Builder) rueidis.Completed {
			return b.Rpush().Key(key).Element(some...).Build()
		}})
	}
	return append(commands,
		command{key, func(b rueidis.Builder) rueidis.Completed {
			return b.Ltrim().Key(key).Start(0).Stop(int64(t.max) - 1).Build()
		}},
		expire(key))
}

// announce adds a queue to the set of its type, and wakes a Pop that does not know the queue.
func announce(k keys, lane delivery.Lane, now time.Time) []command {
	set, news := k.queues(lane.Type), k.news(lane.Type)
	return []command{
		{set, func(b rueidis.Builder) rueidis.Completed {
			return b.Zadd().Key(set).ScoreMember().ScoreMember(float64(now.Unix()), lane.Queue).Build()
		}},
		{set, func(b rueidis.Builder) rueidis.Completed {
			return b.Zremrangebyrank().Key(set).Start(0).Stop(-maxQueues - 1).Build()
		}},
		expire(set),
		{news, func(b rueidis.Builder) rueidis.Completed {
			return b.Rpush().Key(news).Element(strconv.FormatInt(now.Unix(), 10)).Build()
		}},
		{news, func(b rueidis.Builder) rueidis.Completed { return b.Ltrim().Key(news).Start(0).Stop(9).Build() }},
		expire(news),
	}
}

func expire(key string) command {
	return command{key, func(b rueidis.Builder) rueidis.Completed {
		return b.Expire().Key(key).Seconds(int64(keyTTL / time.Second)).Build()
	}}
}

// run sends commands together. It deletes keys of a wrong type and repeats their commands once.
func (t *Transport) run(ctx context.Context, c rueidis.Client, commands []command) error {
	wrong := make(map[string]bool)
	err := send(ctx, c, commands, func(key string) { wrong[key] = true })
	if err != nil || len(wrong) == 0 {
		return err
	}
	var again []command
	for key := range wrong {
		again = append(again, command{key, func(b rueidis.Builder) rueidis.Completed { return b.Unlink().Key(key).Build() }})
	}
	t.stats.wrongType.Add(int64(len(wrong)))
	for _, cmd := range commands {
		if wrong[cmd.key] {
			again = append(again, cmd)
		}
	}
	return send(ctx, c, again, nil)
}

// send sends commands together and returns the first error. wrongType, if not nil, takes the keys of a wrong type.
func send(ctx context.Context, c rueidis.Client, commands []command, wrongType func(key string)) error {
	built := make([]rueidis.Completed, len(commands))
	for i, cmd := range commands {
		built[i] = cmd.build(c.B())
	}
	var first error
	for i, result := range c.DoMulti(ctx, built...) {
		switch err := result.Error(); {
		case err == nil:
		case wrongType != nil && redisError(err, "WRONGTYPE"):
			wrongType(commands[i].key)
		case first == nil:
			first = err
		}
	}
	return first
}

// announceDue reports whether a lane's queue has to be announced.
func (t *Transport) announceDue(key string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.announced[key]
	return !ok || now.Sub(at) >= announceEvery
}

func (t *Transport) setAnnounced(keys []string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.announced) > maxAnnounced {
		clear(t.announced)
	}
	for _, key := range keys {
		t.announced[key] = now
	}
}
