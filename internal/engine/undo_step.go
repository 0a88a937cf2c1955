package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// UndoRetry configures the retries of an undo or a cleanup.
type UndoRetry = rules.UndoRetry

// Undo is the undo of a step.
type Undo struct {
	Of  reflect.Type // type of the step's value
	Run func(ctx context.Context, u UndoCall) error
	Tx  func(ctx context.Context, tx store.Tx, u UndoCall) error // replaces Run: runs in a transaction of the store

	SQLTx bool // Tx wants a *sql.Tx

	children bool // of a call: each succeeded child is undone instead of calling Run
}

// UndoCall is the argument of an undo.
type UndoCall struct {
	Step         string
	Out          json.RawMessage // the step's value, if Done
	Done         bool            // the value is recorded; otherwise the effect of the step is unknown
	Key, UndoKey string          // of the step, and of its undo, in its round
}

// failedUndo is a failed undo of this attempt.
type failedUndo struct {
	step  *task.Step
	retry rules.UndoRetry
	err   error
	began time.Time // by the store's clock
}

// declareUndo records the undo of a step.
func (a *Attempt) declareUndo(name string, undo *Undo, retry UndoRetry) error {
	if undo == nil {
		return nil
	}
	if strings.Contains(name, "#") {
		return a.failFatally(fmt.Errorf("step %q: %w: the name of a step with an Undo has no '#': StepKey puts it before the round", name, errUndoName))
	}
	a.mu.Lock()
	known := a.entryOf(name)
	known.undo, known.retry = undo, retry
	clash := ""
	for other, e := range a.journal {
		if e.used && strings.HasPrefix(other, name+"#") {
			clash = other
		}
	}
	a.mu.Unlock()
	if clash != "" {
		return a.failFatally(undoNameClash(clash, name))
	}
	return nil
}

var errUndoName = errors.New("wrong name")

func undoNameClash(name, of string) error {
	return fmt.Errorf("step %q: %w: it would have the StepKey that step %q, which has an Undo, gets in a later round", name, errUndoName, of)
}

// checkUndoKey refuses a name that would collide with the key of a step with an undo. The caller holds a.mu.
func (a *Attempt) checkUndoKey(name string) error {
	base, _, numbered := strings.Cut(name, "#")
	if !numbered {
		return nil
	}
	if known := a.journal[base]; known != nil && known.undo != nil {
		return undoNameClash(name, base)
	}
	return nil
}

// StepKey returns the key of a step in its current round.
func (a *Attempt) StepKey(name string) string {
	return task.StepKey(a.subject(), name, a.roundOf(name))
}

// roundOf returns the number of undos of a step.
func (a *Attempt) roundOf(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.journal[name]; known != nil {
		return known.round
	}
	return 0
}

// begin records that a step with an undo begins, once per round. Crash here: the function has not run. Crash after
// it: whether the function ran is unknown, and the undo is told so.
func (a *Attempt) begin(ctx context.Context, name string, index, round int) error {
	a.mu.Lock()
	known := a.entryOf(name)
	a.mu.Unlock()
	if known.begun != nil {
		return nil
	}
	step := a.newStep(name, index, task.KindStep, task.StepBegun)
	step.Undo, step.Round = task.UndoOpen, round
	res, err := a.record(ctx, store.Record{Step: step})
	if err == nil {
		known.begun = &res.Step
	}
	return err
}

// Point records a point of no return: steps that began before it are no longer undone.
func (a *Attempt) Point(ctx context.Context, name string) error {
	done, index, err := a.enter(ctx, name)
	if err != nil || done != nil {
		return err
	}
	defer a.leave()
	_, err = a.record(ctx, store.Record{Step: a.newStep(name, index, task.KindPoint, task.StepCompleted)})
	return err
}

// noteForUndo keeps the parts of a row that an undo phase needs.
func (a *Attempt) noteForUndo(s *task.Step) {
	failed := s.State == task.StepFailed
	switch {
	case s.Kind == task.KindCleanup && failed:
		a.failedCleanups = append(a.failedCleanups, *s)
	case s.Kind == task.KindUndo && failed:
		a.failedUndos = append(a.failedUndos, *s)
	case s.Kind == task.KindCleanup, s.Kind == task.KindUndo:
		a.cleaned = a.cleaned || !s.CompletedAt.Before(a.task.Undo.Began)
	case s.Undo == task.UndoOpen:
		a.open = append(a.open, s)
	}
}

