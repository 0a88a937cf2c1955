package weaver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ErrQueueFull: a queue has as many waiting tasks as its limit allows (Limit.Pending). Nothing was
// stored.
var ErrQueueFull = errors.New("the queue is full")

// RateLimit lets at most n tasks with this key start in every period per, evenly spaced, whatever their
// types and processes, and up to burst (at least 1) at once after a pause. The others wait without a
// slot, the longest waiting first. Every start counts, also of a retry or after a sleep. A limit that is
// set for "rate:KEY" (Client.SetLimit) replaces n, per and burst.
func RateLimit(key string, n int, per time.Duration, burst int) Option {
	return option.RateLimit.Set(task.Rate{Key: key, Starts: n, Per: per, Burst: burst})
}

// FairBy makes the values of a label take turns: among the due tasks of a type, queue and priority,
// each value starts one task in its turn, or as many as its weight (Limit.Weight of "label:KEY=VALUE").
// Tasks without the label share one turn. A tenant with a million tasks then delays the one of another
// tenant by about a turn.
func FairBy(label string) Option { return option.FairBy.Set(label) }

// Limit restricts the tasks of a queue, a type or a label's value in all processes; see
// Client.SetLimit. Fields that are 0 restrict nothing.
type Limit struct {
	Starts int           // how many tasks start in every Per, evenly spaced
	Per    time.Duration // of Starts
	Burst  int           // how many of them may start at once after a pause; default 1

	Running int // how many tasks run at once
	Pending int // of a queue: how many tasks wait to start; an enqueue beyond is ErrQueueFull
	Weight  int // of a label's value: how many of its tasks start in each turn (FairBy); default 1
}

