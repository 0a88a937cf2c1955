package engine

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Attempt is one execution of a handler under one lease. Handlers reach it
// through their context (From).
type Attempt struct {
	env      *env
	recorder *recorder
	task     task.Task
	inputRow json.RawMessage // the input as stored: the blob reference, if it is in the bucket
	lease    task.Lease
	begun    time.Time // just after the claim
	now      time.Time // the store's clock at begun
	waited   time.Duration

	// quarantineLimit is the maximum number of quarantined tasks, this one included, that may run concurrently with
	// this quarantined task.
	quarantineLimit int
	alone           bool // it runs alone

	// held ends when the attempt may no longer write or its task continues without it: a lost or uncertain lease, a
	// drain, a wait, or a program error. ctx is derived from it and is the handler's context; it also ends when a
	// cancel or the deadline ends the task. (An Attempt is a scope.)
	held, ctx    context.Context
	lose, cancel context.CancelCauseFunc

	events atomic.Int32 // number of the last event: see header
	rows   eventRows    // events to be stored

	// cancelledAt and timesOut are the times at which the attempt was or will be asked to end, as offsets from
	// env.origin; 0: unset.
	cancelledAt, timesOut atomic.Int64
	deadline              int64

	// validUntil is the local lease validity: the time, as an offset from env.origin, until which this process may
	// rely on the lease without an answer of the store.
	validUntil atomic.Int64

	mu        sync.Mutex
	version   int               // code version of the running handler
	handler   string            // name of the handler, prefixed by its type if that is not the task's
	inner     context.Context   // of the innermost handler: see Enter
	notes     map[string]string // stored with the attempt
	route     string            // reason for the choice of the handler
	idle      sync.Cond         // signalled when inFlight reaches 0
	journal   map[string]*entry // by step name
	nextIndex int
	inFlight  int // running steps, and steps being recorded
	stepsRun  []string
	news      bool // the attempt made a new record
	suspended bool
	wakeAt    time.Time    // earliest end of a wait of this attempt; zero: no time limit
	waiting   task.Waiting // reason of its waits
	question  *question    // question to suspend with; nil: suspended by other waits
	asking    sync.Mutex   // held by an Ask while it looks for its answer
	over      bool         // the handler returned, or was abandoned
	fatal     error        // a program error, which fails the task whatever the handler returns
	cancelBy  cancelAsk
	progress  progress

	panicked       bool           // the handler did not return
	uncleaned      *failedCleanup // the first cleanup of this attempt that failed or could not start
	cleaned        bool           // in an undo phase: a cleanup ran, in this or an earlier attempt
	failedCleanups []task.Step    // in an undo phase: tries of earlier attempts
	steps          int            // in an undo phase: number of completed steps
	open           []*task.Step   // in an undo phase: steps to undo, in this order
	failedUndos    []task.Step    // in an undo phase: tries of earlier attempts
	undoFailed     *failedUndo    // the failed undo of this attempt
	children       int            // in an undo phase: children that have not ended
	of             *task.Task     // of an undo task: the undone task, as the handler sees it
	undoLater      time.Duration  // delay of the next look at a task that undoes a child; 0: no such task

	proven    atomic.Bool // the handler could run: see troubles
	redaction redaction

	checkpoints  checkpoints
	lastProgress event.Event // of a report written with the end of the attempt

	inputReads int // number of UnblockInput calls
	overdue    overdue

	needsMu   sync.Mutex // held during reads of needs
	needsRead bool
	allNeeds  []store.Need
	needs     []store.Need // without the children of calls; final while the task runs
}

// entry is the state of one step name in the journal.
type entry struct {
	index int
	used  bool       // in this attempt
	done  *task.Step // completed by an earlier attempt

	begun   *task.Step // the beginning, recorded by this or an earlier attempt
	round   int        // number of undos
	undo    *Undo      // declared by this attempt
	retry   rules.UndoRetry
	failed  *task.Step // in an undo phase: the last failed try of earlier attempts, in this round
	waiting *task.Step // left waiting by an earlier attempt
}

type cancelAsk struct {
	by, reason string
	budget     bool // a budget is used up
}

type attemptKey struct{}

// From returns the attempt whose handler was given ctx.
func From(ctx context.Context) (*Attempt, error) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	if !ok {
		return nil, ErrNoTask
	}
	return a, nil
}

