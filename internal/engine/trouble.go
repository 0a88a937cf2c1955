package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// When this worker cannot run a task (no file descriptors, no key, no bucket), the task has
// not failed: the attempt is released, and another worker may run the task at once. The
// worker claims tasks of that type with backoff, one at first, until they run again. It
// announces the error (store.Trouble) and logs it once a minute.

const (
	troubleBackoff = time.Second // before the first claim after a failure; doubled with each failure
	maxBackoff     = 30 * time.Second
	// releasedShare is the part of the backoff after which a released task is due again:
	// other workers look before this one does.
	releasedShare = 4
	// An attempt that runs for runsAfter counts as one that could start.
	runsAfter = time.Second
	// A trouble ends troubleForgotten after its last failure, if no task was claimed since.
	troubleForgotten = 10 * time.Minute
	// RunUntilIdle leaves the tasks of a type after hopeless failures in a row.
	hopeless = 3
	// announceEvery is the shortest pause between two announcements.
	announceEvery = 2 * time.Second
)

// notHere reports whether err says that this worker cannot run the task.
func notHere(err error) bool {
	var v *Verdict
	if errors.As(err, &v) {
		return v.Kind == NotHere
	}
	return lacks(err) // met by a handler that enqueues, for example without a bucket
}

// IsOwnTrouble reports whether err, which the machine, the bucket or the codec returned, is
// the worker's own trouble and says nothing about the task.
func IsOwnTrouble(err error) bool {
	for _, of := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return lacks(err)
}

// lacks reports whether err says that this worker lacks the bucket, codec or key of a task,
// or that the bucket is full.
func lacks(err error) bool {
	return isLasting(err) || errors.Is(err, store.ErrOtherBucket) || errors.Is(err, blob.ErrFull)
}