// LimitInfo is a limit with its use.
type LimitInfo struct {
	Name    string `json:"name"` // queue:NAME, type:NAME, label:KEY=VALUE or rate:KEY
	Starts  int    `json:"starts,omitempty"`
	Per     string `json:"per,omitempty"` // a duration: "1m0s"
	Burst   int    `json:"burst,omitempty"`
	Running int    `json:"running,omitempty"`
	Pending int    `json:"pending,omitempty"`
	Weight  int    `json:"weight,omitempty"`

	InUse     int       `json:"in_use"`              // running tasks, if running is limited
	Waiting   int       `json:"waiting,omitempty"`   // tasks of the queue that wait to start, if pending is limited; at most Pending + 1
	OpenAt    time.Time `json:"open_at,omitzero"`    // no task starts before, because of the rate or a rest; zero: now
	RestUntil time.Time `json:"rest_until,omitzero"` // a handler asked for a rest (SlowDown); zero: none

	UpdatedAt time.Time `json:"updated_at,omitzero"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

func limitInfo(l *store.LimitRow, now time.Time) LimitInfo {
	info := LimitInfo{
		Name: l.Name, Starts: l.Starts, Burst: l.Burst, Running: l.Running, Pending: l.Pending, Weight: l.Weight,
		InUse: l.InUse, Waiting: l.Waiting, UpdatedAt: l.UpdatedAt, By: l.By, Reason: l.Reason,
	}
	if l.Starts > 0 {
		info.Per, info.Burst = l.Per.String(), max(l.Burst, 1)
	}
	if l.RestUntil.After(now) {
		info.RestUntil = l.RestUntil
	}
	if at := l.OpenAt(); at.After(now) {
		info.OpenAt = at
	}
	return info
}

// SetLimit sets or changes a limit; it holds at once, in all processes. name is "queue:NAME",
// "type:NAME", "label:KEY=VALUE" for tasks with FairBy(KEY), or "rate:KEY" for tasks with
// RateLimit(KEY, …). Running tasks stay when a limit is lowered. Error: ErrInvalidOption.
func (c *Client) SetLimit(ctx context.Context, name string, l Limit, opts ...OperateOption) error {
	set := store.Limit(l)
	if err := store.CheckLimit(name, &set); err != nil {
		return fmt.Errorf("set limit: %w: %w", ErrInvalidOption, err)
	}
	_, err := c.operate(ctx, "set limit", opts, func(s operateSettings) store.Command {
		return store.SetLimit{Audit: s.audit, Name: name, Limit: set}
	})
	return err
}

// DeleteLimit deletes a limit that was set. Error: ErrNotFound.
func (c *Client) DeleteLimit(ctx context.Context, name string, opts ...OperateOption) error {
	if err := store.CheckLimitName(name); err != nil {
		return fmt.Errorf("delete limit: %w: %w", ErrNotFound, err)
	}
	_, err := c.operate(ctx, "delete limit", opts, func(s operateSettings) store.Command {
		return store.SetLimit{Audit: s.audit, Name: name, Delete: true}
	})
	return err
}

// Limit returns a limit with its use. Error: ErrNotFound if none of that name is set.
func (c *Client) Limit(ctx context.Context, name string) (LimitInfo, error) {
	if err := store.CheckLimitName(name); err != nil {
		return LimitInfo{}, fmt.Errorf("get: %w: %w", ErrNotFound, err)
	}
	page, err := c.store.Limits(ctx, c.ns, store.LimitFilter{Names: []string{name}})
	if err == nil && (len(page.Limits) == 0 || !page.Limits[0].Set && page.Limits[0].RestUntil.Before(page.Now)) {
		err = fmt.Errorf("%w: no limit %q is set", ErrNotFound, name)
	}
	if err != nil {
		return LimitInfo{}, fmt.Errorf("get: %w", err)
	}
	return limitInfo(&page.Limits[0], page.Now), nil
}

// Limits returns up to limit (0: 100) limits by name, those after a name, with their use.
func (c *Client) Limits(ctx context.Context, after string, limit int) (list []LimitInfo, err error) {
	page, err := c.store.Limits(ctx, c.ns, store.LimitFilter{After: after, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	for i := range page.Limits {
		list = append(list, limitInfo(&page.Limits[i], page.Now))
	}
	return list, nil
}

// SlowDown is RetryAfter that also asks a whole limit to rest for d, at most a day: no further task of
// it starts meanwhile, in any process. key is the key of a RateLimit, or the name of a limit such as
// "queue:billing". A handler returns it when a partner answers 429.
func SlowDown(key string, d time.Duration) error {
	name := key
	if store.CheckLimitName(name) != nil {
		name = store.LimitRate + key
	}
	return &engine.Verdict{
		Kind: engine.RetryAfter, Delay: max(d, 0), Rest: name,
		Err: fmt.Errorf("asked %s to rest for %s", name, d),
	}
}

// configLimits is the actor of limits that a program sets at its start.
const configLimits = "Config.Limits"

// applyLimits sets the limits of the configuration, unless somebody else set the same one.
func (c *Client) applyLimits(limits map[string]Limit) func(context.Context) error {
	return func(ctx context.Context) error {
		page, err := c.store.Limits(ctx, c.ns, store.LimitFilter{Names: slices.Sorted(maps.Keys(limits))})
		if err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		for i := range page.Limits {
			l := &page.Limits[i]
			want := limits[l.Name]
			switch {
			case l.Set && l.By != configLimits:
				c.log.Info("a limit of the configuration is overridden", "limit", l.Name, "by", l.By, "reason", l.Reason)
			case !l.Set || l.Limit != store.Limit(want):
				if err := c.SetLimit(ctx, l.Name, want, By(configLimits)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// atStart returns the functions that run before the first claim.
func (cfg *Config) atStart(c *Client, starts []func(context.Context) error) []func(context.Context) error {
	if len(cfg.Limits) == 0 {
		return starts
	}
	return append([]func(context.Context) error{c.applyLimits(cfg.Limits)}, starts...)
}

// limitProblems returns what is wrong with the limits of the configuration.
func (cfg *Config) limitProblems() (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Limits)) {
		l := store.Limit(cfg.Limits[name])
		if err := store.CheckLimit(name, &l); err != nil {
			problems = append(problems, fmt.Errorf("Limits: %w", err))
		}
	}
	return problems
}

// queueRoom refuses enqueues into queues that are full. It counts at most once a second, and adds what
// this client has enqueued since: between processes the limit of pending tasks holds to within what
// they enqueue in a second.
type queueRoom struct {
	mu     sync.Mutex
	read   time.Time
	queues map[string]*roomOf
}

type roomOf struct{ most, waiting int }

const roomRead = time.Second

// check returns ErrQueueFull if the tasks do not fit into their queues.
func (r *queueRoom) check(ctx context.Context, c *Client, tx store.Tx, tasks []task.New) error {
	if r == nil || !c.store.Capabilities().Has(store.CanLimit) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Nothing is read inside a transaction, which may hold the store's only connection.
	if now := time.Now(); tx == nil && (now.Sub(r.read) >= roomRead || r.read.IsZero()) {
		queues, err := c.pendingLimits(ctx)
		if err != nil {
			return err
		}
		r.queues, r.read = queues, now
	}
	if len(r.queues) == 0 {
		return nil
	}
	more := make(map[string]int)
	for i := range tasks {
		more[tasks[i].Queue]++
	}
	for queue, n := range more {
		if of := r.queues[queue]; of != nil && of.waiting+n > of.most {
			return fmt.Errorf("%w: queue %q has %d tasks that wait to start, its limit is %d: nothing was stored; try again later, or raise the limit %s", ErrQueueFull, queue, min(of.waiting, of.most), of.most, store.LimitQueue+queue)
		}
	}
	for queue, n := range more {
		if of := r.queues[queue]; of != nil {
			of.waiting += n
		}
	}
	return nil
}

// pendingLimits reads the queues with a limit of pending tasks, and their use.
func (c *Client) pendingLimits(ctx context.Context) (map[string]*roomOf, error) {
	var queues map[string]*roomOf
	for after := ""; ; {
		page, err := c.store.Limits(ctx, c.ns, store.LimitFilter{After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for i := range page.Limits {
			l := &page.Limits[i]
			if queue, ok := strings.CutPrefix(l.Name, store.LimitQueue); ok && l.Pending > 0 {
				if queues == nil {
					queues = make(map[string]*roomOf)
				}
				queues[queue] = &roomOf{l.Pending, l.Waiting}
			}
			after = l.Name
		}
		if len(page.Limits) < 1000 {
			return queues, nil
		}
	}
}
