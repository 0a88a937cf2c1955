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
	// collectEvery is the interval of the collector, with a tenth of jitter.
	collectEvery = time.Minute
	// collectRest is the pause between batches, as a multiple of the duration of a batch: four fifths of the store's
	// time are left to others. There is also a minimum pause. It is long after tasks and jobs. A batch of them holds
	// the single writer of a file for about 2 ms, and only few claims should have to wait for that.
	collectRest  = 4
	collectPause = 50 * time.Millisecond
	lightPause   = 5 * time.Millisecond // minimum after batches of events and statistics
	// sweepEvery is the interval of searches for leftovers in the bucket, which list the bucket.
	sweepEvery = time.Hour
	// feedEvery is the interval at which an engine without other work for the collector checks for a feed of events.
	feedEvery = time.Hour
)

// collector deletes data that retention no longer keeps, from the oldest to the youngest eligible, in batches. It
// then deletes leftovers in the bucket: unused uploads and unreferenced bytes. Expired fields of inputs come first.
// It runs every minute on every engine that has retention rules, a bucket, or a type with expiring fields; it needs
// no leader. On every engine whose store keeps statistics it merges old statistics, and it shortens the feed of
// events, if there is one.
type collector struct {
	*env
	swept  time.Time // time of the last sweep of the bucket
	merged time.Time // time of the last merge of statistics
	feed   bool      // the store supports feeds
	looked time.Time // time of the last check for a feed
	fed    bool      // there was a feed
}

func newCollector(e *env) *collector {
	return &collector{env: e, feed: e.Store.Capabilities().Has(store.CanKeepFeed)}
}

func (c *collector) run(ctx context.Context) error {
	expires := len(c.Retain) > 0 || c.Values.Bucket != nil || slices.ContainsFunc(c.Handlers, func(h Handler) bool { return h.Expires })
	every := collectEvery // the first time even if there is only a feed
	for {
		if !expires && c.stats == nil && !c.feed {
			return nil
		}
		wait(ctx, every*9/10+rand.N(every/5), nil)
		if ctx.Err() != nil {
			return nil
		}
		if c.feed && (c.fed || time.Since(c.looked) >= feedEvery*4/5) {
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

// expire erases fields of inputs whose retention time has passed.
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

// shorten deletes events older than the retention of the feed.
func (c *collector) shorten(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, c.lease().Call())
	state, err := c.Store.Feed(call, c.Namespace, store.FeedRequest{StateOnly: true})
	cancel()
	switch {
	case errors.Is(err, store.ErrNoFeed):
		c.feed, c.fed = false, false
		return
	case err == nil:
		c.looked, c.fed = time.Now(), state.On || state.Kept < state.Last
	}
	for more := err == nil && c.fed; more && ctx.Err() == nil; {
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, c.lease().Call())
		var got store.CollectResult
		got, err = c.Store.Collect(call, c.Namespace, store.CollectRequest{Feed: true})
		cancel()
		if more = got.More; more {
			wait(ctx, max(lightPause, collectRest*time.Since(start)), nil)
		}
	}
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("remove old events", "error", err)
	}
}

// collectBlobs deletes bytes until ctx ends.
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
	c.swept = time.Now() // also after a failure: try again in an hour
	n, err = c.Values.Sweep(ctx, store.DefaultPending)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.Log.Warn("sweep the bucket", "error", err)
	case n > 0:
		c.Log.Info("removed what killed uploads left in the bucket", "files", n)
	}
}

// collect makes one pass. The next pass continues after an error or a drain.
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
		c.Log.Info("retention removed old tasks and values", "tasks", all.Tasks, "jobs", all.Jobs, "values_of_tasks", all.Dropped, "bytes_freed", all.Freed)
	}
}
