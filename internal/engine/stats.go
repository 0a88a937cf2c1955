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
	// statsEvery is how often counts are written.
	statsEvery = 5 * time.Second
	// statsMergeEvery is how often old statistics are made coarser.
	statsMergeEvery = 10 * time.Minute
	// statsKeys is how many keys are counted one by one, in a slot and by a shard between
	// two writes: what has others is counted as store.StatsOther.
	statsKeys = 500
	// statsSlots is how many slots are kept while they cannot be written.
	statsSlots = 60
	// statsTimeout bounds one write.
	statsTimeout = 5 * time.Second

	statShards = 8
)

// stats counts the attempts of this worker that ended, and writes the counts.
//
// Counting is adding to a map of one of several shards, which the attempt's ID chooses:
// it knows neither slots nor the store. Every 5 seconds, shortly after a multiple of
// them by the store's clock, what the shards have is taken from them and added to the slot
// that was under way, whose rows are then written with all that they have: a row that was
// written before, or whose answer was lost, is replaced. While nothing was counted the role sleeps.
// Crash here: what was counted since the last write is lost.
//
// It belongs to the worker, and so to all Runs of an Engine: a slot that two Runs share
// is written with what both have counted. nil counts nothing.
type stats struct {
	keeper store.StatsKeeper
	ns     string
	worker store.WorkerID
	off    bool // nothing is counted, nor written
	shards [statShards]statShard
	ahead  atomic.Int64 // by how much the store's clock is ahead of this machine's

	counted atomic.Bool // since the shards were emptied
	wake    signal      // for the role that writes: something is counted

	mu      sync.Mutex // held while counts are written
	slots   []statSlot // that are not written yet, and the last one; the oldest first
	refused bool       // the last write failed
}

// statKey is what attempts of a worker are counted by.
type statKey struct {
	typ, queue string
	outcome    task.Outcome
	kind       task.ErrorKind
}

// statRows are counts by key, at most statsKeys and those of store.StatsOther.
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
	_    [40]byte // a cache line of its own
}

// statSlot is a slot that this worker counts in, or has not written yet.
type statSlot struct {
	at        time.Time
	rows      statRows
	unwritten map[*store.StatRow]struct{}
}

// newStats returns nil for a store that keeps no statistics.
func newStats(s store.Store, ns string, worker store.WorkerID) *stats {
	keeper, ok := store.StatsOf(s)
	if !ok {
		return nil
	}
	c := &stats{keeper: keeper, ns: ns, worker: worker, wake: newSignal()}
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

// note wakes the role that writes, once something is in a shard, unless it knows.
func (c *stats) note() {
	if !c.counted.Load() && c.counted.CompareAndSwap(false, true) {
		c.wake.Set()
	}
}

// countLost counts an attempt whose lease this worker took away. How long it ran is not
// known.
func (c *stats) countLost(t *task.Task) {
	sh := &c.shards[0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.rows.of(statKey{t.Type, t.Queue, task.OutcomeLeaseLost, task.KindLeaseExpired}).Count++
	c.note()
}

// setClock notes the store's clock.
func (c *stats) setClock(now time.Time) {
	if c != nil && !now.IsZero() {
		c.ahead.Store(int64(time.Until(now)))
	}
}

// now is the store's clock, as it was told by the last claim.
func (c *stats) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// storeTime is the store's clock, about: as it was told by the last claim.
func (e *env) storeTime() time.Time {
	if e.stats == nil {
		return time.Now()
	}
	return e.stats.now()
}

// take returns what was counted since it was last called.
func (c *stats) take() []statRows {
	var all []statRows
	c.counted.Store(false) // before the shards are looked at
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

// statWriter is the role that writes what a worker has counted.
type statWriter struct {
	*env
	lag time.Duration // after a multiple of statsEvery: workers do not write all at once
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

// flush writes what was counted. What cannot be written now is left, and written with the next.
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
		if store.Refused(err) { // it would be refused again, and keep the others waiting
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
	err := w.stats.keeper.WriteStats(ctx, w.Namespace, rows...)
	w.called("write_stats", began, err)
	return err
}

// gather adds what was counted to the slot that was under way while it was, by the
// middle of that time. Slots never go back: an older one may have been forgotten.
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

// forget forgets slots that are written, but for the last one, and those that are too
// many. It returns how many attempts were lost with these.
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

// countReaped counts the attempts whose leases were taken away. What cannot be read is
// not counted.
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

// mergeStats makes old statistics coarser, and removes those that are too old.
func (c *collector) mergeStats(ctx context.Context) {
	if c.stats == nil || time.Since(c.merged) < statsMergeEvery {
		return
	}
	c.merged = time.Now() // also when it fails
	for ctx.Err() == nil {
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, c.lease().Call())
		got, err := c.stats.keeper.MergeStats(call, c.Namespace, c.KeepStats)
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
