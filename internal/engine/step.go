package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// StepOptions are the options of one step.
type StepOptions struct {
	Tries       int           // ≥ 1, within this attempt
	Backoff     time.Duration // before the second try; doubles
	RecordError bool          // the last error is the step's result
	Redact      []string      // paths in the value that only the handler sees

	SQLTx bool // the function of a StepTx wants a *sql.Tx

	Undo      *Undo           // the undo of the step; nil: it has no undo
	UndoRetry rules.UndoRetry // of the undo, or of a cleanup
	Wrong     error           // an error in the options
}

// DefaultStepBackoff is the pause before a step's second try.
const DefaultStepBackoff = 100 * time.Millisecond

type stepKey struct{}

// stepScope marks the context of a running step.
type stepScope struct {
	name  string
	tx    store.Tx // inside StepTx
	purse purse
	fn    func(context.Context) (json.RawMessage, error) // for RunStep

	artifacts []store.NewArtifact // recorded with the step
}

// InStep returns the name of the step that ctx belongs to, "" outside steps.
func InStep(ctx context.Context) string {
	if s, ok := ctx.Value(stepKey{}).(*stepScope); ok {
		return s.name
	}
	return ""
}

// StepTxOf returns the transaction of the StepTx that ctx belongs to, or nil.
func StepTxOf(ctx context.Context) store.Tx {
	if s, ok := ctx.Value(stepKey{}).(*stepScope); ok {
		return s.tx
	}
	return nil
}

