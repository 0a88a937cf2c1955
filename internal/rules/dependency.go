package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task whose handler asks for another task (add_dependency) waits for it on an awaited edge
// of the kind success. While its Join says so, it waits for that edge alone.

// Dependency holds the requested task of an add_dependency, as its finish reads it.
type Dependency struct {
	Found   bool
	Name    string // in the form of [TaskName]
	End     task.End
	Outside bool // it does not belong to the job of the asking task
	Child   bool // it is a child of the asking task
	Known   bool // the asking task needed it, or waited for it, before
	Cycle   bool // it waits for the asking task, directly or through others
}

// WaitsForTasks reports whether a task waits for the ends of other tasks along its edges: for
// its needs, for a requested task, or for the children of its decomposition.
func WaitsForTasks(s task.State, why task.Waiting, join task.Join) bool {
	return s == task.Pending && (why == task.WaitDeps || join != task.JoinNone && why == join.Waiting())
}

// LeadsOn reports whether the search for a cycle follows an open edge of a task. It follows
// the edges of a task that waits for its needs, for a requested task or for its children. It
// also follows edges to children of a call (called), because only a cancel ends the task
// before them. A running or ended task waits for nothing else.
func LeadsOn(s task.State, why task.Waiting, join task.Join, awaited, called bool) bool {
	if called {
		return !s.Terminal()
	}
	return WaitsForTasks(s, why, join) && (join == task.JoinNone || awaited)
}

// refuses returns the error if the task cannot wait for the dependency, else nil.
func (d *Dependency) refuses(f *store.Finish) *task.Error {
	met, _ := task.OnSuccess.Holds(d.End)
	text := ""
	switch {
	case !d.Found:
		text = fmt.Sprintf("there is no task %v", f.DependsOn)
	case f.DependsOn == f.Lease.Task:
		text = "the task would wait for itself"
	case d.Child:
		text = fmt.Sprintf("task %s is a child of this one: read its result from Children", d.Name)
	case d.Cycle:
		text = fmt.Sprintf("the task would wait for itself: task %s waits for it", d.Name)
	case d.Known && met:
		text = fmt.Sprintf("task %s was waited for already and ended %s: look at it before asking for it", d.Name, d.End.State)
	default:
		return nil
	}
	return &task.Error{Kind: task.KindValidation, Message: "add dependency: " + text}
}

// ResolveDependency is [ResolveFinish] for an add_dependency ([Asks]). If the result has
// Awaited set, the caller writes the edge.
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

// checkDependency refuses a malformed add_dependency. No engine reports one.
func checkDependency(f *store.Finish) error {
	if f.DependsOn.IsZero() {
		return fmt.Errorf("finish task %v: an add_dependency without a task", f.Lease.Task)
	}
	return nil
}
