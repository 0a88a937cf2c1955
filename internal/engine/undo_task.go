package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task that is the undo of another task of its job (task.UndoPhase.Runs) is in its undo phase from the start. Its
// handler is treated like the undo of a step: it is called until it succeeds or is given up, and cannot call steps.

// undoName is the name under which the failed tries of such a task are recorded.
func (a *Attempt) undoName() string { return cmp.Or(a.task.Node, "undo") }

// undoScope makes the context of such a handler that of a step: it cannot call steps.
func (a *Attempt) undoScope(ctx context.Context) context.Context {
	if !a.task.Undo.Runs() {
		return ctx
	}
	return context.WithValue(ctx, stepKey{}, &stepScope{name: a.undoName()})
}

// undoError returns the error of such a handler, or nil if it succeeded.
func (a *Attempt) undoError(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.fatal != nil:
		return a.fatal
	case a.suspended:
		return &Verdict{Kind: Permanent, Err: fmt.Errorf("an undo cannot wait: %w", ErrSuspended)}
	}
	return err
}

// noteUndoTry records a failed try of such a task. The number of tries and their total time are derived from these
// rows. Crash before the record: the try does not count.
func (a *Attempt) noteUndoTry(err error) {
	err = a.undoError(err)
	if !a.task.Undo.Runs() || err == nil || a.held.Err() != nil || kindOf(err) == task.KindInternal || notHere(err) || a.endCause() != nil && a.fatalError() == nil {
		return
	}
	a.mu.Lock()
	index := a.nextIndex
	a.mu.Unlock()
	row := a.newStep(a.undoName(), index, task.KindUndo, task.StepFailed)
	row.Error = a.taskError(err)
	_, _ = a.record(a.held, store.Record{Step: row, Elapsed: time.Since(a.begun)}) // the store refuses it if the lease is lost
}

func (a *Attempt) fatalError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fatal
}

// undoTaskOutcome is outcome for an attempt of such a task.
func (a *Attempt) undoTaskOutcome(fin store.Finish, out json.RawMessage, err error) (store.Finish, bool) {
	fatal, cause, lost := a.fatalError(), a.endCause(), context.Cause(a.held)
	if err = a.undoError(err); err == nil {
		if large := a.env.checkSize("output", len(out)); large != nil {
			err = &Verdict{Kind: Permanent, Err: large}
		}
	}
	var v *Verdict
	switch errors.As(err, &v); {
	case errors.Is(lost, store.ErrLeaseLost), errors.Is(lost, store.ErrStepConflict):
		return fin, false
	case err == nil:
		fin.Outcome, fin.Output = task.OutcomeSuccess, out
	case fatal == nil && (errors.Is(cause, ErrDraining) || errors.Is(cause, ErrLeaseUncertain)):
		fin.Outcome = task.OutcomeReleased
	case notHere(err):
		return a.releasedFor(fin, err), true
	case v != nil && v.Kind == Blocked, kindOf(err) == task.KindDecode:
		fin.Outcome, fin.Waiting, fin.Error = task.OutcomeBlocked, task.WaitUndo, a.taskError(err)
	case kindOf(err) == task.KindInternal:
		fin.Outcome, fin.Error = task.OutcomeUndoFailed, a.taskError(err)
		fin.Delay, _ = rules.UndoDelay(nil, rules.UndoRetry{}, 0, a.storeNow())
	default:
		if fatal != nil {
			err = &Verdict{Kind: Permanent, Err: fatal}
		}
		tries := []task.Step{{TaskID: a.task.ID, State: task.StepFailed, AttemptNo: a.task.AttemptNo, StartedAt: a.now}}
		for i := range a.failedUndos {
			if s := &a.failedUndos[i]; s.AttemptNo > a.task.Undo.Since {
				tries = append(tries, *s)
			}
		}
		a.triesAgain(&fin, err, rules.UndoRetry{}, tries, &rules.GivenUp{})
	}
	return fin, true
}
