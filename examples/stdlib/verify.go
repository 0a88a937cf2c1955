package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// verify compares steps.log, which the steps' functions wrote when they
// started, with the database, which says when each value was stored. A step
// may have been started more than once: a kill between its start and the store
// of its value leaves no trace in the database, and it has to run again. What
// must never be is a start after the value was stored.
func verify(ctx context.Context, cfg config) (err error) {
	if _, err := os.Stat(cfg.database()); err != nil {
		return fmt.Errorf("nothing to verify: %w: run the example first", err)
	}
	db, err := sqlite.Open(ctx, cfg.database())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil { // a run that was killed at once may not have got so far
		return err
	}
	// The database first: a program that runs meanwhile cannot be wronged then.
	// A snapshot is one consistent picture, for tools; programs that want to
	// know about a task use Client.History, which has the same steps.
	snap, err := db.Snapshot(ctx, weaver.DefaultNamespace)
	if err != nil {
		return err
	}
	starts, err := readStepLog(cfg.dir)
	if err != nil {
		return err
	}
	a := audit(snap, starts)
	fmt.Fprintf(cfg.out, "steps.log: %d starts (processes: %d)\n", len(starts), a.processes)
	fmt.Fprintf(cfg.out, "database:  %d steps completed, %d tries failed (tasks: %d, jobs: %d)\n", a.completed, a.failed, len(snap.Tasks), len(snap.Jobs))
	fmt.Fprintf(cfg.out, "cut off:   %d starts left no record (a kill, a drain, or they run right now)\n", a.cutOff)
	for _, v := range a.violations {
		fmt.Fprintln(cfg.out, "VIOLATION:", v)
	}
	if len(a.violations) > 0 {
		return fmt.Errorf("violations: %d", len(a.violations))
	}
	fmt.Fprintln(cfg.out, "violations: 0. No step was started after its value had been stored, and the database is consistent")
	return nil
}

// audited is what the comparison found.
type audited struct {
	processes  int
	completed  int // steps with a value
	failed     int // tries that are recorded as failed
	cutOff     int // starts of which nothing is recorded
	violations []string
}

// stepKey names a step of a task.
type stepKey struct {
	task weaver.TaskID
	step string
}

// record is what the database says about a step.
type record struct {
	done   time.Time // when its value was stored; zero: it was not
	failed int
	starts int // according to the log
}

func audit(snap *store.Snapshot, starts []start) audited {
	var a audited
	steps := a.read(snap)
	a.compare(steps, starts)
	a.leftovers(steps)
	a.lostTasks(snap, starts)
	slices.Sort(a.violations)
	// The invariants of every store, as far as one picture shows them.
	for _, v := range store.Check(snap) {
		if v.Invariant != "I8" { // a lease that nobody took away: maybe nobody has worked here since the kill
			a.violations = append(a.violations, v.String())
		}
	}
	return a
}

// read collects the steps that the database knows.
func (a *audited) read(snap *store.Snapshot) map[stepKey]*record {
	steps := make(map[stepKey]*record)
	for _, s := range snap.Steps {
		if s.Kind != task.KindStep {
			continue // a sleep has no function
		}
		key := stepKey{s.TaskID, s.Name}
		if steps[key] == nil {
			steps[key] = &record{}
		}
		if s.State == task.StepFailed {
			a.failed++
			steps[key].failed++
			continue
		}
		a.completed++
		steps[key].done = s.CompletedAt
	}
	return steps
}

// compare goes through the log.
func (a *audited) compare(steps map[stepKey]*record, starts []start) {
	pids := make(map[int]bool)
	for _, s := range starts {
		pids[s.pid] = true
		key := stepKey{s.task, s.step}
		if steps[key] == nil {
			steps[key] = &record{} // started, and nothing stored yet
		}
		r := steps[key]
		r.starts++
		// The store keeps microseconds.
		if !r.done.IsZero() && s.at.Truncate(time.Microsecond).After(r.done) {
			a.violations = append(a.violations, fmt.Sprintf("step %s of %s (%s) was started by process %d at %s, %s after its value had been stored",
				s.step, s.node, s.task, s.pid, s.at.Format(time.RFC3339Nano), s.at.Sub(r.done)))
		}
	}
	a.processes = len(pids)
}

// leftovers counts what only one of the two sides knows.
func (a *audited) leftovers(steps map[stepKey]*record) {
	for key, r := range steps {
		recorded := r.failed
		if !r.done.IsZero() {
			recorded++
		}
		if r.starts < recorded {
			a.violations = append(a.violations, fmt.Sprintf("step %s of task %s has %d results in the database, but was started %d times according to steps.log",
				key.step, key.task, recorded, r.starts))
		}
		a.cutOff += max(r.starts-recorded, 0)
	}
}

// lostTasks looks for work on tasks that the database does not know.
func (a *audited) lostTasks(snap *store.Snapshot, starts []start) {
	known := make(map[weaver.TaskID]bool, len(snap.Tasks))
	for _, t := range snap.Tasks {
		known[t.ID] = true
	}
	for _, s := range starts {
		if !known[s.task] && s.at.Before(snap.Now) {
			a.violations = append(a.violations, fmt.Sprintf("process %d ran step %s of task %s (%s), which the database does not know", s.pid, s.step, s.node, s.task))
		}
	}
}
