package engine

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// statsEvery is the interval of writes.
	statsEvery = 5 * time.Second
	// statsMergeEvery is the interval of merges of old statistics.
	statsMergeEvery = 10 * time.Minute
	// statsKeys is the maximum number of keys per slot, and per shard between two writes: further keys are counted as
	// store.StatsOther.
	statsKeys = 500
	// statsSlots is the maximum number of slots kept while they cannot be written.
	statsSlots = 60
	// statsTimeout bounds one write.
	statsTimeout = 5 * time.Second

	statShards = 8
)

// stats counts the ended attempts of this worker and writes the counts.
//
// Counting adds to a map of one of several shards, chosen by the attempt's ID. It involves neither slots nor the
// store. Every 5 seconds, shortly after a multiple of 5 seconds by the store's clock, the shards are emptied into the
// current slot. All rows of that slot are then written: they replace rows that were written before or whose reply was
// lost. While there are no new counts the role sleeps. Crash here: the counts since the last write are lost.
//
// It belongs to the worker, and so to all Runs of an Engine: a slot shared by two Runs is written with the counts of
// both. nil counts nothing.
type stats struct {
	ns     string
	worker store.WorkerID
	off    bool // neither counts nor writes
	shards [statShards]statShard
	ahead  atomic.Int64 // store's clock minus this machine's

	counted atomic.Bool // since the shards were emptied
	wake    signal      // wakes the writing role: there are counts

	mu      sync.Mutex // held while counts are written
	slots   []statSlot // unwritten ones and the last one; the oldest first
	refused bool       // the last write failed
}

// statKey is the key of a count of attempts.
type statKey struct {
	typ, queue string
	outcome    task.Outcome
	kind       task.ErrorKind
}

// statRows holds counts by key, at most statsKeys in addition to those of store.StatsOther.
type statRows map[statKey]*store.StatRow

// of returns the row of a key.
func (rows statRows) of(key statKey) *store.StatRow {
	row := rows[key]
	if row == nil && len(rows) >= statsKeys {
		key.typ, key.queue = store.StatsOther, store.StatsOther
		row = rows[key]
	}
	if row == nil {
		row = &store.StatRow{StatKey: store.StatKey{Type: key.typ, Queue: key.queue, Outcome: key.outcome, ErrorKind: key.kind}}
		rows[key] = row
	}
	return row
}

type statShard struct {
	mu   sync.Mutex
	rows statRows
	_    [40]byte // padding to a cache line
}

// statSlot is the current slot of this worker, or an unwritten one.
type statSlot struct {
	at        time.Time
	rows      statRows
	unwritten map[*store.StatRow]struct{}
}

// newStats returns nil for a store without statistics.
func newStats(s store.Store, ns string, worker store.WorkerID) *stats {
	if !s.Capabilities().Has(store.CanKeepStats) {
		return nil
	}
	c := &stats{ns: ns, worker: worker, wake: newSignal()}
	for i := range c.shards {
		c.shards[i].rows = make(statRows)
	}
	return c
}

// count counts an attempt whose end is durable.
func (c *stats) count(a *Attempt, fin *store.Finish) {
	if c == nil || c.off {
		return
	}
	key := statKey{typ: a.task.Type, queue: a.task.Queue, outcome: fin.Outcome}
	if fin.Error != nil {
		key.kind = fin.Error.Kind
	}
	sh := &c.shards[a.task.ID[len(a.task.ID)-1]%statShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	row := sh.rows.of(key)
	row.Count++
	row.Run.Add(fin.Elapsed)
	row.Wait.Add(a.waited)
	c.note()
}

// note wakes the writing role once there is a count in a shard.
func (c *stats) note() {
	if !c.counted.Load() && c.counted.CompareAndSwap(false, true) {
		c.wake.Set()
	}
}

// countLost counts an attempt whose lease this worker took away. Its run time is unknown.
func (c *stats) countLost(t *task.Task) {
	sh := &c.shards[0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.rows.of(statKey{t.Type, t.Queue, task.OutcomeLeaseLost, task.KindLeaseExpired}).Count++
	c.note()
}

// setClock sets the store's clock.
func (c *stats) setClock(now time.Time) {
	if c != nil && !now.IsZero() {
		c.ahead.Store(int64(time.Until(now)))
	}
}

// now estimates the store's clock from the last claim.
func (c *stats) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// storeTime estimates the store's clock from the last claim.
func (e *env) storeTime() time.Time {
	if e.stats == nil {
		return time.Now()
	}
	return e.stats.now()
}

// take returns the counts since its last call.
func (c *stats) take() []statRows {
	var all []statRows
	c.counted.Store(false) // before the shards are read
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		if len(sh.rows) > 0 {
			all = append(all, sh.rows)
			sh.rows = make(statRows, len(sh.rows))
		}
		sh.mu.Unlock()
	}
	return all
}

// statWriter is the role that writes the counts of a worker.
type statWriter struct {
	*env
	lag time.Duration // after a multiple of statsEvery, so that workers do not all write at once
}

func newStatWriter(e *env) *statWriter {
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.worker)) // never fails
	return &statWriter{env: e, lag: time.Duration(h.Sum32()%1000) * time.Millisecond}
}

