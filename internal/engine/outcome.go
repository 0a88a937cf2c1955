package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxInternal is the maximum number of consecutive engine errors of a task.
const maxInternal = 10

// released gives the task back as if it had not been started.
func (a *Attempt) released() store.Finish {
	a.mu.Lock()
	defer a.mu.Unlock()
	return store.Finish{Lease: a.lease, Outcome: task.OutcomeReleased, Elapsed: time.Since(a.begun), CodeVersion: a.version, Handler: a.handler, RouteReason: a.route, StepsRun: a.stepsRun, Notes: a.notesNow(), EndsAs: a.endsAs()}
}

// endsAs returns the final state of the task's undo phase, or "" outside one.
func (a *Attempt) endsAs() task.State {
	if a.task.Undo == nil {
		return ""
	}
	return a.task.Undo.EndsAs
}

// outcome converts the handler's result into the finish for the store. ok is false when nothing may be written
// because the lease is lost.
func (a *Attempt) outcome(out json.RawMessage, err error) (fin store.Finish, ok bool) {
	a.mu.Lock()
	fin = store.Finish{
		Lease:       a.lease,
		Elapsed:     time.Since(a.begun),
		CodeVersion: a.version,
		Handler:     a.handler,
		RouteReason: a.route,
		StepsRun:    a.stepsRun,
		Progress:    a.progress.take(),

		StepsUnreached: a.unreached(),
		Notes:          a.notesNow(),
		Idle:           !a.news,
		EndsAs:         a.endsAs(),
		Unclean:        a.uncleaned != nil,
		Panicked:       a.panicked,
	}
	if a.undoes() { // the handler ends at the first unrecorded step
		fin.StepsUnreached = nil
	}
	suspended, wakeAt, waiting, asks, fatal, cancelBy := a.suspended, a.wakeAt, a.waiting, a.question, a.fatal, a.cancelBy
	a.mu.Unlock()
	if a.undoes() {
		return a.undoOutcome(fin, out, err)
	}
	if a.task.Undo.Runs() {
		return a.undoTaskOutcome(fin, out, err)
	}
	cause, lost := a.endCause(), context.Cause(a.held)
	children, decomposes := asksForChildren(err)
	other, depends := asksForTask(err)

	switch {
	case errors.Is(lost, store.ErrLeaseLost), errors.Is(lost, store.ErrStepConflict):
		return fin, false
	case notHere(fatal):
		return a.releasedFor(fin, fatal), true
	case fatal != nil:
		var v *Verdict
		if errors.As(fatal, &v) && v.Kind == Blocked {
			return a.decide(fin, task.OutcomeBlocked, fatal, false), true
		}
		if kindOf(fatal) == task.KindInternal { // of the bucket: retried
			return a.internal(fin, fatal), true
		}
		return a.decide(fin, task.OutcomeFailure, fatal, true), true
	case suspended && asks != nil:
		return a.decide(fin, task.OutcomeBlocked, asks, false), true
	case suspended:
		// The handler's result is ignored: a swallowed or wrapped ErrSuspended still suspends the task.
		fin.Outcome, fin.WakeAt, fin.Waiting, fin.WakeSeq = task.OutcomeSuspended, wakeAt, waiting, a.task.WakeSeq
		return fin, true
	case err == nil:
		if large := a.env.checkSize("output", len(out)); large != nil {
			return a.decide(fin, task.OutcomeFailure, large, true), true
		}
		fin.Outcome, fin.Output = task.OutcomeSuccess, out
		return fin, true
	case decomposes && !isCancel(cause):
		return a.decompose(fin, out, children), true
	case depends && !isCancel(cause):
		return a.depend(fin, other), true
	case isCancel(cause) && a.cutShort():
		fin.Outcome = task.OutcomeReleased
		return fin, true
	case isCancel(cause):
		fin.Outcome, fin.Error = task.OutcomeCancelled, cancelError(cause, cancelBy)
		return fin, true
	case errors.Is(cause, ErrDraining), errors.Is(cause, ErrLeaseUncertain):
		fin.Outcome = task.OutcomeReleased
		return fin, true
	}

	var v *Verdict
	errors.As(err, &v)
	kind := kindOf(err)
	switch {
	case notHere(err):
		return a.releasedFor(fin, err), true
	case v != nil && v.Kind == Blocked:
		return a.decide(fin, task.OutcomeBlocked, err, false), true
	case kind == task.KindInternal:
		return a.internal(fin, err), true
	case kind == task.KindDecode:
		return a.decide(fin, task.OutcomeDecodeFailed, err, false), true
	}
	var called *task.CallError // another attempt would get the same error from the call
	permanent := v != nil && v.Kind == Permanent || v == nil && errors.As(err, &called) || kind == task.KindValidation || errors.Is(err, ErrNoTask) || errors.Is(err, ErrNestedTx) || v == nil && store.Refused(err)
	return a.decide(fin, task.OutcomeFailure, err, permanent), true
}

