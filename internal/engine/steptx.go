package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// StepTx is Step inside the store's transaction: the value and all writes of fn through the transaction commit
// together.
func (a *Attempt) StepTx(ctx context.Context, name string, opts StepOptions, fn func(context.Context, store.Tx) (json.RawMessage, error)) (json.RawMessage, error) {
	st := a.env.Store
	if !st.Capabilities().Has(store.CanStepTx) {
		return nil, a.failFatally(fmt.Errorf("step %q: %w", name, ErrStepTxUnsupported))
	}
	if err := a.declareUndo(name, opts.Undo, opts.UndoRetry); err != nil {
		return nil, err
	}
	done, index, err := a.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	if done != nil {
		return a.replayed(ctx, done)
	}
	defer a.leave()

	a.startStep(name, index, 1)
	if !a.rows.begun.Load() {
		a.flushEvents()
	}
	a.rows.inTx.Add(1) // events must not wait for the transaction
	defer a.rows.inTx.Add(-1)
	begun := time.Now()
	step := task.Step{Name: name, Index: index, Kind: task.KindStep, State: task.StepCompleted, AttemptNo: a.task.AttemptNo, Try: 1, Redact: opts.Redact, Round: a.roundOf(name)}
	if opts.Undo != nil { // an uncommitted step did not happen: no beginning is recorded
		step.Undo = task.UndoOpen
	}
	var stepErr error
	res, err := st.StepTx(ctx, a.env.Namespace, store.Record{Lease: a.lease, Step: &step, SQLTx: opts.SQLTx}, a.env.lease().StepTx(),
		func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			scope := &stepScope{name: name, tx: tx}
			value, err := a.runStep(ctx, scope, func(ctx context.Context) (json.RawMessage, error) { return fn(ctx, tx) })
			if err == nil {
				err = a.env.checkInline("value of a StepTx", len(value))
			}
			step.Cost, stepErr = scope.purse.take(), err
			return value, err
		})
	elapsed := time.Since(begun)
	if err == nil {
		err = res.Err
	}
	ended := errors.Is(err, store.ErrStepTxEnded)
	own := ended || errors.Is(err, store.ErrStepTxRefused) || errors.Is(err, store.ErrStepTxTooLong)
	switch {
	case err == nil:
		a.recordedNew()
		done := task.Step{Value: res.Step.Value, Redact: opts.Redact}
		a.completedStep(&done)
		a.emit(func(h event.Header) event.Event {
			return event.StepCompleted{Header: h, Step: name, Index: index, Output: a.stepOutput(&done), Duration: elapsed}
		})
		return res.Step.Value, nil
	case stepErr == nil && !own:
		return nil, a.answer(err)
	case !ended && !a.recordable(ctx, err):
		return nil, err
	}
	se := a.stepError(name, err)
	step.Undo = task.UndoNone
	step.State, step.Error = task.StepFailed, &task.Error{Kind: se.Kind, Message: se.Message, Code: se.Code, Step: name, Stack: a.hide(stackOf(err))}
	if _, err := a.record(ctx, store.Record{Step: &step, Elapsed: elapsed}); err != nil {
		return nil, err
	}
	a.emit(func(h event.Header) event.Event {
		return event.StepFailed{Header: h, Step: name, Index: index, Try: 1, Error: *step.Error, Duration: elapsed}
	})
	if ended { // a retry would end the transaction the same way
		return nil, a.failFatally(se)
	}
	return nil, a.failed(se)
}
