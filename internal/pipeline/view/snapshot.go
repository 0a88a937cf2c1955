package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// JobTasks is a job with all its tasks, in order of creation.
type JobTasks struct {
	weaver.JobInfo
	Tasks []weaver.TaskInfo
}

// unstarted returns a job before any of its tasks ran.
func unstarted(st JobTasks) JobTasks {
	st.Tasks = slices.Clone(st.Tasks)
	for i, t := range st.Tasks {
		if t.AttemptNo > 0 || t.State.Terminal() {
			st.State = task.JobRunning
			st.Tasks[i] = weaver.TaskInfo{
				ID: t.ID, JobID: t.JobID, ParentID: t.ParentID, Node: t.Node, Type: t.Type, State: task.Pending, MaxAttempts: t.MaxAttempts,
				ConcurrencyKey: t.ConcurrencyKey, DeadlineAt: t.DeadlineAt, AllowFailure: t.AllowFailure, CreatedAt: t.CreatedAt,
			}
		}
	}
	return st
}

// reconcile compares a snapshot of the store with the model. It returns the
// changes without events: changes by other processes, and the consequences of a
// task's end for its dependents.
func (m *model) reconcile(st JobTasks, now time.Time) []change {
	var shown []change
	for i := range st.Tasks {
		t := &st.Tasks[i]
		n := m.byID[t.ID]
		if n == nil {
			n = m.add(t.ID, t.Node)
		}
		if n.parent != t.ParentID {
			n.parent, m.shape = t.ParentID, nil
		}
		if n.isPast(t) {
			continue
		}
		for _, ev := range n.missed(t, m.namespace) {
			if ended, ok := endOf(ev); ok {
				shown = append(shown, n.finish(t.AttemptNo, ev.Head().At, ended)...)
			} else {
				shown = append(shown, n.flush()...)
				n.start(t.AttemptNo, ev.Head().At)
				n.here = false
			}
			shown = append(shown, change{node: n, event: ev})
		}
		if note := explain.Turn(n.state, t.State); note != "" {
			shown = append(shown, n.flush()...)
			shown = append(shown, change{node: n, note: note})
		}
		n.adopt(t)
	}
	if st.State == task.JobBlocked && m.state != task.JobBlocked {
		shown = append(shown, change{event: m.blocked(now)})
	}
	m.state = st.State
	stuck := ""
	if st.State != task.JobBlocked { // which has an event
		stuck = explain.Standstill(st.Tasks)
	}
	if stuck != "" && stuck != m.stuck {
		shown = append(shown, change{note: stuck})
	}
	m.stuck = stuck
	return shown
}

// isPast reports whether a snapshot of a task is older than the model. A task
// passes through attempt 1 running, attempt 1 over, attempt 2 running, …, and
// never goes back. Between two attempts, operators and needs may change its state
// both ways. Only a retry, which raises the epoch, leaves a terminal state.
func (n *node) isPast(t *weaver.TaskInfo) bool {
	switch {
	case t.AttemptNo != n.attempt:
		return t.AttemptNo < n.attempt
	case t.Epoch < n.epoch:
		return true
	case t.State == task.Running || n.state == task.Running:
		return t.State == task.Running && n.state != task.Running
	case n.state.Terminal():
		return t.State != n.state && t.Epoch == n.epoch
	}
	return false
}