// isLasting reports whether err says that this worker was configured without a bucket, a
// codec or a key.
func isLasting(err error) bool {
	for _, of := range []error{blob.ErrNoBucket, blob.ErrCodec, codec.ErrNoCodec, codec.ErrNoKey} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// troubles holds the task types that this worker could not run recently. It is safe for
// concurrent use.
type troubles struct {
	*env
	changed signal // wakes run
	count   atomic.Int32

	mu    sync.Mutex
	types map[string]*trouble
}

// trouble describes why tasks of one type do not run.
type trouble struct {
	since    time.Time
	last     time.Time // time of the last released attempt
	err      string
	released int  // number of released attempts
	lasting  bool // see store.Trouble

	failures int       // consecutive failures
	until    time.Time // no claim before this time
	most     int       // maximum number of concurrent tasks
	empty    bool      // the last claim found no task
	logged   time.Time
}

func newTroubles(e *env) *troubles {
	return &troubles{env: e, changed: newSignal(), types: make(map[string]*trouble)}
}

// failed records that an attempt is released because this worker cannot run it. It returns the delay after which the
// task is due again.
func (t *troubles) failed(taskType, err string, lasting bool) (delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	tr := t.types[taskType]
	if tr == nil {
		tr = &trouble{since: now}
		t.types[taskType] = tr
		t.count.Add(1)
	}
	if tr.err != err || tr.released == 0 {
		t.changed.Set()
	}
	tr.last, tr.err, tr.lasting, tr.empty = now, err, lasting, false
	tr.released++
	if !now.Before(tr.until) { // of several concurrent failures the first counts
		tr.failures++
		backoff := min(troubleBackoff<<min(tr.failures-1, 16), maxBackoff)
		tr.until, tr.most = now.Add(backoff*9/10+rand.N(backoff/5)), 1
	}
	return max(tr.until.Sub(now), troubleBackoff) / releasedShare
}

// worked records that a task of the type could run: the limit of concurrent tasks doubles.
func (t *troubles) worked(taskType string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.types[taskType]
	if tr == nil || time.Now().Before(tr.until) {
		return
	}
	tr.failures /= 2
	if tr.most *= 2; tr.most < t.Slots {
		return
	}
	t.over(taskType, tr)
}

// over ends a trouble. The caller holds t.mu.
func (t *troubles) over(taskType string, tr *trouble) {
	delete(t.types, taskType)
	t.count.Add(-1)
	t.changed.Set()
	t.Log.Info("tasks run again on this worker", "task_type", taskType, "released", tr.released, "after", time.Since(tr.since).Round(time.Second))
}

// any reports whether there is a trouble.
func (t *troubles) any() bool { return t.count.Load() > 0 }

// ask holds the parameters of a claim while there are troubles.
type ask struct {
	types map[string]int // with code versions; empty: nothing
	probe string         // the only type of the claim, which tests whether its tasks run again; "": no test
	most  int            // tasks of probe to claim
	again time.Duration  // maximum time until the next request; < 0: no limit
}

// next returns the parameters of the next claim. all has the types that the worker handles.
// after is the probe of the previous claim: types without trouble follow a probe.
func (t *troubles) next(all map[string]int, after string) ask {
	if !t.any() {
		return ask{types: all, again: -1}
	}
	now := time.Now()
	for _, a := range t.slots.all() {
		if now.Sub(a.begun) > runsAfter {
			t.provenBy(a)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	got := ask{types: all, again: -1}
	later := func(d time.Duration) {
		if got.again < 0 || d < got.again {
			got.again = d
		}
	}
	healthy := maps.Clone(all)
	for _, name := range slices.Sorted(maps.Keys(t.types)) {
		tr := t.types[name]
		if now.Sub(tr.last) > troubleForgotten {
			t.over(name, tr)
			continue
		}
		delete(healthy, name)
		room := tr.most - t.slots.ofType(name)
		switch {
		case now.Before(tr.until):
			later(tr.until.Sub(now))
		case room <= 0:
			later(runsAfter)
		case got.probe == "" && (name > after || after == ""):
			got.probe, got.most = name, room
		default:
			later(0)
		}
	}
	if got.probe != "" {
		got.types, got.again = map[string]int{got.probe: all[got.probe]}, -1
		return got
	}
	got.types = healthy
	return got
}

// provenBy records, once, that an attempt could run.
func (t *troubles) provenBy(a *Attempt) {
	if t.any() && a.proven.CompareAndSwap(false, true) {
		t.worked(a.task.Type)
	}
}

// sooner returns d, or the time until the next claim of a type in trouble if that is less.
func (a *ask) sooner(d time.Duration) time.Duration {
	if a.again >= 0 && (d < 0 || a.again < d) {
		return a.again
	}
	return d
}

// nothing records that a probe found no task. The next task is due after next (< 0: unknown).
func (t *troubles) nothing(probe string, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.types[probe]
	if tr == nil {
		return
	}
	tr.empty = next < 0
	if next <= 0 || next > t.Poll {
		next = t.Poll
	}
	tr.until = time.Now().Add(next)
}

// leaves reports whether RunUntilIdle can return although types are in trouble: each of them
// has no due task, lasts, or failed too often in a row.
func (t *troubles) leaves() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tr := range t.types {
		if !tr.empty && !tr.lasting && tr.failures < hopeless {
			return false
		}
	}
	return true
}

// announced returns the troubles for the worker's announcement.
func (t *troubles) announced() []store.Trouble {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []store.Trouble
	for _, name := range slices.Sorted(maps.Keys(t.types)) {
		tr := t.types[name]
		all = append(all, store.Trouble{TaskType: name, Error: tr.err, Since: tr.since.UTC(), Released: tr.released, Lasting: tr.lasting})
	}
	return all[:min(len(all), store.MaxTroubles)]
}

// run announces troubles when they change, and logs each once a minute.
func (t *troubles) run(ctx context.Context) error {
	for ctx.Err() == nil {
		again := time.Duration(-1)
		if t.any() {
			again = warnEvery
		}
		wait(ctx, again, t.changed)
		if ctx.Err() != nil {
			return nil
		}
		t.log()
		if err := t.join(ctx); err != nil && ctx.Err() == nil {
			t.Log.Warn("announce this worker", "error", err)
			t.changed.Set()
		}
		wait(ctx, announceEvery, nil)
	}
	return nil
}

// log logs each trouble at most once a minute.
func (t *troubles) log() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.types)) {
		tr := t.types[name]
		if now := time.Now(); now.Sub(tr.logged) >= warnEvery {
			tr.logged = now
			t.Log.Warn("this worker cannot run tasks of a type: they are released for other workers, at no cost", "task_type", name, "error", tr.err, "released", tr.released, "since", tr.since.Format(time.RFC3339))
		}
	}
}

// releasedFor returns the finish of an attempt that this worker cannot run.
func (a *Attempt) releasedFor(fin store.Finish, err error) store.Finish {
	fin.Outcome, fin.Output, fin.Waiting, fin.Decision = task.OutcomeReleased, nil, task.WaitNone, nil
	fin.Error = a.taskError(err)
	fin.Error.Kind = task.KindWorker
	fin.Delay = a.env.troubles.failed(a.task.Type, fin.Error.Message, isLasting(err))
	return fin
}