// newAttempt returns the attempt of a leased task. before is the start of the claim call.
func newAttempt(e *env, recorder *recorder, c store.Claimed, before time.Time) *Attempt {
	a := &Attempt{
		env: e, recorder: recorder, task: c.Task, inputRow: c.Task.Input, lease: c.Lease,
		begun: time.Now(), now: c.Task.StartedAt, waited: c.Waited, quarantineLimit: c.QuarantineLimit, alone: c.Alone,
	}
	a.idle.L = &a.mu
	a.events.Store(1) // the number of task.started
	a.extendValidity(before)
	onRecord := a.replays(c.Steps)
	a.orderUndos()
	a.progress.replays(onRecord, c.Task.Progress)
	a.held, a.lose = context.WithCancelCause(context.WithValue(e.work, attemptKey{}, a))
	a.ctx, a.cancel = context.WithCancelCause(a.held)
	if c.TimeLeft > 0 && !a.undoes() {
		a.deadline = e.offset(a.begun.Add(c.TimeLeft))
		var stop context.CancelFunc
		a.ctx, stop = context.WithTimeoutCause(a.ctx, c.TimeLeft, ErrDeadline)
		a.stopTimer(stop)
	}
	switch t := &a.task; {
	case a.undoes():
		a.endForUndo()
	case t.CancelRequested && a.cleansUp(): // the cancel came between the claim and its answer
		a.askCancel(t.CancelKind, t.CancelBy, t.CancelReason)
	}
	return a
}

// replays adds recorded steps to the journal. It returns the number of completed ones.
func (a *Attempt) replays(steps []task.Step) (onRecord int) {
	if a.journal == nil && len(steps) > 0 {
		a.journal = make(map[string]*entry, len(steps))
	}
	for i := range steps {
		s := &steps[i]
		if a.task.Undo != nil {
			a.noteForUndo(s)
		}
		if s.Kind == task.KindUndo {
			continue
		}
		known := a.journal[s.Name]
		if known == nil {
			known = &entry{index: s.Index}
			a.journal[s.Name] = known
		}
		switch {
		case s.Past(): // the step runs again
			if s.Kind != task.KindCleanup {
				known.round = max(known.round, s.Round+1)
			}
		case s.State == task.StepBegun:
			known.begun = s
		case s.State == task.StepCompleted:
			known.done = s
			onRecord++
			if s.Kind != task.KindCleanup {
				a.steps++
			}
		case s.State == task.StepWaiting:
			known.waiting = s
		case s.State == task.StepFailed && a.undoes():
			known.failed = s
		}
		a.nextIndex = max(a.nextIndex, s.Index+1)
	}
	return onRecord
}

// stopTimer releases a timer at the end of the attempt.
func (a *Attempt) stopTimer(stop context.CancelFunc) {
	cancel := a.cancel
	a.cancel = func(cause error) { cancel(cause); stop() }
}

// extendValidity makes the lease valid for another TTL less a safety margin, counted from the moment before the call
// of the store.
func (a *Attempt) extendValidity(before time.Time) {
	a.validUntil.Store(a.env.offset(before.Add(a.env.lease().Validity())))
}

// validFor returns the time for which this process may still rely on the lease. The last renewal limits it, and the
// last answer of the worker's session if it has one. A session that was silent for too long and answers again does
// not revalidate a lease that was not renewed since: another worker may have it.
func (a *Attempt) validFor() time.Duration {
	e := a.env
	until := a.validUntil.Load()
	if s, ok := e.Store.Session(e.Namespace, e.worker); ok {
		if renewed := until - int64(e.lease().Validity()); renewed < e.offset(s.Since) {
			return 0
		}
		until = min(until, e.offset(s.Last.Add(e.SessionGrace)))
	}
	return time.Duration(until - e.offset(time.Now()))
}

// setHandler records the running handler and the reason for it.
func (a *Attempt) setHandler(h *Handler, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version, a.route = h.CodeVersion, why
	if a.handler = h.Name; h.Type != a.task.Type {
		a.handler = strings.TrimSuffix(h.Type+" "+h.Name, " ")
	}
}

// end ends the handler's context. Only the first cause counts.
func (a *Attempt) end(cause error) {
	defer a.contextEnded(cause)
	if isCancel(cause) {
		a.cancelledAt.CompareAndSwap(0, max(a.env.offset(time.Now()), 1))
		a.cancel(cause)
		return
	}
	a.lose(cause)
}