// missed returns the events between the model and a snapshot, as an engine would
// have emitted them. Of several attempts only the last one is known.
func (n *node) missed(t *weaver.TaskInfo, namespace string) []event.Event {
	h := event.Header{Namespace: namespace, TaskID: t.ID, TaskType: t.Type, JobID: t.JobID, Node: t.Node, AttemptNo: t.AttemptNo}
	at := func(when ...time.Time) event.Header {
		h.At = cmp.Or(cmp.Or(when...), t.UpdatedAt).UTC()
		return h
	}
	var shown []event.Event
	if t.AttemptNo > n.attempt {
		shown = append(shown, event.TaskStarted{Header: at(t.StartedAt), Input: t.Input})
	}
	ran := t.AttemptNo > n.attempt || n.state == task.Running // and no longer, by the snapshot
	if t.State == task.Running || !ran && t.State == n.state {
		return shown
	}
	var took time.Duration
	end := cmp.Or(t.FinishedAt, t.UpdatedAt)
	if ran && !t.StartedAt.IsZero() {
		took = max(0, end.Sub(t.StartedAt))
	}
	told := event.Ending{State: t.State, Waiting: t.Waiting, Output: t.Output, Allowed: t.End().Allowed(), Duration: took}
	switch {
	case t.State.Terminal():
		h = at(t.FinishedAt)
	case t.State == task.Blocked:
		h = at()
	case !ran:
		return shown
	case t.Waiting == task.WaitRetry:
		h, told.Delay = at(), max(0, t.ReadyAt.Sub(t.UpdatedAt))
	case t.Waiting == task.WaitSleep, t.Waiting == task.WaitSignal, t.Waiting == task.WaitChildren, t.Waiting == task.WaitRepair, t.Waiting == task.WaitUndo:
		h = at()
		told.Outcome, told.WakeAt = task.OutcomeSuspended, t.ReadyAt
		return append(shown, told.Event(h))
	default:
		return shown
	}
	failure := errorOf(t)
	told.Error = &failure
	return append(shown, told.Event(h))
}

// errorOf returns the error of a task that did not succeed; a cancel has none.
func errorOf(t *weaver.TaskInfo) task.Error {
	if t.Error != nil && (t.State != task.Cancelled || endsTask(t.Error.Kind)) {
		return *t.Error
	}
	if t.State == task.Cancelled {
		kind := cmp.Or(t.CancelKind, task.KindCancelled)
		switch kind {
		case task.KindParentEnded:
			kind = task.KindCancelled
		case task.KindJobBudget:
			kind = task.KindBudget
		}
		return task.Error{Kind: kind, Message: explain.Who(t.CancelBy, t.CancelReason)}
	}
	return task.Error{}
}

// endsTask reports whether an error is the reason of a cancel, not the error of an
// earlier attempt.
func endsTask(kind task.ErrorKind) bool {
	switch kind {
	case task.KindCancelled, task.KindDeadline, task.KindDependencyFailed, task.KindNotNeeded, task.KindBudget:
		return true
	}
	return false
}

// adopt applies a snapshot. Times from events stay: they are from this machine's
// clock.
func (n *node) adopt(t *weaver.TaskInfo) {
	if t.State == task.Running && n.state != task.Running || t.AttemptNo != n.attempt {
		n.begun, n.ended, n.took = time.Time{}, time.Time{}, 0
	}
	n.state, n.waiting, n.dueAt = t.State, t.Waiting, t.ReadyAt
	n.attempt, n.epoch, n.counted, n.max = t.AttemptNo, t.Epoch, t.AttemptCount, t.MaxAttempts
	n.open, n.lock, n.asked, n.parent = t.RemainingDeps, t.ConcurrencyKey, t.CancelRequested, t.ParentID
	n.deadline = t.DeadlineAt
	n.cancelBy, n.cancelReason, n.mayFail = t.CancelBy, t.CancelReason, t.AllowFailure
	if n.begun.IsZero() {
		n.begun = t.StartedAt
	}
	if n.ended.IsZero() && !t.FinishedAt.IsZero() {
		n.ended = t.FinishedAt
		if !t.StartedAt.IsZero() {
			n.took = max(0, t.FinishedAt.Sub(t.StartedAt))
		}
	}
	switch {
	case n.here:
	case t.State == task.Running && t.Progress != nil && *t.Progress != n.progress:
		n.report(*t.Progress)
	case t.Error != nil && n.err == nil && t.State != task.Succeeded:
		n.err = t.Error
		n.say(explain.Head(t.Error.Message))
	}
}

// blocked returns the event of a job that waits for a person.
func (m *model) blocked(now time.Time) event.JobBlocked {
	names := []string{}
	for _, n := range m.nodes {
		if n.state == task.Blocked {
			names = append(names, n.key)
		}
	}
	return event.JobBlocked{JobHeader: m.header(now), Blocked: names}
}

func (m *model) header(now time.Time) event.JobHeader {
	return event.JobHeader{At: now.UTC(), Namespace: m.namespace, JobID: m.id, Name: m.job}
}
