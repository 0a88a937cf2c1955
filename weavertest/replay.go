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

// Replay is Run with a worker that is killed again and again. It dies after every step that the task completes or,
// with an Undo, begins. It also dies once after the handler returned but before the result was written. Each time
// another worker takes over the task at once, so that the handler replays its recorded steps.
//
// The test fails when the task does, and when an attempt does not reach steps recorded by earlier attempts: step
// names must not depend on values that change between attempts. It fails at once when an attempt that records a step
// reached no recorded step. When it reached some, the task is killed at most three more times, and the test fails
// when the task has ended.
func Replay[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) Out {
	t.Helper()
	out, _, err := replay(t, e, typ, in, false, opts)
	if err != nil {
		t.Fatalf("weavertest: replayed: %v", err)
	}
	return out
}

// ReplayErr is Replay for tasks that are expected to fail: it returns the results of RunErr. The worker is also
// killed after every undo and every cleanup, including those of children (weaver.UndoChildren), and before the first
// result of each kind is written. The test fails if the task has ended with a step still to be undone, unless an undo
// was given up.
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

// dying returns the configuration of the killed workers: they log nothing about it.
func (e *Env) dying() weaver.Config {
	cfg := e.cfg
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// passTime lets a second pass, so that a step named by the time has another name in the next attempt. It passes less
// for a task with a deadline.
func (e *Env) passTime(ctx context.Context, id weaver.TaskID) error {
	info, err := e.Get(ctx, id)
	pause := time.Second
	if !info.DeadlineAt.IsZero() {
		pause = time.Millisecond
	}
	time.Sleep(pause)
	return err
}

// release releases the leases of a killed worker, so that its tasks can be claimed at once: no time passes in which a
// task could reach its deadline. (With a file no time would pass either, because the store detects the death.)
func (e *Env) release(ctx context.Context, held []task.Lease) error {
	fins := make([]store.Finish, len(held))
	for i, l := range held {
		fins[i] = store.Finish{Lease: l, Outcome: task.OutcomeReleased}
	}
	_, err := e.db.Finish(ctx, e.Namespace(), fins...) // a lost lease needs no release
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

// failUnasked fails the test because of recorded steps that were not reached.
func failUnasked(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		t.Errorf("weavertest: step %q was recorded, but the last attempt never asked for it: step names must be the same in every attempt; do not derive them from values that change, like the time, the attempt or a random number", name)
	}
	if len(names) > 0 {
		t.FailNow()
	}
}

const (
	// spareAfter is the number of consecutive attempts that may record a step, miss recorded ones and be killed for
	// it. They occur with handlers whose step names change and, occasionally, with parallel steps.
	spareAfter = 3
	// failAfter is the number of such consecutive attempts that fails the test.
	failAfter = 10
)

// stepNames compares the steps that a task's attempts reach with those recorded by earlier attempts.
type stepNames struct {
	recorded int  // completed steps at the start of the attempt
	added    bool // the attempt completed another step
	strays   int  // consecutive attempts that added a step and missed recorded ones

	unasked []string // reason to fail the test: steps that no attempt reaches any more
}

// began records the start of an attempt.
func (n *stepNames) began(steps []task.Step) {
	n.recorded, n.added = 0, false
	for _, s := range steps {
		if s.State == task.StepCompleted {
			n.recorded++
		}
	}
}

// ended records the return of an attempt's handler. An attempt that added no step proves nothing: it may have failed
// before its first step.
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

// spared reports that attempts are no longer killed: kills would only create more names.
func (n *stepNames) spared() bool { return n.strays >= spareAfter }

// killer is the store of a worker that will be killed. After the commit of a completed step of the target, or of an
// undo of a child of the target, the answer is lost and no further call succeeds. Its engine is then stopped, which
// ends the handler's context. The results that it would write list its leases and the steps that the attempt reached.
type killer struct {
	engineStore
	target task.ID
	stop   func() // stops the engine at once

	mu     sync.Mutex
	drops  map[task.Outcome]bool // die before the target's next result with such an outcome is written
	names  *stepNames
	undoes bool // the target is in its undo phase
	isDead bool
	held   []task.Lease // leases at its death
}

var errKilled = errors.New("weavertest: this worker was killed")

func (k *killer) dead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isDead
}

// die makes all further calls fail.
func (k *killer) die() {
	k.isDead = true
	k.stop()
}

// completed records a completed step of the target, and reports whether the worker died of it.
func (k *killer) completed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names.added = true
	if !k.isDead && !k.names.spared() {
		k.die()
	}
	return k.isDead
}

// Claim implements store.Core.
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

// Heartbeat implements store.Core.
func (k *killer) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	if k.dead() {
		return nil, errKilled
	}
	return k.engineStore.Heartbeat(ctx, ns, req)
}

// Reap implements store.Core.
func (k *killer) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if k.dead() {
		return store.ReapResult{}, errKilled
	}
	return k.engineStore.Reap(ctx, ns, req)
}

// Collect implements store.Ops.
func (k *killer) Collect(ctx context.Context, ns string, req store.CollectRequest) (store.CollectResult, error) {
	if k.dead() {
		return store.CollectResult{}, errKilled
	}
	return k.engineStore.Collect(ctx, ns, req)
}

// Record implements store.Core.
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

// StepTx implements store.Flow.
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

// Finish implements store.Core.
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

// diesOf records how attempts end, and reports whether the results must not be written.
func (k *killer) diesOf(fins []store.Finish) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range fins {
		if f.Lease.Task != k.target {
			continue
		}
		if !k.undoes { // in the phase the handler ends at the first unrecorded step
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

// Leave implements store.Core: a killed worker does not leave.
func (k *killer) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	if k.dead() {
		return nil
	}
	return k.engineStore.Leave(ctx, ns, id)
}