// orderUndos sorts the steps to undo: the last begun first.
func (a *Attempt) orderUndos() {
	slices.SortFunc(a.open, func(x, y *task.Step) int { return cmp.Compare(y.UndoNo, x.UndoNo) })
	for _, known := range a.journal {
		if known.failed != nil && known.failed.Round != known.round {
			known.failed = nil
		}
	}
}

// undoSteps undoes the undoable steps until an undo fails or the handler, which returned err, did not reach a step.
func (a *Attempt) undoSteps(err error) {
	a.mu.Lock()
	stop := a.over || a.fatal != nil || a.uncleaned != nil
	a.mu.Unlock()
	if !a.undoes() || stop || a.children > 0 || a.held.Err() != nil || err != nil && (kindOf(err) == task.KindInternal || kindOf(err) == task.KindDecode || notHere(err)) || a.unreachedCleanup() != "" {
		return
	}
	for len(a.open) > 0 {
		s := a.open[0]
		known := a.journal[s.Name]
		if known.undo == nil {
			return
		}
		undo := a.undoStep
		if known.undo.children {
			undo = a.undoCall
		}
		if !undo(s, known) {
			return
		}
		a.open = a.open[1:]
	}
}

// undoStep runs the undo of one step and records its result. It reports whether the step is undone. Crash before the
// record: the undo runs again, with the same key.
func (a *Attempt) undoStep(s *task.Step, known *entry) bool {
	call := UndoCall{Step: s.Name, Key: task.StepKey(s.TaskID, s.Name, s.Round), UndoKey: task.UndoKey(s.TaskID, s.Name, s.Round)}
	if s.State == task.StepCompleted && s.Error == nil {
		value, err := a.replayed(a.held, s)
		if err != nil { // the value cannot be read, which blocks the task, or the lease has ended
			a.undoFailed = &failedUndo{s, known.retry, err, a.storeNow()}
			return false
		}
		call.Out, call.Done = value, true
	}
	ctx, stop := a.held, context.CancelFunc(func() {})
	if a.task.Timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, a.task.Timeout, ErrTimeout)
	}
	defer stop()
	a.emit(func(h event.Header) event.Event {
		return event.StepStarted{Header: h, Step: s.Name, Index: s.Index, Try: 1, Undo: true}
	})
	began, begun := a.storeNow(), time.Now()
	row := a.newStep(s.Name, s.Index, task.KindUndo, task.StepCompleted)
	row.Round = s.Round
	err := a.runUndo(ctx, known.undo, call, row)
	elapsed := time.Since(begun)
	if err == nil {
		a.mu.Lock()
		a.cleaned = true
		a.mu.Unlock()
		a.emit(func(h event.Header) event.Event {
			return event.StepCompleted{Header: h, Step: s.Name, Index: s.Index, Duration: elapsed, Undo: true}
		})
		return true
	}
	if err != nil && context.Cause(ctx) != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
		err = &KindError{Kind: task.KindTimeout, Step: s.Name, Err: timedOut(err, a.task.Timeout)}
	}
	a.undoFailed = &failedUndo{s, known.retry, err, began}
	a.mu.Lock()
	fatal := a.fatal
	a.mu.Unlock()
	if fatal != nil || !a.recordable(stays(a.held), err) {
		return false
	}
	row.State, row.Error = task.StepFailed, a.taskError(err)
	row.Error.Step = s.Name
	if _, err := a.record(a.held, store.Record{Step: row, UndoOf: a.task.UndoOf, Elapsed: elapsed}); err == nil {
		a.emit(func(h event.Header) event.Event {
			return event.StepFailed{Header: h, Step: s.Name, Index: s.Index, Try: 1, Error: *row.Error, Duration: elapsed, Undo: true}
		})
	}
	return false
}

