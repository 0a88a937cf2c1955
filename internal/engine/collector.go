package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
)

const (
	// collectEvery is how often the collector looks, with a tenth of jitter.
	collectEvery = time.Minute
	// collectRest is between two bites: as many times as the bite took, so that four
	// fifths of the store's time are left to others, and a pause at least. That after
	// tasks and jobs is long: a bite of them keeps the one writer of a file for some
	// 2 ms, which few claims may meet.
	collectRest  = 4
	collectPause = 50 * time.Millisecond
	lightPause   = 5 * time.Millisecond // after bites of events and statistics
	// sweepEvery is how often leftovers are looked for in the bucket: it is listed.
	sweepEvery = time.Hour
	// feedEvery is how often an engine with nothing else to collect looks whether there
	// is a feed of events by now.
	feedEvery = time.Hour
)

// collector removes what the rules of retention no longer keep, from the oldest to
// what is too young, in bites, and then what is left in the bucket: uploads that
// nothing used, and bytes that nothing names any more. Fields of inputs go before both.
// It runs on every engine that has rules, a bucket, or a type with such fields, every
// minute: it needs no leader. On every engine whose store keeps statistics it makes old
// ones coarser, and it shortens the feed of events, if one is kept.
type collector struct {
	*env
	swept  time.Time       // when the bucket was looked through
	merged time.Time       // when statistics were
	feed   store.EventFeed // nil: the store keeps none
	looked time.Time       // for a feed, and saw whether there is one
	fed    bool            // there was one
}

func newCollector(e *env) *collector {
	c := &collector{env: e}
	c.feed, _ = e.Store.(store.EventFeed)
	return c
}

func (c *collector) run(ctx context.Context) error {
	expires := len(c.Retain) > 0 || c.Values.Bucket != nil || slices.ContainsFunc(c.Handlers, func(h Handler) bool { return h.Expires })
	every := collectEvery // the first time, even if there is only a feed
	for {
		if !expires && c.stats == nil && c.feed == nil {
			return nil
		}
		wait(ctx, every*9/10+rand.N(every/5), nil)
		if ctx.Err() != nil {
			return nil
		}
		if c.feed != nil && (c.fed || time.Since(c.looked) >= feedEvery*4/5) {
			c.shorten(ctx)
		}
		if every = collectEvery; !expires && c.stats == nil && !c.fed && !c.looked.IsZero() {
			every = feedEvery
		}
		if expires {
			c.expire(ctx)
		}
		if len(c.Retain) > 0 {
			c.collect(ctx)
		}
		if c.Values.Bucket != nil {
			c.collectBlobs(ctx)
		}
		c.mergeStats(ctx)
	}
}

// expire erases fields of inputs whose time has passed.
func (c *collector) expire(ctx context.Context) {
	n, err := c.Values.Expire(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.Log.Warn("expire fields of inputs", "error", err)
	case n > 0:
		c.Log.Info("erased fields of inputs whose time has passed", "tasks", n)
	}
}

// shorten removes events that are older than the feed keeps them.
func (c *collector) shorten(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, c.lease().Call())
	state, err := c.feed.Feed(call, c.Namespace)
	cancel()
	switch {
	case errors.Is(err, store.ErrNoFeed):
		c.feed, c.fed = nil, false
		return
	case err == nil:
		c.looked, c.fed = time.Now(), state.On || state.Kept < state.Last
	}
	for more := err == nil && c.fed; more && ctx.Err() == nil; {
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, c.lease().Call())
		more, err = c.feed.PruneFeed(call, c.Namespace)
		cancel()
		if more {
			wait(ctx, max(lightPause, collectRest*time.Since(start)), nil)
		}
	}
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("remove old events", "error", err)
	}
}

// collectBlobs deletes bytes, as far as it comes before ctx ends.
func (c *collector) collectBlobs(ctx context.Context) {
	n, err := c.Values.Collect(ctx, store.DefaultPending)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.Log.Warn("collect blobs", "error", err)
	case n > 0:
		c.Log.Debug("collected blobs", "deleted", n)
	}
	if ctx.Err() != nil || time.Since(c.swept) < sweepEvery {
		return
	}
	c.swept = time.Now() // also when it fails: the next hour
	n, err = c.Values.Sweep(ctx, store.DefaultPending)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.Log.Warn("sweep the bucket", "error", err)
	case n > 0:
		c.Log.Info("removed what killed uploads left in the bucket", "files", n)
	}
}

// collect makes one pass. What an error or a drain leaves is for the next one.
func (c *collector) collect(ctx context.Context) {
	req := store.CollectRequest{Retain: c.Retain}
	var all store.CollectResult
	for ctx.Err() == nil {
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, c.lease().Call())
		got, err := c.Store.Collect(call, c.Namespace, req)
		cancel()
		c.called("collect", start, err)
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Warn("collect", "error", err)
			}
			break
		}
		all.Add(got)
		if got.Done() {
			break
		}
		req.After = got.Next
		wait(ctx, max(collectPause, collectRest*time.Since(start)), nil)
	}
	if all.Tasks+all.Jobs+all.Dropped > 0 {
		c.Log.Info("removed what the rules of retention no longer keep", "tasks", all.Tasks, "jobs", all.Jobs, "values_of_tasks", all.Dropped, "bytes_freed", all.Freed)
	}
}
