package sweep_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checker compares snapshots of the store with earlier snapshots.
type checker struct {
	lock     gate             // guards the fields below
	acked    map[task.ID]bool // acknowledged enqueues
	tasks    map[task.ID]task.Task
	jobs     map[task.ID]task.Job
	attempts map[attemptKey]task.Attempt
	steps    map[stepKey]task.Step // completed ones
	retries  int                   // number of operators' retries
	goes     task.ID               // the task that retention may remove
}

type attemptKey struct {
	task task.ID
	no   int
}

type stepKey struct {
	task  task.ID
	name  string
	round int
	undo  bool // the undo of the step, not the step itself
	begun bool // begun, before its first try
}

func keyOf(s *task.Step) stepKey {
	return stepKey{s.TaskID, s.Name, s.Round, s.Kind == task.KindUndo, s.State == task.StepBegun}
}

type tryKey struct {
	stepKey
	attempt, try int
}

// check takes a snapshot of the store, checks it, and compares it with the last one. It reports violations in the
// snapshot and changes of immutable data.
func (fx *fixture) check(when string) *store.Snapshot {
	v := &fx.checker
	defer v.lock.pass()() // snapshots are compared in the order of their capture
	// The run may be over its limit; a final check is still needed.
	snap, err := fx.backend.observer.Snapshot(context.WithoutCancel(fx.ctx), weaver.DefaultNamespace)
	if err != nil {
		fx.errorf("%s: Snapshot: %v", when, err)
		return nil
	}
	for _, bad := range store.Check(snap) {
		if bad.Invariant != "I8" { // the clock jumps, and there may be no living process to reap
			fx.errorf("%s: store.Check: %v", when, bad)
		}
	}
	for _, text := range v.compare(snap) {
		fx.errorf("%s: %s", when, text)
	}
	return snap
}

// compare returns the forbidden changes since the last snapshot, and keeps the new one.
func (v *checker) compare(snap *store.Snapshot) (bad []string) {
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	retries, deleted := 0, map[string]bool{v.goes.String(): true}
	for _, a := range snap.Audit {
		switch a.Verb {
		case "retry", "retry_cleanup", "raise_budget":
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
			steps[keyOf(&s)] = s
		}
		key := tryKey{keyOf(&s), s.AttemptNo, s.Try}
		if tries[key] {
			wrong("try %d of step %q of task %s in attempt %d is recorded twice", s.Try, s.Name, s.TaskID, s.AttemptNo)
		}
		tries[key] = true
	}
	for key, was := range v.steps {
		is, ok := steps[key]
		if is.Kind == task.KindSleep { // the one field that an operator may change
			is.WakeAt = was.WakeAt
		}
		if was.Undo == task.UndoOpen { // it may be undone or kept
			is.Undo = was.Undo
		}
		if !ok && revived && was.Kind == task.KindCall {
			continue // it waits again
		}
		if !deleted[key.task.String()] && (!ok || !reflect.DeepEqual(is, was)) {
			wrong("I6: step %q of task %s changed from %+v to %+v", key.name, key.task, was, is)
		}
	}
	v.steps = steps
	return bad
}

// ack records acknowledged enqueues.
func (v *checker) ack(got []store.Enqueued) {
	defer v.lock.pass()()
	for _, e := range got {
		v.acked[e.ID] = true
	}
}

// checked returns the store with a check after every write.
func (fx *fixture) checked(s store.Store) store.Store {
	return storehook.New(s, &storehook.Hooks{
		Enqueue: func(_ context.Context, sub storehook.Submission, next func() ([]store.Enqueued, error)) ([]store.Enqueued, error) {
			got, err := next()
			if sub.Tx == nil {
				fx.check("after Enqueue")
			}
			return got, err
		},
		Operate: checkAfter[[]store.Command, []store.CommandResult](fx, "Operate", nil),
		Claim: checkAfter[store.ClaimRequest](fx, "Claim", func(got store.ClaimResult) bool {
			return len(got.Tasks) > 0
		}),
		Finish: checkAfter[[]store.Finish, []store.FinishResult](fx, "Finish", nil),
		Record: checkAfter[[]store.Record, []store.RecordResult](fx, "Record", nil),
		Reap: checkAfter[store.ReapRequest](fx, "Reap", func(got store.ReapResult) bool {
			return len(got.Reaped)+len(got.Expired) > 0
		}),
		StepTx: checkAfter[*storehook.StepTx, store.RecordResult](fx, "StepTx", nil),
	})
}

// checkAfter returns a hook that checks the store after a call that wrote or failed. A nil wrote means that the
// method always writes.
func checkAfter[A, R any](fx *fixture, method string, wrote func(R) bool) storehook.Hook[A, R] {
	return func(_ context.Context, _ A, next func() (R, error)) (R, error) {
		got, err := next()
		if wrote == nil || err != nil || wrote(got) {
			fx.check("after " + method)
		}
		return got, err
	}
}

// digest returns the end of a run without the parts that may differ between runs: IDs, times, epochs, and attempts
// that did not count.
func (fx *fixture) digest(snap *store.Snapshot) []string {
	steps := map[task.ID][]string{}
	for _, s := range snap.Steps {
		if s.State == task.StepCompleted {
			value := string(s.Value)
			if s.Kind != task.KindStep && s.Kind != task.KindSignal || strings.HasPrefix(s.Name, "@") {
				value = "" // an ID or an instant
			}
			if s.Undo != "" || s.Round > 0 || s.Kind == task.KindUndo {
				value += fmt.Sprintf(" (%s %s round %d)", s.Kind, s.Undo, s.Round)
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
			count = "any" // its worker may have died before it could report the cancel
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
	for _, p := range snap.PausedTypes {
		lines = append(lines, "paused type "+p)
	}
	for _, p := range snap.PausedTasks {
		lines = append(lines, fmt.Sprintf("%d tasks are paused", len(snap.PausedTasks)), fmt.Sprint("one is due: ", !p.DueAt.IsZero()))
	}
	slices.Sort(lines)
	return lines
}
