package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ErrUndoing is the cause of the end of a handler's context while its failed task is being undone.
var ErrUndoing = errors.New("the task is being undone")

// In an undo phase (task.Task.Undo) the handler is called only for its cleanups. Its context has ended from the
// start: recorded steps return their values, no other step begins, and the handler's result is ignored. The attempt
// reports whether its cleanups ran. A failed cleanup is retried by another attempt (rules.UndoDelay).

// undoes reports whether the attempt belongs to an undo phase in which the handler is called for its cleanups.
func (a *Attempt) undoes() bool { return a.task.Undo != nil && !a.task.Undo.Runs() }

// cleansUp reports whether the handler is called although the task was asked to end before: it cleans up after
// earlier attempts.
func (a *Attempt) cleansUp() bool { return a.task.CleanupWhenCancelled && a.task.AttemptNo > 1 }

// endForUndo ends the context of the handler of an undoing attempt, with the cause of the end of the task.
func (a *Attempt) endForUndo() {
	t := &a.task
	switch kind := endKind(t); {
	case t.CancelRequested:
		a.askCancel(t.CancelKind, t.CancelBy, t.CancelReason)
	case kind == task.KindDeadline:
		a.end(ErrDeadline)
	case kind == task.KindCancelled:
		a.end(ErrCancelled)
	default:
		a.end(ErrUndoing)
	}
}

func endKind(t *task.Task) task.ErrorKind {
	if t.Undo.Error == nil {
		return task.KindNone
	}
	return t.Undo.Error.Kind
}

// failedCleanup is a cleanup of this attempt that failed.
type failedCleanup struct {
	name  string
	retry rules.UndoRetry
	err   error
	began time.Time // by the store's clock
}

// readContext returns the context with which a handler reads records of its task: outputs of
// children, values, checkpoints. In an undo phase the handler's context has ended, and a
// failed read would end the handler before it reaches its other steps. Such reads use the
// lease's context.
func (a *Attempt) readContext(ctx context.Context) context.Context {
	if !a.undoes() {
		return ctx
	}
	return leaseContext{a.held, stays(ctx)}
}

// leadsToUndos reports whether ctx belongs to a handler that is replayed to find its undos, outside of steps and
// cleanups. Progress and checkpoints are not recorded there.
func (a *Attempt) leadsToUndos(ctx context.Context) bool {
	return a.undoes() && InStep(ctx) == "" && a.scope(ctx) == a.ctx
}

// leaseContext ends with the lease and has the values of another context.
type leaseContext struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c leaseContext) Value(key any) any { return c.values.Value(key) }

// noteCleanup records the end of a cleanup of this attempt, so that a failed one is retried if the task ends. It
// ignores errors that end only the attempt, and program errors, which block or fail the task by themselves.
func (a *Attempt) noteCleanup(name string, retry rules.UndoRetry, began time.Time, err error) {
	if a.held.Err() != nil || errors.Is(err, ErrAttemptOver) || errors.Is(err, ErrSuspended) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.fatal != nil:
	case err == nil:
		a.cleaned = true
	case a.uncleaned == nil:
		a.uncleaned = &failedCleanup{name, retry, err, began}
	}
}

// recordedStep reports whether an earlier attempt completed a step.
func (a *Attempt) recordedStep(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.journal[name]
	return known != nil && known.done != nil
}

// unendedChildren returns the number of children that have not ended. Cleanups and undos come after them: until then
// a child may redo the work that its parent undoes.
func (a *Attempt) unendedChildren() (n int, err error) {
	needs, err := a.readNeeds(a.held, false)
	for i := range needs {
		if child := &needs[i]; child.Kind == task.OnDone && child.Awaited > 0 && !child.State.Terminal() {
			n++
		}
	}
	return n, err
}

// childrenAfter returns the pause before an attempt of the phase checks again whether the children have ended: a
// quarter of the time that it has waited, from 1 s to 1 min.
func (a *Attempt) childrenAfter() time.Duration {
	return min(max(a.storeNow().Sub(a.task.Undo.Began)/4, time.Second), time.Minute)
}

// unreachedCleanup returns the name of a cleanup that failed in an earlier attempt and that this attempt did not
// reach, or "".
func (a *Attempt) unreachedCleanup() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.failedCleanups {
		name := a.failedCleanups[i].Name
		if known := a.journal[name]; known.done == nil && !known.used {
			return name
		}
	}
	return ""
}