// unkept returns the end of an attempt whose output or children the bucket did not take. It is a problem of the
// worker or an engine error, after which the handler runs again.
func (a *Attempt) unkept(fin store.Finish, err error) store.Finish {
	fin.Output, fin.Children, fin.Join, fin.Decision = nil, nil, task.JoinNone, nil
	if IsOwnTrouble(err) {
		return a.releasedFor(fin, err)
	}
	fin = a.internal(fin, &KindError{Kind: task.KindInternal, Err: err})
	if fin.EndsAs != "" { // the undo is retried
		fin.Outcome, fin.Delay = task.OutcomeUndoFailed, max(fin.Delay, time.Second)
	}
	return fin
}

// refusedEnd returns the replacement of an end that the store refuses permanently: the attempt fails, or its undo
// waits for a person.
func (a *Attempt) refusedEnd(fin store.Finish, refused error) store.Finish {
	err := &KindError{Kind: task.KindValidation, Err: fmt.Errorf("the store refuses the result of the attempt: %w", refused)}
	fin.Output, fin.Children, fin.Join, fin.DependsOn, fin.Decision = nil, nil, task.JoinNone, task.ID{}, nil
	fin.Delay, fin.WakeAt, fin.Waiting, fin.WakeSeq = 0, time.Time{}, task.WaitNone, 0
	if fin.EndsAs != "" {
		fin.Outcome, fin.Waiting, fin.Error = task.OutcomeBlocked, task.WaitUndo, a.taskError(err)
		return fin
	}
	return a.decide(fin, task.OutcomeFailure, err, true)
}

// bareEnd is [Attempt.refusedEnd] without any data of the handler or a Decider: the task fails.
func (a *Attempt) bareEnd(fin store.Finish, refused error) store.Finish {
	err := &KindError{Kind: task.KindValidation, Err: fmt.Errorf("the store refuses the result of the attempt: %w", refused)}
	bare := store.Finish{Lease: fin.Lease, Outcome: task.OutcomeFailure, Error: a.taskError(err), Elapsed: fin.Elapsed, CodeVersion: fin.CodeVersion, EndsAs: fin.EndsAs}
	if bare.EndsAs != "" {
		bare.Outcome, bare.Waiting = task.OutcomeBlocked, task.WaitUndo
		return bare
	}
	bare.Decision = &task.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{Text: "the store refuses the result of the attempt"}}
	return bare
}

// internal ends the attempt with an error of the engine.
func (a *Attempt) internal(fin store.Finish, err error) store.Finish {
	fin.Outcome, fin.Error = task.OutcomeFailure, a.taskError(err)
	fin.Delay = decide.Backoff(a.task, a.task.InternalCount+1)
	if a.task.InternalCount+1 >= maxInternal {
		fin.Delay = -1
		fin.Error.Message = fmt.Sprintf("gave up after %d errors of the engine in a row: %s", maxInternal, fin.Error.Message)
	}
	return fin
}

