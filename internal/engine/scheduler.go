package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/internal/build"
	"github.com/goweaver/weaver/internal/schedule"
	"github.com/goweaver/weaver/store"
)

const (
	// schedulePoll is the time after which the scheduler looks for schedules that other processes wrote.
	schedulePoll = 10 * time.Second
	// scheduleGap is the minimum time between looks that notices of other processes cause.
	scheduleGap = 2 * time.Second
	// scheduleBatch is the maximum number of schedules of one look.
	scheduleBatch = 100
)

// scheduler fires the schedules that are due (store.WriteSchedule), on every engine: it needs no leader, because a
// fire is one compare-and-set of the schedule's row with its run. A process that dies before the commit has done
// nothing, and another one fires; a late one finds the row changed.
type scheduler struct {
	*env
	wake     signal
	external atomic.Bool // another process may have written a schedule
	later    atomic.Bool // declare is to be called again: an engine of a newer version ran
}

func newScheduler(e *env) *scheduler { return &scheduler{env: e, wake: newSignal()} }

func (s *scheduler) enabled() bool { return s.Store.Capabilities().Has(store.CanSchedule) }

// notify reports a commit.
func (s *scheduler) notify(n *store.Notice) {
	if n.Schedule {
		s.external.Store(false)
		s.wake.Set()
	} else if n.External && !s.external.Swap(true) {
		s.wake.Set()
	}
}

func (s *scheduler) run(ctx context.Context) error {
	pause := backoff{least: 100 * time.Millisecond, most: 5 * time.Second}
	declared := time.Now()
	for ctx.Err() == nil {
		s.external.Store(false)
		looked := time.Now()
		if s.later.Load() && looked.Sub(declared) >= s.TTL {
			declared = looked
			if err := s.declareAll(ctx); err != nil && ctx.Err() == nil {
				s.repeats.warn(s.Log, "declare schedules", err)
			}
		}
		next, err := s.fire(ctx)
		switch {
		case errors.Is(err, store.ErrClosed):
			return nil // the claimer says so
		case err != nil:
			if ctx.Err() == nil {
				s.repeats.warn(s.Log, "fire schedules", err)
			}
			wait(ctx, pause.next(), nil)
			continue
		}
		pause.reset()
		if !s.complete && (next < 0 || next > schedulePoll) {
			next = schedulePoll
		}
		wait(ctx, next, s.wake)
		if s.external.Load() {
			wait(ctx, min(scheduleGap, max(0, time.Until(looked.Add(next)))), nil)
		}
	}
	return nil
}

// fire moves the due schedules on, and returns the time until the next look (< 0: no schedule has one).
func (s *scheduler) fire(ctx context.Context) (time.Duration, error) {
	page, err := s.due(ctx)
	if err != nil {
		return 0, err
	}
	next := page.Next
	for i := range page.Schedules {
		sched, err := schedule.Read(page.Schedules[i])
		if err != nil { // it stays due, for programs that can read it
			s.repeats.warn(s.Log, "read a schedule", err)
			if next < 0 || next > schedulePoll {
				next = schedulePoll
			}
			continue
		}
		if err := s.advance(ctx, sched, page.Now); err != nil {
			return 0, err
		}
		next = 0 // its row has the time of its next look
	}
	return next, nil
}

func (s *scheduler) due(ctx context.Context) (store.SchedulePage, error) {
	call, cancel := context.WithTimeout(ctx, s.lease().Call())
	defer cancel()
	began := time.Now()
	page, err := s.Store.Schedules(call, s.Namespace, store.ScheduleFilter{Due: true, Limit: scheduleBatch})
	s.called("schedules", began, err)
	return page, err
}

// advance moves one schedule on.
func (s *scheduler) advance(ctx context.Context, sched *schedule.Schedule, now time.Time) error {
	call, cancel := context.WithTimeout(ctx, s.lease().Call())
	defer cancel()
	running, asked := false, false
	if sched.AsksForRun() {
		var err error
		if running, asked, err = lastRun(call, s.Store, s.Namespace, sched.State.Last); err != nil {
			return err
		}
	}
	write, stop := sched.Advance(now, running, s.IDs)
	cmds := []store.Command{write}
	if stop != nil && !asked {
		cmds = append(cmds, cancelOf(stop, sched.Row.Name))
	}
	began := time.Now()
	got, err := s.Store.Operate(call, s.Namespace, cmds...)
	s.called("fire", began, err)
	if err != nil {
		return err
	}
	if err := got[0].Err; err != nil && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrState) {
		return err // otherwise another process was faster, or the clock of the store is behind
	}
	for i := range write.Fires {
		if f := &write.Fires[i]; got[0].Err == nil && f.Kind != store.FireFired {
			s.Log.Info("scheduled time did not fire", "schedule", sched.Row.Name, "at", f.At, "times", f.Count, "kind", f.Kind, "reason", f.Reason)
		}
	}
	return nil
}

