package sweep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sweepWatch is what the test knows of the store's past.
type sweepWatch struct {
	lock     gate             // guards the rest
	acked    map[task.ID]bool // enqueues that were acknowledged
	tasks    map[task.ID]task.Task
	jobs     map[task.ID]task.Job
	attempts map[attemptKey]task.Attempt
	steps    map[stepKey]task.Step // completed ones
	retries  int                   // operators' retries so far
}

type attemptKey struct {
	task task.ID
	no   int
}

type stepKey struct {
	task task.ID
	name string
}

type tryKey struct {
	stepKey
	attempt, try int
}

// look takes a picture of the store and compares it with the last one: what
// is wrong in it by itself, and what changed that must never change.
func (w *sweepWorld) look(when string) *store.Snapshot {
	v := &w.watch
	defer v.lock.pass()() // pictures are compared in the order in which they were taken
	// The play may be over its limit; a last look is still wanted.
	snap, err := w.ground.eyes.Snapshot(context.WithoutCancel(w.ctx), weaver.DefaultNamespace)
	if err != nil {
		w.wrong("%s: Snapshot: %v", when, err)
		return nil
	}
	for _, bad := range store.Check(snap) {
		if bad.Invariant != "I8" { // the clock leaps, and a scene may have nobody who reaps
			w.wrong("%s: store.Check: %v", when, bad)
		}
	}
	for _, text := range v.compare(snap) {
		w.wrong("%s: %s", when, text)
	}
	return snap
}

// compare returns what changed since the last picture and must not, and keeps
// the new one.
func (v *sweepWatch) compare(snap *store.Snapshot) (bad []string) {
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	retries, deleted := 0, map[string]bool{}
	for _, a := range snap.Audit {
		switch a.Verb {
		case "retry":
			retries++
		case "delete":
			deleted[a.Target] = true
		}
	}
	revived := retries > v.retries
	v.retries = retries

	tasks := make(map[task.ID]task.Task, len(snap.Tasks))
	for _, t := range snap.Tasks {
		tasks[t.ID] = t
	}
	for id, was := range v.tasks {
		is, ok := tasks[id]
		switch {
		case !ok && deleted[id.String()]:
		case !ok:
			wrong("task %s, %s, is gone", id, was.State)
		case is.Epoch < was.Epoch:
			wrong("I4: the epoch of task %s fell from %d to %d", id, was.Epoch, is.Epoch)
		case is.AttemptNo < was.AttemptNo:
			wrong("the attempt_no of task %s fell from %d to %d", id, was.AttemptNo, is.AttemptNo)
		case was.State.Terminal() && is.State != was.State && (!revived || was.State == task.Succeeded):
			wrong("I3: task %s left %s and is %s", id, was.State, is.State)
		}
	}
	for id := range v.acked {
		if _, ok := tasks[id]; !ok && !deleted[id.String()] {
			wrong("I1: task %s was acknowledged and does not exist", id)
		}
	}
	v.tasks = tasks

	jobs := make(map[task.ID]task.Job, len(snap.Jobs))
	for _, j := range snap.Jobs {
		jobs[j.ID] = j
	}
	for id, was := range v.jobs {
		if is, ok := jobs[id]; !ok || was.State.Terminal() && is.State != was.State && !revived {
			wrong("I3: job %s left %s and is %q", id, was.State, is.State)
		}
	}
	v.jobs = jobs

	attempts := make(map[attemptKey]task.Attempt, len(snap.Attempts))
	leases := map[task.Lease]bool{}
	for _, a := range snap.Attempts {
		key, lease := attemptKey{a.TaskID, a.No}, task.Lease{Task: a.TaskID, ID: a.LeaseID, Epoch: a.Epoch}
		if _, ok := attempts[key]; ok || leases[lease] {
			wrong("attempt %d of task %s is recorded twice", a.No, a.TaskID)
		}
		attempts[key], leases[lease] = a, true
		if revoked := a.Outcome == task.OutcomeLeaseLost || a.Outcome == task.OutcomeReleased; revoked && tasks[a.TaskID].Epoch <= a.Epoch {
			wrong("R1: attempt %d of task %s was %s, and the epoch did not rise above its %d", a.No, a.TaskID, a.Outcome, a.Epoch)
		}
	}
	for key, was := range v.attempts {
		if is, ok := attempts[key]; !deleted[key.task.String()] && (!ok || !reflect.DeepEqual(is, was)) {
			wrong("attempt %d of task %s changed from %+v to %+v", key.no, key.task, was, is)
		}
	}
	v.attempts = attempts

	decided := map[attemptKey]bool{}
	for _, d := range snap.Decisions {
		key := attemptKey{d.TaskID, d.AttemptNo}
		if decided[key] {
			wrong("attempt %d of task %s is decided twice", d.AttemptNo, d.TaskID)
		}
		decided[key] = true
	}

	steps, tries := make(map[stepKey]task.Step, len(snap.Steps)), map[tryKey]bool{}
	for _, s := range snap.Steps {
		if s.State == task.StepCompleted {
			steps[stepKey{s.TaskID, s.Name}] = s
		}
		key := tryKey{stepKey{s.TaskID, s.Name}, s.AttemptNo, s.Try}
		if tries[key] {
			wrong("try %d of step %q of task %s in attempt %d is recorded twice", s.Try, s.Name, s.TaskID, s.AttemptNo)
		}
		tries[key] = true
	}
	for key, was := range v.steps {
		if is, ok := steps[key]; !deleted[key.task.String()] && (!ok || !reflect.DeepEqual(is, was)) {
			wrong("I6: step %q of task %s changed from %+v to %+v", key.name, key.task, was, is)
		}
	}
	v.steps = steps
	return bad
}

