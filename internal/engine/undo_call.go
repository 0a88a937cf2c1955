package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// A call with an undo is undone child by child, the last one first, each by an undo task (task.New.UndoOf). The undo
// task has the type of the child and takes its place: its attempts replay the child's steps, undo the undoable ones,
// and record that at the child. A child without a step left to undo is therefore undone, whatever the end of its undo
// task, and an attempt of the caller checks only that.

// takePlace puts an attempt of an undo task in the place of the undone task.
func (a *Attempt) takePlace() error {
	id := a.task.UndoOf
	if id.IsZero() || a.of != nil {
		return nil
	}
	h, err := a.env.Store.History(a.held, a.env.Namespace, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		// Its steps are deleted, so the effects to undo are unknown.
		a.giveUpOf(fmt.Errorf("task %s, which is to be undone, was deleted", id))
		a.of = &task.Task{ID: id}
		return nil
	case err != nil:
		return &KindError{Kind: task.KindInternal, Err: fmt.Errorf("read task %s, which is to be undone: %w", id, err)}
	}
	of := h.Task
	of.AttemptNo, of.Epoch, of.Undo, of.StartedAt = a.task.AttemptNo, a.task.Epoch, a.task.Undo, a.task.StartedAt
	steps := slices.DeleteFunc(h.Steps, func(s task.Step) bool { // undos and failed cleanups of an earlier phase
		return s.Kind == task.KindUndo || s.Kind == task.KindCleanup && s.State == task.StepFailed
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = &of
	a.task.Input, a.task.SchemaVersion, a.task.ValuesDropped, a.task.Forgotten = of.Input, of.SchemaVersion, of.ValuesDropped, of.Forgotten
	a.replays(steps)
	a.orderUndos()
	return nil
}

// giveUpOf gives up the undo of an undo task without naming a step.
func (a *Attempt) giveUpOf(err error) {
	a.undoFailed = &failedUndo{step: &task.Step{}, err: &Verdict{Kind: Permanent, Err: err}, began: a.storeNow()}
}

// undoCall undoes the succeeded children of a call, and reports whether all are undone. Crash anywhere: the next
// attempt checks the children again.
func (a *Attempt) undoCall(s *task.Step, known *entry) bool {
	err := a.undoChildren(s)
	switch {
	case err != nil:
		a.undoCallFailed(s, known, err)
		return false
	case a.undoLater > 0:
		return false
	}
	row := a.newStep(s.Name, s.Index, task.KindUndo, task.StepCompleted)
	row.Round = s.Round
	if _, err := a.record(stays(a.held), store.Record{Step: row, UndoOf: a.task.UndoOf}); err != nil {
		a.undoFailed = &failedUndo{s, known.retry, err, a.storeNow()}
		return false
	}
	a.mu.Lock()
	a.cleaned = true
	a.mu.Unlock()
	a.emit(func(h event.Header) event.Event {
		return event.StepCompleted{Header: h, Step: s.Name, Index: s.Index, Undo: true}
	})
	return true
}

// undoCallFailed records that the undo of a child was given up.
func (a *Attempt) undoCallFailed(s *task.Step, known *entry, err error) {
	a.undoFailed = &failedUndo{s, known.retry, err, a.storeNow()}
	var v *Verdict
	if !errors.As(err, &v) || !a.recordable(stays(a.held), err) {
		return
	}
	row := a.newStep(s.Name, s.Index, task.KindUndo, task.StepFailed)
	row.Round, row.Error = s.Round, a.taskError(err)
	row.Error.Step = s.Name
	if _, err := a.record(a.held, store.Record{Step: row, UndoOf: a.task.UndoOf}); err == nil {
		a.emit(func(h event.Header) event.Event {
			return event.StepFailed{Header: h, Step: s.Name, Index: s.Index, Try: 1, Error: *row.Error, Undo: true}
		})
	}
}

// undoChildren undoes the last child of a call that is not undone yet. It returns nil when all are undone or when
// undoLater is set to the time of the next check.
func (a *Attempt) undoChildren(call *task.Step) error {
	all, err := a.readNeeds(a.held, false)
	if err != nil {
		return err
	}
	type child struct {
		at int
		id task.ID
	}
	var children []child
	for i := range all {
		if all[i].Step != call.Name {
			continue
		}
		at, err := childIndex(all[i].Node)
		if err != nil {
			return &KindError{Kind: task.KindInternal, Err: fmt.Errorf("the child %q of call %q: %w", all[i].Node, call.Name, err)}
		}
		children = append(children, child{at, all[i].ID})
	}
	slices.SortFunc(children, func(x, y child) int { return cmp.Compare(y.at, x.at) })
	for len(children) > 0 {
		some := children[:min(task.MaxCallTasks, len(children))]
		children = children[len(some):]
		ids := make([]task.ID, len(some))
		for i := range some {
			ids[i] = some[i].id
		}
		found, err := a.env.Store.Tasks(a.held, a.env.Namespace, ids...)
		if err != nil {
			return &KindError{Kind: task.KindInternal, Err: fmt.Errorf("read the children of call %q: %w", call.Name, err)}
		}
		for _, id := range ids {
			at := slices.IndexFunc(found, func(t task.Task) bool { return t.ID == id })
			if at < 0 || found[at].State != task.Succeeded || found[at].UndoOpen == 0 {
				continue // it left nothing to undo
			}
			return a.undoChild(call, &found[at])
		}
	}
	return nil
}

// undoChild stores the task that undoes a child, unless it exists, and checks its state.
func (a *Attempt) undoChild(call *task.Step, child *task.Task) error {
	n := child.UndoTask()
	n.ID = a.env.IDs.New()
	row := a.newStep(call.Name, call.Index, task.KindUndo, task.StepWaiting)
	row.Round = call.Round
	res, err := a.record(stays(a.held), store.Record{Step: row, UndoOf: a.task.UndoOf, Tasks: []task.New{n}})
	if err != nil {
		return err
	}
	found, err := a.env.Store.Tasks(a.held, a.env.Namespace, res.Enqueued[0].ID)
	if err != nil || len(found) == 0 {
		return &KindError{Kind: task.KindInternal, Err: fmt.Errorf("read the task that undoes task %s: %w", child.ID, cmp.Or(err, store.ErrNotFound))}
	}
	switch t := &found[0]; {
	case t.UndoOf != child.ID:
		return &Verdict{Kind: Permanent, Err: fmt.Errorf("task %s has the idempotency key %q but does not undo task %s", t.ID, n.IdempotencyKey, child.ID)}
	case !t.State.Terminal():
		a.undoLater = a.looksAfter(t)
		return nil
	case t.State == task.Failed && t.FinishedAt.Before(a.task.Undo.Resumed):
		return a.retryUndoOf(t)
	case t.State == task.Failed:
		failed := fmt.Errorf("the undo of its child %s (%s) was given up by task %s", child.ID, cmp.Or(child.Node, child.Type), t.ID)
		if t.Error != nil {
			failed = fmt.Errorf("%w: %s", failed, t.Error.Message)
		}
		return &Verdict{Kind: Permanent, Err: failed}
	default: // it ended after the child was read
		a.undoLater = time.Microsecond
		return nil
	}
}

// retryUndoOf retries the undo of an undo task that was given up before an operator retried the undo of this task.
// Crash after it: the undo task is running, or ended later than the retry.
func (a *Attempt) retryUndoOf(t *task.Task) error {
	cmd := store.RetryTask{Task: t.ID, Cleanup: true, Audit: store.Audit{By: "weaver", Reason: fmt.Sprintf("the undo of task %s is tried again", a.task.ID)}}
	got, err := a.env.Store.Operate(a.held, a.env.Namespace, cmd)
	if err == nil {
		err = got[0].Err
	}
	if err != nil && !errors.Is(err, store.ErrState) { // otherwise another attempt retries it
		return &KindError{Kind: task.KindInternal, Err: fmt.Errorf("try the undo of task %s again: %w", t.ID, err)}
	}
	a.undoLater = time.Second
	return nil
}

// looksAfter returns the pause before an attempt of the phase checks again whether a child is undone: a quarter of
// the time that it has taken, from 1 s to 1 min.
func (a *Attempt) looksAfter(t *task.Task) time.Duration {
	return min(max(a.storeNow().Sub(t.CreatedAt)/4, time.Second), time.Minute)
}
