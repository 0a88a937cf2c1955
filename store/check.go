package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// Violation is one invariant that a snapshot breaks.
type Violation struct {
	Invariant string // its name in docs/leases.md, for example "I9"
	ID        string // ID of the task or job, or the key, that breaks it
	Text      string // one sentence with the IDs: the cause
}

// String returns the violation as one line.
func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// leaseGrace is the time after a lease's end in which its task may still read as running: two
// intervals of the slowest reaper (I8).
const leaseGrace = 2 * time.Minute

// Check verifies the invariants that a single snapshot can show, for any store, and returns the
// violations, task by task:
//
//   - I3 a finished task is at rest: it has an end time, no lease, no waiting row
//   - I4 the epochs of a task's attempts ascend, up to its own
//   - I6 one completed value per step name and round, counted by step_count, and
//     one value of a checkpoint
//   - I7 open needs and children are counted, those of calls by their calls, no task
//     runs before its needs allow it, and children of a finished task have
//     ended or are asked to
//   - I8 an expired lease is revoked in time
//   - I9 a task is claimable, or would be if it were not paused, if and only if it
//     has one row in its lane
//   - I10 attempts stay within their limit and are all accounted for
//   - I11 idempotency keys are unique, running tasks hold their concurrency keys,
//     and under a key with free room each lane (queue and task type) with
//     waiters has a due dispatch row
//   - I12 the counters and the state of a job follow from its tasks
//   - I13 the used budget of tasks and jobs is the sum of their steps and
//     attempts, and no work is left in a job whose budget is used up
//   - I14 a signal is kept or is the value of one wait, no signal is kept for a wait,
//     and a suspended task has a wait or a future wake time
//   - I15 steps are undone once in each round, and a finished task is undone or reports
//     that it gave up
//   - R2 a lease is set if and only if the task runs
//
// A pending chore is not a violation.
//
// storetest checks the invariants that need two reads (I1, I2, I5, and that terminal states are
// final).
func Check(s *Snapshot) []Violation {
	c := newChecker(s)
	c.tasks()
	c.keys()
	c.jobs()
	return c.found
}

// tasks checks the rows of every task.
func (c *checker) tasks() {
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if c.leaving(t) {
			continue
		}
		c.rest(t)
		c.lease(t)
		c.attempts(t)
		c.steps(t)
		c.undo(t)
		c.costs(t)
		c.waits(t)
		c.needs(t)
		c.claimable(t)
	}
	c.orphans()
	c.signals()
	if !c.partial {
		c.blobs()
	}
	c.checkpoints()
	c.idempotency()
}

// checker is an indexed snapshot with the violations found in it.
type checker struct {
	*Snapshot
	byID       map[task.ID]*task.Task
	attemptsOf map[task.ID][]task.Attempt
	stepsOf    map[task.ID][]task.Step
	edgesOf    map[task.ID][]EdgeRow
	dispatchOf map[task.ID][]DispatchRow
	waitersOf  map[task.ID][]WaiterRow
	pausedOf   map[task.ID][]PausedTask
	pending    map[ChoreRow]bool // of Chores
	unstored   map[string]int    // number of children of tasks, and of tasks of jobs, by ID, that a chore has yet to store
	found      []Violation
	partial    bool                         // the snapshot has no tasks of jobs
	sums       map[task.ID]task.JobCounters // counters of jobs, if the snapshot has no tasks of them
}

func newChecker(s *Snapshot) *checker {
	c := &checker{
		Snapshot:   s,
		byID:       map[task.ID]*task.Task{},
		attemptsOf: group(s.Attempts, func(a task.Attempt) task.ID { return a.TaskID }),
		stepsOf:    group(s.Steps, func(st task.Step) task.ID { return st.TaskID }),
		edgesOf:    group(s.Edges, func(e EdgeRow) task.ID { return e.Task }),
		dispatchOf: group(s.Dispatch, func(d DispatchRow) task.ID { return d.Task }),
		waitersOf:  group(s.Waiters, func(w WaiterRow) task.ID { return w.Task }),
		pausedOf:   group(s.PausedTasks, func(p PausedTask) task.ID { return p.Task }),
	}
	for i := range s.Tasks {
		c.byID[s.Tasks[i].ID] = &s.Tasks[i]
	}
	c.pending, c.unstored = make(map[ChoreRow]bool, len(s.Chores)), map[string]int{}
	for _, chore := range s.Chores {
		switch c.pending[chore] = true; chore.Kind {
		case ChoreRevive:
			c.pending[ChoreRow{Kind: ChoreRevive, Root: chore.Root}] = true
		case ChoreReviveChildren:
			c.pending[ChoreRow{Kind: ChoreReviveChildren, Subject: chore.Subject}] = true
		case ChoreDecompose:
			c.unstored[chore.Subject] = chore.Children
		case ChoreEnqueue:
			c.unstored[chore.Subject] = chore.Children
			c.pending[ChoreRow{Kind: ChoreEnqueue, Subject: chore.Subject}] = true
		}
	}
	return c
}

func group[T any](rows []T, id func(T) task.ID) map[task.ID][]T {
	m := map[task.ID][]T{}
	for _, r := range rows {
		m[id(r)] = append(m[id(r)], r)
	}
	return m
}