// taskError returns the record of an error.
func (a *Attempt) taskError(err error) *task.Error {
	te := &task.Error{Kind: kindOf(err), Message: a.hide(sanitize(err.Error())), Code: a.hide(CodeOf(err)), Stack: a.hide(stackOf(err))}
	var q *question
	if errors.As(err, &q) {
		te.Ask, te.AskShape, te.AskUntil = q.name, q.shape, q.until
		return te
	}
	te.Step = stepOf(err)
	return te
}

// stepOf returns the name of the step that returned err, or "".
func stepOf(err error) string {
	var se *task.StepError
	var ce *task.CallError
	switch {
	case errors.As(err, &se):
		return se.Step
	case errors.As(err, &ce):
		return ce.Call
	}
	for ke := (*KindError)(nil); errors.As(err, &ke); err = ke.Err { // a timeout wraps the step's error
		if ke.Step != "" {
			return ke.Step
		}
	}
	return ""
}

// kindOf classifies an error that a handler or a step returned.
func kindOf(err error) task.ErrorKind {
	var ke *KindError
	var pe *task.PanicError
	var se *task.StepError
	switch {
	case notHere(err):
		return task.KindWorker
	case errors.As(err, &ke):
		return ke.Kind
	case errors.As(err, &pe):
		return task.KindPanic
	case errors.As(err, &se) && se.Kind != task.KindNone:
		return se.Kind
	case errors.Is(err, ErrTimeout):
		return task.KindTimeout
	case isTransient(err):
		return task.KindInternal
	}
	return task.KindHandler
}

func stackOf(err error) string {
	var pe *task.PanicError
	if errors.As(err, &pe) {
		return sanitize(pe.Stack)
	}
	return ""
}

// maxText is the maximum length of a stored error or report text, in bytes.
const maxText = 16 << 10

// sanitize returns a text that every store can keep: UTF-8 without NUL, of limited length. A message that the store
// refuses would block the results of all other attempts.
func sanitize(s string) string {
	if len(s) > maxText {
		s = fmt.Sprintf("%s… (%d bytes in all)", s[:maxText], len(s))
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func isCancel(cause error) bool {
	return errors.Is(cause, ErrCancelled) || errors.Is(cause, ErrDeadline) || errors.Is(cause, ErrUndoing)
}

func cancelError(cause error, ask cancelAsk) *task.Error {
	if ask.budget {
		return &task.Error{Kind: task.KindBudget, Message: "the budget is used up: " + ask.reason}
	}
	te := &task.Error{Kind: task.KindCancelled, Message: cause.Error()}
	if errors.Is(cause, ErrDeadline) {
		te.Kind = task.KindDeadline
	}
	if ask.by != "" {
		te.Message += " by " + ask.by
	}
	if ask.reason != "" {
		te.Message += ": " + ask.reason
	}
	return te
}

// Refuse makes a program error, or a value that does not fit the program, the attempt's outcome, whatever the handler
// returns.
func (a *Attempt) Refuse(err error) error { return a.failFatally(err) }

// Undecodable ends the attempt because a recorded value no longer fits its type. The step is never silently run
// again; a person decides.
func (a *Attempt) Undecodable(step string, err error) error {
	return a.undecodable(step, fmt.Errorf("the recorded value of step %q no longer decodes: %w; give the step a new name to run it again, or bring the old type back", step, err))
}

// WrongPayload ends the attempt because the payload of a consumed signal does not fit the type that the handler
// expects.
func (a *Attempt) WrongPayload(wait string, err error) error {
	return a.undecodable(wait, fmt.Errorf("the signal that the wait %q took does not fit: %w; rerun the task from %[1]q, and send the signal to the new one", wait, err))
}

func (a *Attempt) undecodable(step string, err error) error {
	return a.failFatally(&Verdict{Kind: Blocked, Err: &KindError{Kind: task.KindDecode, Step: step, Err: err}})
}