// enter begins the use of a step name. It returns the recorded step if there is one, otherwise the index under which
// to record it. The caller must call leave when the error is nil and done is nil.
func (a *Attempt) enter(ctx context.Context, name string) (done *task.Step, index int, err error) {
	if outer := InStep(ctx); outer != "" {
		return nil, 0, a.failFatally(fmt.Errorf("step %q inside step %q: %w", name, outer, ErrNestedStep))
	}
	if err := checkStepName(name); err != nil {
		return nil, 0, a.failFatally(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over:
		return nil, 0, fmt.Errorf("step %q: %w", name, ErrAttemptOver)
	case a.fatal != nil:
		return nil, 0, a.fatal
	case a.suspended:
		return nil, 0, ErrSuspended
	}
	known := a.entryOf(name)
	if known.used {
		err := fmt.Errorf("step %q: %w", name, ErrDuplicateStep)
		a.fatal = err
		a.end(err)
		return nil, 0, err
	}
	known.used = true
	a.progress.reached(known.done != nil)
	switch {
	case known.done != nil:
		return known.done, known.index, nil
	case known.failed != nil && !inCleanup(ctx): // in an undo phase a step is not retried
		return known.failed, known.index, nil
	}
	if err := a.checkUndoKey(name); err != nil {
		a.fatal = err
		a.end(err)
		return nil, 0, err
	}
	if err := a.checkValidity(ctx); err != nil {
		return nil, 0, err
	}
	a.inFlight++
	return nil, known.index, nil
}

// entryOf returns the journal entry of a step; the caller holds the mutex.
func (a *Attempt) entryOf(name string) *entry {
	known := a.journal[name]
	if known == nil {
		known = &entry{index: a.nextIndex}
		a.nextIndex++
		if a.journal == nil {
			a.journal = make(map[string]*entry)
		}
		a.journal[name] = known
	}
	return known
}

func checkStepName(name string) error {
	switch {
	case name == "":
		return errors.New("a step needs a name: its value is recorded under it")
	case len(name) > task.MaxKey:
		return fmt.Errorf("step %.40q…: the name is %d bytes long, at most %d are allowed", name, len(name), task.MaxKey)
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return fmt.Errorf("step %q: the name must be UTF-8 without NUL", name)
	}
	return nil
}

// leave ends the use begun by enter.
func (a *Attempt) leave() {
	a.mu.Lock()
	if a.inFlight--; a.inFlight == 0 {
		a.idle.Broadcast()
	}
	a.mu.Unlock()
}

// checkValidity returns an error if no step may start now: its context ended, or the lease may have expired.
func (a *Attempt) checkValidity(ctx context.Context) error {
	for _, c := range []context.Context{ctx, a.scope(ctx)} { // ctx may lack the attempt's end
		if c.Err() != nil {
			return context.Cause(c)
		}
	}
	if a.validFor() <= 0 {
		a.end(ErrLeaseUncertain)
		return ErrLeaseUncertain
	}
	if a.env.leaving.Load() && !a.undoes() && !a.cleansUp() {
		a.end(ErrDraining)
		return ErrDraining
	}
	return nil
}

// failFatally makes a program error the attempt's outcome, whatever the handler returns.
func (a *Attempt) failFatally(err error) error {
	a.mu.Lock()
	if a.fatal == nil && !a.over {
		a.fatal = err
	}
	a.mu.Unlock()
	a.end(err)
	return err
}

// Step runs fn unless a step of this name is already completed, and makes its value durable before it returns. On
// replay it returns the recorded bytes and does not call fn.
func (a *Attempt) Step(ctx context.Context, name string, opts StepOptions, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
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
	round, ends := a.roundOf(name), ctx // the round under which its value is recorded
	if opts.Undo != nil {
		if err := a.begin(ctx, name, index, round); err != nil {
			return nil, err
		}
		ends = stays(ctx)
	}

	for try := 1; ; try++ {
		a.startStep(name, index, try)
		if err := a.checkValidity(ctx); err != nil { // a listener may be slow
			return nil, err
		}
		begun := time.Now()
		scope := &stepScope{name: name}
		value, stepErr := a.runStep(ctx, scope, fn)
		step := task.Step{Name: name, Index: index, Kind: stepKind(ctx), AttemptNo: a.task.AttemptNo, Try: try, Round: round, Cost: scope.purse.take()}
		elapsed := time.Since(begun)

		if stepErr == nil {
			stepErr = a.env.checkSize("value", len(value))
		}
		if stepErr == nil {
			step.State, step.Value, step.Redact = task.StepCompleted, value, opts.Redact
			if opts.Undo != nil {
				step.Undo = task.UndoOpen
			}
			a.completedStep(&step)
			_, err := a.record(ends, store.Record{Step: &step, Elapsed: elapsed, Artifacts: scope.artifacts})
			if err != nil {
				return nil, err
			}
			a.emit(func(h event.Header) event.Event {
				return event.StepCompleted{Header: h, Step: name, Index: index, Output: a.stepOutput(&step), Duration: elapsed}
			})
			if cause := context.Cause(a.ctx); opts.Undo != nil && isCancel(cause) { // it was in flight when the task was asked to end
				return nil, cause
			}
			return value, nil
		}
		if !a.recordable(ctx, stepErr) {
			return nil, stepErr
		}

		se := a.stepError(name, stepErr)
		over := ctx.Err() != nil // then the context may have caused the error
		last := try >= opts.Tries || over || isFinal(stepErr)
		step.State = task.StepFailed
		step.Error = &task.Error{Kind: se.Kind, Message: se.Message, Code: se.Code, Step: name, Stack: a.hide(stackOf(stepErr))}
		noResult := over || se.Kind == task.KindValidation || a.noResult(stepErr)
		if last && opts.RecordError && !noResult {
			if step.State = task.StepCompleted; opts.Undo != nil {
				step.Undo = task.UndoOpen
			}
		}
		if _, err := a.record(ctx, store.Record{Step: &step, Elapsed: elapsed}); err != nil {
			return nil, err
		}
		a.emit(func(h event.Header) event.Event {
			return event.StepFailed{Header: h, Step: name, Index: index, Try: try, Error: *step.Error, Duration: elapsed}
		})
		switch {
		case last && opts.RecordError && noResult && se.Kind != task.KindValidation:
			return nil, unrecorded(se)
		case last:
			return nil, a.failed(se)
		}
		wait(ctx, stepPause(opts.Backoff, try), nil)
		if err := a.checkValidity(ctx); err != nil {
			return nil, err
		}
	}
}

// failed returns the error for the caller of a step: a value that cannot be stored is a program error, which fails
// the task whatever the handler does.
func (a *Attempt) failed(se *task.StepError) error {
	if se.Kind == task.KindValidation {
		return a.failFatally(se)
	}
	return se
}

// stepPause returns base · 2^(try−1), at most a day.
func stepPause(base time.Duration, try int) time.Duration {
	const most = 24 * time.Hour
	for ; try > 1 && base < most; try-- {
		base *= 2
	}
	return min(base, most)
}

// maxStepsRun is the maximum number of step names in the record of an attempt.
const maxStepsRun = 1000

// startStep records that a step's function is about to run, and emits the event.
func (a *Attempt) startStep(name string, index, try int) {
	a.mu.Lock()
	if len(a.stepsRun) < maxStepsRun {
		a.stepsRun = append(a.stepsRun, name)
	}
	a.mu.Unlock()
	a.emit(func(h event.Header) event.Event {
		return event.StepStarted{Header: h, Step: name, Index: index, Try: try}
	})
}

// runStep calls fn with a marked context; a panic becomes its error.
func (a *Attempt) runStep(ctx context.Context, scope *stepScope, fn func(context.Context) (json.RawMessage, error)) (value json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, &task.PanicError{Value: p, Stack: string(debug.Stack())}
		}
	}()
	ctx = context.WithValue(ctx, stepKey{}, scope)
	if a.env.WrapStep == nil {
		return fn(ctx)
	}
	scope.fn = fn
	return a.env.WrapStep(ctx, scope.name)
}

// StepFunc runs the function of a step.
type StepFunc func(ctx context.Context, name string) (json.RawMessage, error)

// RunStep is the innermost StepFunc: it runs the function of the step that ctx
// belongs to.
func RunStep(ctx context.Context, _ string) (json.RawMessage, error) {
	s, ok := ctx.Value(stepKey{}).(*stepScope)
	if !ok || s.fn == nil {
		return nil, ErrNoTask
	}
	return s.fn(ctx)
}

