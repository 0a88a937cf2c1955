package weavertest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Replay is Run with a worker that dies: it is killed after every step that
// the task completes or, with an Undo, begins, and once more after the handler returned but
// before the result was written; each time another worker takes the task over at once, so
// that the handler replays from its recorded steps.
//
// The test fails when the task does, and when an attempt does not ask for steps
// that earlier ones recorded, which shows that step names depend on something
// that changes between attempts. It fails at once when an attempt that records
// a step asked for none of those; when it asked for some, the task is killed
// three times more at most and fails the test when it has ended.
func Replay[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) Out {
	t.Helper()
	out, _, err := replay(t, e, typ, in, false, opts)
	if err != nil {
		t.Fatalf("weavertest: replayed: %v", err)
	}
	return out
}

// ReplayErr is Replay for tasks that are expected to fail: it returns what RunErr does. The
// worker is killed, too, after every undo and every cleanup, those of children among them
// (weaver.UndoChildren), and before the first result of each kind is written. The test fails when the task has ended and a step is still to be undone, although
// no undo was given up.
func ReplayErr[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) (Out, error) {
	t.Helper()
	out, id, err := replay(t, e, typ, in, true, opts)
	if id.IsZero() {
		return out, err
	}
	info, getErr := e.Get(t.Context(), id)
	if getErr != nil {
		t.Fatalf("weavertest: %v", getErr)
	}
	if info.State.Terminal() && info.State != weaver.StateSucceeded && info.UndoOpen > 0 && (info.Error == nil || info.Error.Kind != task.KindUndoFailed) {
		t.Errorf("weavertest: task %s is %s with %d steps to undo", id, info.State, info.UndoOpen)
	}
	return out, err
}

func replay[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, mayFail bool, opts []weaver.EnqueueOption) (out Out, id weaver.TaskID, err error) {
	t.Helper()
	e.requireHandler(t, typ.Name())
	var h *weaver.Handle[Out]
	var engineErr error
	var names stepNames
	drops := map[task.Outcome]bool{task.OutcomeSuccess: true}
	if mayFail {
		drops[task.OutcomeFailure], drops[task.OutcomeUndone], drops[task.OutcomeUndoFailed] = true, true, true
	}
	e.clock.bubble(t, func(t *testing.T) {
		if h, err = typ.Enqueue(t.Context(), e, in, opts...); err != nil {
			return
		}
		id = h.ID()
		for {
			k := &killer{engineStore: e.engineStore(), target: h.ID(), names: &names, drops: drops}
			var w *worker
			if w, engineErr = newWorker(k, e.dying()); engineErr != nil {
				return
			}
			k.stop = w.StopNow
			w.await(h.ID(), weaver.JobID{})
			engineErr = w.beside(t.Context(), func(ctx context.Context) {
				out, err = h.Wait(ctx)
				err = e.ended(ctx, h.ID(), err)
			})
			if !k.dead() || len(names.unasked) > 0 {
				return
			}
			if err = e.release(t.Context(), k.held); err != nil {
				return
			}
			if err = e.passTime(t.Context(), h.ID()); err != nil {
				return
			}
		}
	})
	switch {
	case len(names.unasked) > 0:
		failUnasked(t, names.unasked)
	case engineErr != nil:
		t.Errorf("weavertest: the engine: %v", engineErr)
	case err == nil:
		e.requireAllStepsReached(t, h.ID())
	}
	return out, id, err
}

// dying is the configuration of the workers that die: they say nothing of it.
func (e *Env) dying() weaver.Config {
	cfg := e.cfg
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// passTime lets a second pass, so that a step that is named by the time has
// another name in the next attempt; of a task with a deadline less.
func (e *Env) passTime(ctx context.Context, id weaver.TaskID) error {
	info, err := e.Get(ctx, id)
	pause := time.Second
	if !info.DeadlineAt.IsZero() {
		pause = time.Millisecond
	}
	time.Sleep(pause)
	return err
}

// release gives back what a killed worker held, so that its tasks can be
// claimed at once: no time passes in which one could meet its deadline. (On a
// file none does either, because there the store knows of the death.)
func (e *Env) release(ctx context.Context, held []task.Lease) error {
	fins := make([]store.Finish, len(held))
	for i, l := range held {
		fins[i] = store.Finish{Lease: l, Outcome: task.OutcomeReleased}
	}
	_, err := e.db.Finish(ctx, e.Namespace(), fins...) // a lease that was lost meanwhile needs no release
	return err
}

func (e *Env) requireAllStepsReached(t *testing.T, id weaver.TaskID) {
	t.Helper()
	hist, err := e.History(t.Context(), id)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	failUnasked(t, hist.Attempts[len(hist.Attempts)-1].StepsUnreached)
}

// failUnasked fails the test because of steps that were not asked for again.
func failUnasked(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		t.Errorf("weavertest: step %q was recorded, but the last attempt never asked for it: step names must be the same in every attempt; make them from nothing that changes, like the time, the attempt or a random number", name)
	}
	if len(names) > 0 {
		t.FailNow()
	}
}

const (
	// spareAfter is how many attempts in a row may record a step and leave
	// recorded ones unasked and be killed for it. Such are those of a handler
	// whose step names change, and, now and then, of one with parallel steps.
	spareAfter = 3
	// failAfter is how many such attempts in a row fail the test.
	failAfter = 10
)