func (c *checker) report(invariant, id, format string, args ...any) {
	c.found = append(c.found, Violation{Invariant: invariant, ID: id, Text: fmt.Sprintf(format, args...)})
}

// task reports a violation of one task.
func (c *checker) task(invariant string, t *task.Task, format string, args ...any) {
	id := t.ID.String()
	c.report(invariant, id, "task %s is %s and %s", id, t.State, fmt.Sprintf(format, args...))
}

// leaving reports whether a task is being deleted.
func (c *checker) leaving(t *task.Task) bool {
	return c.pending[ChoreRow{Kind: ChoreDeleteTask, Subject: t.ID.String()}] ||
		!t.JobID.IsZero() && c.pending[ChoreRow{Kind: ChoreDeleteJob, Subject: t.JobID.String()}]
}

// rest checks that finished tasks, and no others, are at rest (I3).
func (c *checker) rest(t *task.Task) {
	rows := len(c.dispatchOf[t.ID]) + len(c.waitersOf[t.ID])
	switch {
	case !t.State.Valid():
		c.task("I3", t, "has an unknown state")
	case t.State.Terminal() && t.FinishedAt.IsZero():
		c.task("I3", t, "has no finished_at")
	case t.State.Terminal() && rows > 0:
		c.task("I3", t, "is still dispatched or waits for its key, in %d rows", rows)
	case !t.State.Terminal() && !t.FinishedAt.IsZero():
		c.task("I3", t, "has finished_at %v", t.FinishedAt)
	}
	if t.Waiting != task.WaitNone && t.State != task.Pending && t.State != task.Blocked {
		c.task("I3", t, "has the waiting reason %s", t.Waiting)
	}
}

// lease checks that a task has a lease if and only if it runs (R2), and that the lease has not been
// expired for long (I8).
func (c *checker) lease(t *task.Task) {
	if t.State != task.Running {
		if !t.LeaseID.IsZero() || t.LeasedBy != "" || !t.LeaseExpiresAt.IsZero() {
			c.task("R2", t, "has a lease: id %q of worker %q until %v", t.LeaseID, t.LeasedBy, t.LeaseExpiresAt)
		}
		return
	}
	switch {
	case t.LeaseID.IsZero():
		c.task("R2", t, "has no lease id")
	case t.LeaseExpiresAt.IsZero():
		c.task("R2", t, "its lease has no end")
	case t.LeaseExpiresAt.Add(leaseGrace).Before(c.Now):
		c.task("I8", t, "its lease ended at %v, which is %v ago, and no reaper took it", t.LeaseExpiresAt, c.Now.Sub(t.LeaseExpiresAt))
	}
}

// attempts checks the epochs of the attempts (I4) and their numbers (I10). A
// running task's own attempt has no row yet.
func (c *checker) attempts(t *task.Task) {
	rows := slices.Clone(c.attemptsOf[t.ID])
	slices.SortStableFunc(rows, func(a, b task.Attempt) int { return a.No - b.No })
	ended := t.AttemptNo
	if t.State == task.Running {
		rows = append(rows, task.Attempt{No: t.AttemptNo, Epoch: t.Epoch})
		ended--
	}
	for i, a := range rows {
		if i > 0 && a.Epoch <= rows[i-1].Epoch {
			c.task("I4", t, "the epoch of its attempt %d is %d, not above the %d of attempt %d", a.No, a.Epoch, rows[i-1].Epoch, rows[i-1].No)
		}
		if a.Epoch > t.Epoch {
			c.task("I4", t, "the epoch of its attempt %d is %d, above its own, %d", a.No, a.Epoch, t.Epoch)
		}
	}
	if n := len(c.attemptsOf[t.ID]); n > ended {
		c.task("I10", t, "has %d ended attempts with attempt_no %d", n, t.AttemptNo)
	}
	if t.AttemptCount > t.MaxAttempts {
		c.task("I10", t, "used %d attempts of %d", t.AttemptCount, t.MaxAttempts)
	}
}

// steps checks that a step has one completed value in its round, or waits for it, and that step_count
// counts the values (I6).
func (c *checker) steps(t *task.Task) {
	completed, waiting := map[string]int{}, map[string]bool{}
	for _, s := range c.stepsOf[t.ID] {
		if s.Past() && s.Kind == task.KindCleanup && s.State != task.StepCompleted {
			c.task("I6", t, "its past cleanup %q is %s", s.Name, s.State)
		}
		if s.Kind == task.KindUndo || s.Past() {
			continue
		}
		switch s.State {
		case task.StepCompleted:
			completed[s.Name]++
			if completed[s.Name] == 2 {
				c.task("I6", t, "its step %q is completed more than once", s.Name)
			}
		case task.StepWaiting, task.StepBegun:
			waiting[s.Name] = true
		}
	}
	for name := range waiting {
		if completed[name] > 0 {
			c.task("I6", t, "its step %q waits, or has only begun, and is completed", name)
		}
	}
	if len(completed) != t.StepCount {
		c.task("I6", t, "has %d completed steps with step_count %d", len(completed), t.StepCount)
	}
}