// runUndo calls an undo and records that the step is undone.
func (a *Attempt) runUndo(ctx context.Context, u *Undo, call UndoCall, row *task.Step) error {
	scope := &stepScope{name: call.Step}
	if u.Tx == nil {
		_, err := a.runStep(ctx, scope, func(ctx context.Context) (json.RawMessage, error) { return nil, u.Run(ctx, call) })
		if err != nil {
			return err
		}
		row.Cost = scope.purse.take()
		_, err = a.record(stays(a.held), store.Record{Step: row, UndoOf: a.task.UndoOf})
		return err
	}
	st := a.env.Store
	if !st.Capabilities().Has(store.CanStepTx) {
		return a.failFatally(fmt.Errorf("undo of step %q: %w", call.Step, ErrStepTxUnsupported))
	}
	var own error
	res, err := st.StepTx(ctx, a.env.Namespace, store.Record{Lease: a.lease, Step: row, UndoOf: a.task.UndoOf, SQLTx: u.SQLTx}, a.env.lease().StepTx(),
		func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			scope.tx = tx
			_, own = a.runStep(ctx, scope, func(ctx context.Context) (json.RawMessage, error) { return nil, u.Tx(ctx, tx, call) })
			return nil, own
		})
	if err = cmp.Or(err, res.Err); err == nil || own != nil || errors.Is(err, store.ErrStepTxTooLong) || errors.Is(err, store.ErrStepTxEnded) || errors.Is(err, store.ErrStepTxRefused) {
		return err
	}
	return a.answer(err)
}

// undoGoesOn ends an attempt whose undo of a step failed: it is retried or given up. Steps that began earlier are not
// undone then, because the remaining effect may depend on them.
func (a *Attempt) undoGoesOn(fin *store.Finish, f *failedUndo) {
	t := &a.task
	tries := []task.Step{{TaskID: t.ID, Name: f.step.Name, State: task.StepFailed, AttemptNo: t.AttemptNo, StartedAt: f.began}}
	for i := range a.failedUndos {
		if s := &a.failedUndos[i]; s.Name == f.step.Name && s.Round == f.step.Round && s.AttemptNo > t.Undo.Since {
			tries = append(tries, *s)
		}
	}
	a.triesAgain(fin, f.err, f.retry, tries, &rules.GivenUp{Step: f.step.Name})
}

// triesAgain retries a failed undo or cleanup after a pause that depends on its tries, or gives it up.
func (a *Attempt) triesAgain(fin *store.Finish, err error, retry rules.UndoRetry, tries []task.Step, g *rules.GivenUp) {
	fin.Outcome, fin.Error = task.OutcomeUndoFailed, a.taskError(err)
	fin.Error.Step = cmp.Or(fin.Error.Step, g.Step)
	now := a.storeNow()
	delay, giveUp := rules.UndoDelay(tries, retry, a.task.Undo.Since, now)
	var v *Verdict
	if errors.As(err, &v) && v.Kind == Permanent {
		giveUp = true
	}
	if fin.Delay = delay; !giveUp {
		return
	}
	first := tries[0].StartedAt
	for i := range tries {
		if tries[i].StartedAt.Before(first) {
			first = tries[i].StartedAt
		}
	}
	for _, s := range a.open {
		g.Open = append(g.Open, *s)
	}
	g.Tries, g.Took, g.Last, g.Phase = len(tries), now.Sub(first), fin.Error, a.task.Undo
	fin.Delay, fin.Error = -1, rules.UndoFailure(g)
}

// notReached lists the steps to undo that the handler did not reach.
func (a *Attempt) notReached() string {
	var names []string
	for _, s := range a.open {
		if known := a.journal[s.Name]; known.undo == nil {
			names = append(names, fmt.Sprintf("%q", s.Name))
		}
	}
	return strings.Join(names, ", ")
}

// awaitUndoables waits, while the lease is valid, for undoable steps of this attempt that outlive their handler: a
// step's function never runs concurrently with its undo.
func (a *Attempt) awaitUndoables() {
	a.mu.Lock()
	defer a.mu.Unlock()
	waits := false
	for _, known := range a.journal {
		waits = waits || known.begun != nil && known.used && known.done == nil
	}
	if !waits || a.inFlight == 0 {
		return
	}
	a.cancel(ErrAttemptOver)
	lost := context.AfterFunc(a.held, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.idle.Broadcast()
	})
	defer lost()
	for a.inFlight > 0 && a.held.Err() == nil {
		a.idle.Wait()
	}
}