// endCause returns the cause for which the attempt's context ended, or nil. It also checks the lease's context: the
// handler's context is derived from it and ends a moment later.
func (a *Attempt) endCause() error {
	if cause := context.Cause(a.ctx); cause != nil {
		return cause
	}
	return context.Cause(a.held)
}

// close releases the resources of the attempt's contexts.
func (a *Attempt) close() {
	a.cancel(nil)
	a.lose(nil)
}

// askCancel is end for a cancel request, with its operator and reason.
func (a *Attempt) askCancel(kind task.ErrorKind, by, reason string) {
	a.mu.Lock()
	if a.cancelBy == (cancelAsk{}) {
		a.cancelBy = cancelAsk{by, reason, kind == task.KindBudget || kind == task.KindJobBudget}
	}
	a.mu.Unlock()
	if kind == task.KindDeadline {
		a.end(ErrDeadline)
		return
	}
	a.end(ErrCancelled)
}

// abandon marks the attempt as over although its handler still runs. It returns false if the handler has returned
// meanwhile.
func (a *Attempt) abandon() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	a.over = true
	a.overdue.returned()
	return true
}

// isOver reports whether the handler has returned or was abandoned.
func (a *Attempt) isOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// call runs the handler; a panic becomes its error.
func (a *Attempt) call(h Handler) (out json.RawMessage, err error) {
	ctx := a.undoScope(a.ctx)
	if a.task.Timeout > 0 {
		var stop context.CancelFunc
		a.timesOut.Store(a.env.offset(time.Now().Add(a.task.Timeout)))
		ctx, stop = context.WithTimeoutCause(ctx, a.task.Timeout, ErrTimeout)
		defer stop()
	}
	a.overdue.begin()
	defer a.overdue.returned()
	if _, timed := ctx.Deadline(); timed {
		defer context.AfterFunc(ctx, func() { a.contextEnded(context.Cause(ctx)) })()
	} else if a.ctx.Err() != nil { // ended before the call of the handler
		a.contextEnded(context.Cause(a.ctx))
	}
	defer func() {
		if p := recover(); p != nil {
			out, err, a.panicked = nil, &task.PanicError{Value: p, Stack: string(debug.Stack())}, true
		}
		if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) && a.ctx.Err() == nil {
			err = &KindError{Kind: task.KindTimeout, Err: timedOut(err, a.task.Timeout)}
		}
	}()
	if out, err = h.Run(ctx, a.task.Input); err != nil {
		_ = err.Error() // an error that panics, such as a nil pointer, is a panic of the handler
	}
	return out, err
}

// header returns the header of the next event, with the next sequence number of this lease.
func (a *Attempt) header() event.Header {
	return a.headerOf(event.Sequence(a.lease.Epoch, int(a.events.Add(1))))
}

func (a *Attempt) headerOf(sequence int64) event.Header {
	return event.Header{
		Sequence:  sequence,
		At:        time.Now().UTC(),
		Namespace: a.env.Namespace,
		TaskID:    a.task.ID,
		TaskType:  a.task.Type,
		JobID:     a.task.JobID,
		Node:      a.task.Node,
		AttemptNo: a.task.AttemptNo,
	}
}

// Task returns the task as claimed. The handler of an undo task sees the undone task.
func (a *Attempt) Task() *task.Task {
	if a.of != nil {
		return a.of
	}
	return &a.task
}

// subject returns the ID of the task whose steps, children and values the handler sees.
func (a *Attempt) subject() task.ID { return a.Task().ID }

// Waited returns the time from the task's due time to its claim.
func (a *Attempt) Waited() time.Duration { return a.waited }

// Namespace returns the namespace the engine works in.
func (a *Attempt) Namespace() string { return a.env.Namespace }

// Store returns the store the task lives in.
func (a *Attempt) Store() store.Store { return a.env.Store }

// IDs returns the engine's source of ids.
func (a *Attempt) IDs() *task.IDs { return a.env.IDs }

// InlineLimit returns the largest payload that a row may hold, in bytes.
func (a *Attempt) InlineLimit() int { return a.env.InlineLimit }

// unreached lists the recorded steps that this attempt never reached. The caller holds a.mu.
func (a *Attempt) unreached() []string {
	var names []string
	for name, known := range a.journal {
		if known.done != nil && !known.used {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
