package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task whose handler asks for another one waits for that on an edge of the kind
// success, which is awaited like that to a child: while its Join says so, it waits
// for that edge alone.

// Dependency is the task that a handler asks to wait for, as its finish meets it.
type Dependency struct {
	Found   bool
	Name    string // as [TaskName] has it
	End     task.End
	Outside bool // it is not of the job of the task that asks
	Child   bool // of the task that asks
	Known   bool // the task that asks needed it, or waited for it, before
	Cycle   bool // it waits, through others perhaps, for the task that asks
}

// WaitsForTasks reports whether a task waits for the ends of others along its edges: of
// its needs, of the task that it asked for, or of the children of its decomposition.
func WaitsForTasks(s task.State, why task.Waiting, join task.Join) bool {
	return s == task.Pending && (why == task.WaitDeps || join != task.JoinNone && why == join.Waiting())
}

// LeadsOn reports whether an open edge of a task leads on in the search for a cycle:
// a task that waits for its needs, or asked for another one, or decomposed, waits for
// them; one with children of a call (called) that have not ended ends before them
// only if they are cancelled with it. A task that runs, or has ended, waits for
// nothing else.
func LeadsOn(s task.State, why task.Waiting, join task.Join, awaited, called bool) bool {
	if called {
		return !s.Terminal()
	}
	return WaitsForTasks(s, why, join) && (join == task.JoinNone || awaited)
}

// refuses says why the task cannot wait, nil if it can.
func (d *Dependency) refuses(f *store.Finish) *task.Error {
	met, _ := task.OnSuccess.Holds(d.End)
	text := ""
	switch {
	case !d.Found:
		text = fmt.Sprintf("there is no task %v", f.DependsOn)
	case f.DependsOn == f.Lease.Task:
		text = "the task would wait for itself"
	case d.Child:
		text = fmt.Sprintf("task %s is a child of this one: Children has what it gave", d.Name)
	case d.Cycle:
		text = fmt.Sprintf("the task would wait for itself: task %s waits for it", d.Name)
	case d.Known && met:
		text = fmt.Sprintf("task %s was waited for already and ended %s: look at it before asking for it", d.Name, d.End.State)
	default:
		return nil
	}
	return &task.Error{Kind: task.KindValidation, Message: "add dependency: " + text}
}

// ResolveDependency is [ResolveFinish] for an add_dependency ([Asks]). If Awaited is set in
// the result, the edge is to be written.
func ResolveDependency(f *store.Finish, d *Dependency, cancel CancelRequest, deadline, now time.Time) Transition {
	t := Transition{State: task.Pending, Waiting: task.WaitDeps, Join: task.JoinDependency, Outcome: f.Outcome, KeepError: true, Awaited: true}
	if d.Outside {
		t.Join = task.JoinOutside
	}
	if decidedKind(f) != "" {
		dec := *f.Decision
		dec.NextReadyAt, dec.ChildIDs = time.Time{}, nil
		t.Decision, t.Failure, t.KeepError = &dec, f.Error, false
	}
	met, ended := task.OnSuccess.Holds(d.End)
	if failure := d.refuses(f); failure != nil {
		t = refused(f, failure)
	} else if ended && met {
		t.State, t.Waiting, t.Join, t.ReadyAt = task.Ready, task.WaitNone, task.JoinNone, now
	} else if ended {
		need := EndedNeed{Need: f.DependsOn, Kind: task.OnSuccess, End: d.End}
		t.State, t.Waiting, t.KeepError, t.Failure = task.Cancelled, task.WaitNone, false, UnmetFailure(&need, d.Name)
		t.Outcome, t.Uncounted = task.OutcomeCancelled, true
	}
	if cancel.Kind != "" {
		return t.asked(&cancel, deadline)
	}
	return t
}

// checkDependency refuses an add_dependency that no engine reports.
func checkDependency(f *store.Finish) error {
	if f.DependsOn.IsZero() {
		return fmt.Errorf("finish task %v: an add_dependency without a task", f.Lease.Task)
	}
	return nil
}