// stepNames compares the steps that the attempts of a task ask for with those
// that earlier ones recorded.
type stepNames struct {
	recorded int  // completed steps when the attempt began
	added    bool // the attempt completed another one
	strays   int  // attempts in a row that added a step and left recorded ones unasked

	unasked []string // what fails the test: steps that no attempt asks for any more
}

// began notes that an attempt begins.
func (n *stepNames) began(steps []task.Step) {
	n.recorded, n.added = 0, false
	for _, s := range steps {
		if s.State == task.StepCompleted {
			n.recorded++
		}
	}
}

// ended notes that the handler of an attempt returned. One that added no step
// proves nothing: it may have failed before it came to its first.
func (n *stepNames) ended(unasked []string) {
	switch {
	case !n.added:
	case len(unasked) == 0:
		n.strays = 0
	default:
		n.strays++
		if len(unasked) == n.recorded || n.strays >= failAfter {
			n.unasked = unasked
		}
	}
}

// spared reports that the attempts are killed no more: kills would only make
// more names.
func (n *stepNames) spared() bool { return n.strays >= spareAfter }

// killer is a store as a worker sees it that dies: after it committed a
// completed step of the target, or an undo of a child of it, nothing gets through any more, not even the
// answer. Its engine is stopped then, which ends the handler's context, and
// the results that it would write say which leases it held and which steps the
// attempt had asked for.
type killer struct {
	engineStore
	target task.ID
	stop   func() // stops the engine at once

	mu     sync.Mutex
	drops  map[task.Outcome]bool // die before the target's next result of such an outcome is written
	names  *stepNames
	undoes bool // the target is in its undo phase
	isDead bool
	held   []task.Lease // when it died
}

var errKilled = errors.New("weavertest: this worker was killed")

func (k *killer) dead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isDead
}

// die lets nothing through any more.
func (k *killer) die() {
	k.isDead = true
	k.stop()
}

// completed notes that a step of the target was completed, and reports whether
// the worker died of it.
func (k *killer) completed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names.added = true
	if !k.isDead && !k.names.spared() {
		k.die()
	}
	return k.isDead
}

// Claim implements store.Worker.
func (k *killer) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if k.dead() {
		return store.ClaimResult{}, errKilled
	}
	res, err := k.engineStore.Claim(ctx, ns, req)
	for _, c := range res.Tasks {
		if c.Task.ID == k.target {
			k.mu.Lock()
			if k.undoes = c.Task.Undo != nil; !k.undoes {
				k.names.began(c.Steps)
			}
			k.mu.Unlock()
		}
	}
	return res, err
}

// Heartbeat implements store.Worker.
func (k *killer) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	if k.dead() {
		return nil, errKilled
	}
	return k.engineStore.Heartbeat(ctx, ns, req)
}

// Reap implements store.Worker.
func (k *killer) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if k.dead() {
		return store.ReapResult{}, errKilled
	}
	return k.engineStore.Reap(ctx, ns, req)
}

// Collect implements store.Worker.
func (k *killer) Collect(ctx context.Context, ns string, req store.CollectRequest) (store.CollectResult, error) {
	if k.dead() {
		return store.CollectResult{}, errKilled
	}
	return k.engineStore.Collect(ctx, ns, req)
}

// Record implements store.Worker.
func (k *killer) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	if k.dead() {
		return nil, errKilled
	}
	res, err := k.engineStore.Record(ctx, ns, recs...)
	if err != nil {
		return res, err
	}
	for i, rec := range recs {
		if rec.Step == nil || res[i].Err != nil || rec.Lease.Task != k.target && rec.UndoOf.IsZero() {
			continue
		}
		at := res[i].Step.State
		if (at == task.StepCompleted || at == task.StepBegun || startsUndo(&res[i])) && k.completed() {
			return nil, errKilled
		}
	}
	return res, nil
}

// startsUndo reports whether a record stored the task that undoes a child.
func startsUndo(res *store.RecordResult) bool {
	return res.Step.Name == "" && len(res.Enqueued) > 0 && res.Enqueued[0].Disposition == store.DispositionCreated
}

// StepTx implements store.StepTxer.
func (k *killer) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if k.dead() {
		return store.RecordResult{}, errKilled
	}
	res, err := k.engineStore.StepTx(ctx, ns, rec, limit, fn)
	if err == nil && res.Err == nil && (rec.Lease.Task == k.target || !rec.UndoOf.IsZero()) && k.completed() {
		return store.RecordResult{}, errKilled
	}
	return res, err
}

// Finish implements store.Worker.
func (k *killer) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	if !k.diesOf(fins) {
		return k.engineStore.Finish(ctx, ns, fins...)
	}
	lost := make([]store.FinishResult, len(fins))
	for i := range lost {
		lost[i].Err = store.ErrLeaseLost
	}
	return lost, nil
}

// diesOf notes how attempts end, and reports whether that must not be written.
func (k *killer) diesOf(fins []store.Finish) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range fins {
		if f.Lease.Task != k.target {
			continue
		}
		if !k.undoes { // in the phase the handler ends at the first step that is not on record
			k.names.ended(f.StepsUnreached)
		}
		switch {
		case k.isDead:
		case len(k.names.unasked) > 0:
			k.die()
		case k.drops[f.Outcome] && !k.names.spared():
			k.drops[f.Outcome] = false
			k.die()
		}
	}
	if k.isDead {
		for _, f := range fins {
			k.held = append(k.held, f.Lease)
		}
	}
	return k.isDead
}

// Leave implements store.Worker: a killed worker says no goodbye.
func (k *killer) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	if k.dead() {
		return nil
	}
	return k.engineStore.Leave(ctx, ns, id)
}