// ack keeps what was promised.
func (v *sweepWatch) ack(got []store.Enqueued) {
	defer v.lock.pass()()
	for _, e := range got {
		v.acked[e.ID] = true
	}
}

// watchedStore is a store that the test looks at after every write.
type watchedStore struct {
	store.Store
	store.Notifier
	store.StepTxer
	w *sweepWorld
}

func (w *sweepWorld) watched(s store.Store) store.Store {
	return watchedStore{s, s.(store.Notifier), s.(store.StepTxer), w}
}

// Enqueue implements store.Producer.
func (s watchedStore) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	got, err := s.Store.Enqueue(ctx, ns, tx, sub)
	if tx == nil {
		s.w.look("after Enqueue")
	}
	return got, err
}

// Operate implements store.Producer.
func (s watchedStore) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	got, err := s.Store.Operate(ctx, ns, cmds...)
	s.w.look("after Operate")
	return got, err
}

// Claim implements store.Worker.
func (s watchedStore) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	got, err := s.Store.Claim(ctx, ns, req)
	if len(got.Tasks) > 0 || err != nil {
		s.w.look("after Claim")
	}
	return got, err
}

// Finish implements store.Worker.
func (s watchedStore) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	got, err := s.Store.Finish(ctx, ns, fins...)
	s.w.look("after Finish")
	return got, err
}

// Record implements store.Worker.
func (s watchedStore) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	got, err := s.Store.Record(ctx, ns, recs...)
	s.w.look("after Record")
	return got, err
}

// Reap implements store.Worker.
func (s watchedStore) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	got, err := s.Store.Reap(ctx, ns, req)
	if len(got.Reaped)+len(got.Expired) > 0 || err != nil {
		s.w.look("after Reap")
	}
	return got, err
}

// StepTx implements store.StepTxer.
func (s watchedStore) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	got, err := s.StepTxer.StepTx(ctx, ns, rec, limit, fn)
	s.w.look("after StepTx")
	return got, err
}

// digest is the end of a play without what may differ between plays: ids,
// times, epochs, and attempts that did not count.
func (w *sweepWorld) digest(snap *store.Snapshot) []string {
	steps := map[task.ID][]string{}
	for _, s := range snap.Steps {
		if s.State == task.StepCompleted {
			value := string(s.Value)
			if s.Kind != task.KindStep || strings.HasPrefix(s.Name, "@") {
				value = "" // an id or an instant
			}
			steps[s.TaskID] = append(steps[s.TaskID], s.Name+"="+value)
		}
	}
	var lines []string
	for _, t := range snap.Tasks {
		input := string(t.Input)
		if len(input) > 60 {
			input = fmt.Sprintf("%s… (%d bytes)", input[:60], len(input))
		}
		kind, count := "", fmt.Sprint(t.AttemptCount)
		if t.Error != nil {
			kind = string(t.Error.Kind)
		}
		if t.State == task.Cancelled {
			count = "any" // its worker may have died before it could say that it was cancelled
		}
		slices.Sort(steps[t.ID])
		lines = append(lines, fmt.Sprintf("task %s %s %s%s: %s %s output %s error %q attempts %s steps %v",
			t.Type, input, t.Node, t.IdempotencyKey, t.State, t.Waiting, t.Output, kind, count, steps[t.ID]))
	}
	for _, j := range snap.Jobs {
		lines = append(lines, fmt.Sprintf("job %s: %s %+v", j.Name, j.State, j.Counters))
	}
	for _, p := range snap.Paused {
		lines = append(lines, "paused "+p)
	}
	slices.Sort(lines)
	return lines
}