func (w *statWriter) run(ctx context.Context) error {
	if w.stats == nil || w.stats.off {
		return nil
	}
	for left := false; ctx.Err() == nil; {
		if !left && !w.stats.counted.Load() {
			wait(ctx, -1, w.stats.wake)
		}
		now := w.stats.now().Add(-w.lag)
		wait(ctx, store.SlotOf(now, statsEvery).Add(statsEvery).Sub(now), nil)
		if ctx.Err() == nil {
			left = w.flush(ctx)
		}
	}
	return nil
}

// flush writes the counts. Counts that cannot be written now are written next time.
func (w *statWriter) flush(ctx context.Context) (left bool) {
	c := w.stats
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gather()
	var rows []*store.StatRow
	for i := range c.slots {
		for r := range c.slots[i].unwritten {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *store.StatRow) int { return a.Compare(&b.StatKey) })
	for part := range slices.Chunk(rows, store.MaxStatsWrite/2) {
		err := w.write(ctx, part)
		if store.Refused(err) { // it would be refused again and block the others
			w.Log.Error("statistics are lost: the store refuses them", "rows", len(part), "error", err)
			err = nil
		}
		if err != nil {
			if !c.refused && ctx.Err() == nil {
				w.repeats.warn(w.Log, "write statistics: they are kept and written later", err)
			}
			c.refused, left = true, true
			break
		}
		c.refused = false
		for i := range c.slots {
			for _, r := range part {
				delete(c.slots[i].unwritten, r)
			}
		}
	}
	if lost := c.forget(); lost > 0 {
		w.Log.Warn("statistics are lost: they could not be written for too long", "attempts", lost)
	}
	return left
}

func (w *statWriter) write(ctx context.Context, part []*store.StatRow) error {
	rows := make([]store.StatRow, len(part))
	for i, r := range part {
		rows[i] = *r
	}
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	began := time.Now()
	err := w.Store.WriteStats(ctx, w.Namespace, rows...)
	w.called("write_stats", began, err)
	return err
}

// gather adds the counts to the slot of the time when they were counted, by the middle of that time. Slots never go
// back: an older one may have been forgotten.
func (c *stats) gather() {
	counted := c.take()
	at := store.SlotOf(c.now().Add(-statsEvery/2), store.StatsSlot)
	last := len(c.slots) - 1
	if last >= 0 && at.Before(c.slots[last].at) {
		at = c.slots[last].at
	}
	if last < 0 || at.After(c.slots[last].at) {
		if len(counted) == 0 {
			return
		}
		c.slots = append(c.slots, statSlot{at: at, rows: make(statRows), unwritten: make(map[*store.StatRow]struct{})})
		last++
	}
	s := &c.slots[last]
	for _, rows := range counted {
		for key, delta := range rows {
			r := s.rows.of(key)
			r.Slot, r.Worker = s.at, c.worker
			r.Add(delta)
			s.unwritten[r] = struct{}{}
		}
	}
}

// forget removes written slots, except the last one, and the oldest slots above the limit. It returns the number of
// attempts lost with the latter.
func (c *stats) forget() (lost int64) {
	over := len(c.slots) - statsSlots
	kept := c.slots[:0]
	for i := range c.slots {
		s := &c.slots[i]
		switch {
		case i < over:
			for r := range s.unwritten {
				lost += r.Count
			}
		case len(s.unwritten) > 0 || i == len(c.slots)-1:
			kept = append(kept, *s)
		}
	}
	clear(c.slots[len(kept):])
	c.slots = kept
	return lost
}

// countReaped counts the attempts whose leases were taken away. Tasks that cannot be read are not counted.
func (r *reaper) countReaped(ctx context.Context, reaped []store.Reaped) {
	if r.stats == nil || r.stats.off || len(reaped) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.lease().Call())
	defer cancel()
	ids := make([]task.ID, len(reaped))
	for i := range reaped {
		ids[i] = reaped[i].Task
	}
	tasks, err := r.Store.Tasks(ctx, r.Namespace, ids...)
	if err != nil {
		return
	}
	for i := range tasks {
		r.stats.countLost(&tasks[i])
	}
}

// mergeStats merges old statistics and deletes those past their retention.
func (c *collector) mergeStats(ctx context.Context) {
	if c.stats == nil || time.Since(c.merged) < statsMergeEvery {
		return
	}
	c.merged = time.Now() // also after a failure
	for ctx.Err() == nil {
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, c.lease().Call())
		got, err := c.Store.Collect(call, c.Namespace, store.CollectRequest{Stats: &store.CollectStats{Keep: c.KeepStats}})
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Warn("merge statistics", "error", err)
			}
			return
		}
		if !got.More {
			return
		}
		wait(ctx, max(lightPause, collectRest*time.Since(start)), nil)
	}
}