// recordable reports whether a step's failure belongs to the step. A failure caused by the end of the attempt's own
// context is never recorded as the step's result.
func (a *Attempt) recordable(ctx context.Context, err error) bool {
	if a.scope(ctx).Err() != nil {
		return false
	}
	var kind *KindError
	if errors.As(err, &kind) && kind.Kind == task.KindInternal || isTransient(err) || notHere(err) {
		return false
	}
	return !(ctx.Err() != nil && errors.Is(err, context.Canceled))
}

func (a *Attempt) stepError(name string, err error) *task.StepError {
	se := &task.StepError{Step: name, Kind: kindOf(err), Code: a.hide(CodeOf(err)), Message: a.hide(sanitize(err.Error())), Err: err}
	var inner *task.StepError
	if errors.As(err, &inner) {
		se.Message = inner.Message
	}
	return se
}

// isFinal reports whether retrying the step inside this attempt is pointless: the handler said so, or its value
// cannot be stored.
func isFinal(err error) bool {
	var v *Verdict
	var ke *KindError
	return errors.As(err, &v) || errors.As(err, &ke) || store.Refused(err)
}

func replay(done *task.Step) (json.RawMessage, error) {
	if done.Error != nil {
		return nil, &task.StepError{Step: done.Name, Kind: done.Error.Kind, Code: done.Error.Code, Message: done.Error.Message}
	}
	return done.Value, nil
}

// record writes under the lease and interprets the answer. It retries after store errors for as long as the lease is
// valid.
func (a *Attempt) record(ctx context.Context, rec store.Record) (store.RecordResult, error) {
	rec.Lease = a.lease
	// Steps in flight when a cancel arrived are not stored, except cleanups, undos, and values of steps that have an
	// undo.
	scope := a.scope(ctx)
	if cause := context.Cause(scope); cause != nil && rec.Step != nil && (rec.Step.State == task.StepCompleted || rec.Step.State == task.StepBegun) && isCancel(cause) {
		return store.RecordResult{}, cause
	}
	whole, kept := rec, 1
	if err := a.keepRecord(scope, &rec); err != nil { // may take long: events continue meanwhile
		return store.RecordResult{}, a.unrecordable(scope, err)
	}
	stored := false
	done := a.withEvents(&rec)
	whole.Events = rec.Events
	defer func() { done(stored) }()
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		a.mu.Lock()
		over := a.over
		a.mu.Unlock()
		if over {
			return store.RecordResult{}, ErrAttemptOver
		}
		if a.validFor() <= 0 {
			a.end(ErrLeaseUncertain)
			return store.RecordResult{}, ErrLeaseUncertain
		}
		res := a.recorder.record(rec, try)
		if errors.Is(res.Err, store.ErrBlobGone) {
			rec = whole
			if kept++; kept > keepTries {
				return res, a.unrecordable(scope, res.Err)
			}
			if err := a.keepRecord(scope, &rec); err != nil {
				return store.RecordResult{}, a.unrecordable(scope, err)
			}
			continue
		}
		var err error
		if try < refusedTries && store.Refused(res.Err) && scope.Err() == nil {
			err = storeError(res.Err)
		} else {
			err = a.answer(res.Err)
		}
		stored = err == nil
		var storeErr *KindError
		looksAgain := len(rec.Tasks) == 0 && res.Step.State == task.StepWaiting && res.Step.AttemptNo != a.task.AttemptNo
		if err == nil && rec.Step != nil && rec.Step.State != task.StepFailed && !looksAgain {
			a.recordedNew()
		}
		if !errors.As(err, &storeErr) || storeErr.Kind != task.KindInternal {
			if sealed := seal.Failure(res.Step.Value); err == nil && sealed != nil { // a signal's
				return res, a.failFatally(Unreadable("recorded value of step "+res.Step.Name, res.Step.Name, sealed))
			}
			if err == nil && res.Asked != "" { // the next heartbeat would report it too
				a.askCancel(task.KindBudget, "", res.Asked)
			}
			return res, err
		}
		a.env.repeats.warn(a.logger(), "record a step", res.Err, "retry_in", pause)
		wait(scope, pause, nil)
		if scope.Err() != nil {
			return store.RecordResult{}, err
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// answer converts the store's error for a record into the attempt's, and ends the attempt when it may not continue.
func (a *Attempt) answer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrLeaseLost), errors.Is(err, store.ErrStepConflict):
		a.end(err)
		return err
	case errors.Is(err, store.ErrCancelRequested):
		a.end(ErrCancelled)
		return ErrCancelled
	case errors.Is(err, store.ErrLimit):
		return a.failFatally(&KindError{Kind: task.KindValidation, Err: err})
	case store.Refused(err):
		return a.failFatally(&KindError{Kind: task.KindValidation, Err: fmt.Errorf("the store refuses a record of the attempt: %w", err)})
	}
	return storeError(err)
}

// storeError returns the error of a store that did not take a record; it is retried.
func storeError(err error) error {
	return &KindError{Kind: task.KindInternal, Err: fmt.Errorf("record a step: %w", err)}
}