// lastRun reports whether a run of a schedule has not ended, and whether it was asked to cancel. A run that is gone
// has ended.
func lastRun(ctx context.Context, s store.Store, ns string, run *schedule.Run) (running, asked bool, err error) {
	if !run.Job.IsZero() {
		job, err := store.JobOf(ctx, s, ns, run.Job)
		if errors.Is(err, store.ErrNotFound) {
			return false, false, nil
		}
		return err == nil && job.FinishedAt.IsZero(), job.CancelRequested, err
	}
	tasks, err := s.Tasks(ctx, ns, run.Task)
	if err != nil || len(tasks) == 0 {
		return false, false, err
	}
	return !tasks[0].State.Terminal(), tasks[0].CancelRequested, nil
}

func cancelOf(run *schedule.Run, name string) store.Command {
	audit := store.Audit{By: "schedule/" + name, Reason: "the next scheduled time came, and the overlap is " + string(schedule.CancelRunning)}
	if !run.Job.IsZero() {
		return store.CancelJob{Audit: audit, Job: run.Job}
	}
	return store.CancelTask{Audit: audit, Task: run.Task}
}

// newerRuns reports whether an engine of a program with at least a version is alive.
func newerRuns(ctx context.Context, s store.Store, ns, program string, version int) (bool, error) {
	o, err := s.Overview(ctx, ns, store.OverviewRequest{Parts: store.OverviewWorkers})
	if err != nil {
		return false, err
	}
	for i := range o.Workers {
		if w := &o.Workers[i]; w.Announcement.Program == program && w.Announcement.CodeVersion >= version && !w.Silent && !w.Dead {
			return true, nil
		}
	}
	return false, nil
}

// Declared is a schedule that the program declares.
type Declared struct {
	Name string
	Rule schedule.Rule
	Work schedule.Work
}

// DefaultProgram returns the default name of the program that declares schedules.
func DefaultProgram() string { return build.Program() }

// declare stores the schedules of the program, and pauses those that only an older version of it had. A schedule of
// another program is left alone, with a warning.
func (s *scheduler) declare(ctx context.Context) error {
	if err := s.declareAll(ctx); err != nil {
		return fmt.Errorf("declare schedules: %w", err)
	}
	return nil
}

func (s *scheduler) declareAll(ctx context.Context) error {
	s.later.Store(false)
	names := make(map[string]bool, len(s.Schedules))
	for i := range s.Schedules {
		d := &s.Schedules[i]
		names[d.Name] = true
		if err := s.write(ctx, d.Name, func(at *schedule.Schedule, now time.Time) (store.WriteSchedule, bool, error) {
			return schedule.Declare(at, d.Name, d.Rule, d.Work, s.newer(ctx), now)
		}); err != nil {
			return err
		}
	}
	for after := ""; ; {
		call, cancel := context.WithTimeout(ctx, s.lease().Call())
		page, err := s.Store.Schedules(call, s.Namespace, store.ScheduleFilter{After: after, Limit: scheduleBatch})
		cancel()
		if err != nil || len(page.Schedules) == 0 {
			return err
		}
		for i := range page.Schedules {
			after = page.Schedules[i].Name
			if names[after] {
				continue
			}
			if err := s.write(ctx, after, func(at *schedule.Schedule, now time.Time) (w store.WriteSchedule, gone bool, err error) {
				if at != nil {
					w, gone = at.Gone(s.Program, s.CodeVersion, now)
				}
				return w, gone, nil
			}); err != nil {
				return err
			}
		}
	}
}

// newer returns a function that reports whether an engine of the program with at least a version runs. It also
// reports true if the workers cannot be read.
func (s *scheduler) newer(ctx context.Context) func(version int) bool {
	return func(version int) bool {
		call, cancel := context.WithTimeout(ctx, s.lease().Call())
		defer cancel()
		runs, err := newerRuns(call, s.Store, s.Namespace, s.Program, version)
		if err != nil || runs {
			s.later.Store(true)
		}
		return err != nil || runs
	}
}

// write reads a schedule and writes what move says, again if its row changed meanwhile. A schedule that cannot be
// read or declared is logged, and left alone.
func (s *scheduler) write(ctx context.Context, name string, move func(*schedule.Schedule, time.Time) (store.WriteSchedule, bool, error)) error {
	call, cancel := context.WithTimeout(ctx, s.lease().Call())
	defer cancel()
	for {
		page, err := s.Store.Schedules(call, s.Namespace, store.ScheduleFilter{Name: name})
		if err != nil {
			return err
		}
		var sched *schedule.Schedule
		if len(page.Schedules) > 0 {
			sched, err = schedule.Read(page.Schedules[0])
		}
		var w store.WriteSchedule
		changed := false
		if err == nil {
			w, changed, err = move(sched, page.Now)
		}
		if err != nil {
			s.Log.Error("declare a schedule", "schedule", name, "error", err)
			return nil
		}
		if !changed {
			return nil
		}
		w.Audit, w.Verb = store.Audit{By: "program " + s.Program, Reason: "declared by its code"}, "declare_schedule"
		got, err := s.Store.Operate(call, s.Namespace, w)
		if err == nil {
			err = got[0].Err
		}
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
}