// undoOutcome is outcome for an attempt of an undo phase.
func (a *Attempt) undoOutcome(fin store.Finish, out json.RawMessage, err error) (store.Finish, bool) {
	a.mu.Lock()
	fatal, failed, cleaned := a.fatal, a.uncleaned, a.cleaned
	a.mu.Unlock()
	lost := context.Cause(a.held)
	switch {
	case errors.Is(lost, store.ErrLeaseLost), errors.Is(lost, store.ErrStepConflict):
		return fin, false
	case notHere(fatal):
		return a.releasedFor(fin, fatal), true
	case fatal != nil && kindOf(fatal) != task.KindInternal:
		fin.Outcome, fin.Waiting, fin.Error = task.OutcomeBlocked, task.WaitUndo, a.taskError(fatal)
	case errors.Is(lost, ErrDraining), errors.Is(lost, ErrLeaseUncertain):
		fin.Outcome = task.OutcomeReleased
	case a.children > 0:
		fin.Outcome, fin.Waiting, fin.Delay = task.OutcomeSuspended, task.WaitUndo, a.childrenAfter()
	case failed != nil && notHere(failed.err):
		return a.releasedFor(fin, failed.err), true
	case failed != nil:
		a.cleanupFailed(&fin, failed)
	case notHere(err):
		return a.releasedFor(fin, err), true
	case fatal != nil, err != nil && kindOf(err) == task.KindInternal:
		if fatal == nil {
			fatal = err
		}
		fin.Outcome, fin.Error = task.OutcomeUndoFailed, a.taskError(fatal)
		fin.Delay, _ = rules.UndoDelay(nil, rules.UndoRetry{}, 0, a.storeNow())
	case err != nil && kindOf(err) == task.KindDecode:
		fin.Outcome, fin.Waiting, fin.Error = task.OutcomeBlocked, task.WaitUndo, a.taskError(err)
	case a.unreachedCleanup() != "":
		a.blockUndo(&fin, fmt.Errorf("cleanup %q failed before, and the handler no longer reaches it%s", a.unreachedCleanup(), panicText(err)), err)
	case a.undoLater > 0:
		fin.Outcome, fin.Waiting, fin.Delay = task.OutcomeSuspended, task.WaitUndo, a.undoLater
	case a.undoFailed != nil && notHere(a.undoFailed.err):
		return a.releasedFor(fin, a.undoFailed.err), true
	case a.undoFailed != nil:
		a.undoGoesOn(&fin, a.undoFailed)
	case len(a.open) > 0:
		a.blockUndo(&fin, fmt.Errorf("step %s is to be undone, but the handler no longer reaches it, or it no longer has an Undo%s", a.notReached(), panicText(err)), err)
	case a.panicked && !cleaned && a.steps > 0 && a.of == nil:
		a.blockUndo(&fin, fmt.Errorf("the handler ended before any cleanup%s", panicText(err)), err)
	case err == nil && a.task.Undo.EndsAs == task.Cancelled && !cleaned && a.env.checkSize("output", len(out)) == nil:
		fin.Outcome, fin.Output = task.OutcomeSuccess, out
	default:
		fin.Outcome = task.OutcomeUndone
	}
	return fin, true
}

// blockUndo blocks a task whose handler did not reach a step or cleanup that must be undone.
// An operator deploys a handler that does, or abandons the undo. err is the handler's error.
func (a *Attempt) blockUndo(fin *store.Finish, text, err error) {
	fin.Outcome, fin.Waiting, fin.Error = task.OutcomeBlocked, task.WaitUndo, a.taskError(&KindError{Kind: task.KindHandler, Err: text})
	if a.panicked {
		fin.Error.Kind, fin.Error.Stack = task.KindPanic, a.hide(stackOf(err))
	}
	if len(a.open) > 0 {
		fin.Error.Message += fmt.Sprintf("; to leave a step as it is: weaver task retry %s --cleanup --skip STEP --reason TEXT", a.task.ID)
	}
	fin.Error.Message += fmt.Sprintf("; deploy code that does, then: weaver task retry %[1]s --cleanup; to give it up: weaver task cancel %[1]s --abandon-undo", a.task.ID)
}

// panicText quotes the panic of a handler.
func panicText(err error) string {
	var pe *task.PanicError
	switch {
	case errors.As(err, &pe):
		return ": " + pe.Error()
	case errors.Is(err, errGoexit):
		return ": " + err.Error()
	}
	return ""
}

// cleanupFailed retries a failed cleanup or gives it up.
func (a *Attempt) cleanupFailed(fin *store.Finish, failed *failedCleanup) {
	t := &a.task
	tries := []task.Step{{TaskID: t.ID, Name: failed.name, State: task.StepFailed, AttemptNo: t.AttemptNo, StartedAt: failed.began}}
	for i := range a.failedCleanups {
		if s := &a.failedCleanups[i]; s.Name == failed.name && s.AttemptNo > t.Undo.Since && !s.StartedAt.Before(t.Undo.Began) {
			tries = append(tries, *s)
		}
	}
	a.triesAgain(fin, failed.err, failed.retry, tries, &rules.GivenUp{Step: failed.name, Cleanup: true})
}
