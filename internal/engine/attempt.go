package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Attempt is one execution of a handler under one lease. Handlers reach it
// through their context (From).
type Attempt struct {
	e       *Engine
	task    task.Task
	lease   task.Lease
	company int       // of a suspect: how many may run while it does
	begun   time.Time // just after the claim
	now     time.Time // the store's clock at begun

	ctx    context.Context // the handler's; an Attempt is a scope
	cancel context.CancelCauseFunc

	// trusted is the offset from e.started until which the lease may be
	// believed without news from the store (R5).
	trusted atomic.Int64

	mu        sync.Mutex
	version   int       // code version of the handler that runs
	idle      sync.Cond // signalled when inFlight falls to 0
	memory    map[string]*memory
	nextIndex int
	inFlight  int // steps that run or are being recorded
	stepsRun  []string
	suspended bool
	wakeAt    time.Time // the earliest wait of this attempt
	over      bool      // the handler returned, or was abandoned
	fatal     error     // misuse that fails the task whatever the handler returns
	cancelBy  cancelAsk
	progress  progress

	needsMu   sync.Mutex // held while they are read
	needsRead bool
	needs     []store.Need // of a task that runs they are final
}

// memory is what is known of one step name.
type memory struct {
	index int
	used  bool       // in this attempt
	done  *task.Step // completed by an earlier attempt
}

type cancelAsk struct{ by, reason string }

type attemptKey struct{}

// From returns the attempt whose handler was given ctx.
func From(ctx context.Context) (*Attempt, error) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	if !ok {
		return nil, ErrNoTask
	}
	return a, nil
}

func (e *Engine) newAttempt(c store.Claimed, before time.Time) *Attempt {
	a := &Attempt{e: e, task: c.Task, lease: c.Lease, company: c.QuarantineLimit, begun: time.Now(), now: c.Task.StartedAt}
	a.idle.L = &a.mu
	a.trust(before)
	if len(c.Steps) > 0 {
		a.memory = make(map[string]*memory, len(c.Steps))
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		m := a.memory[s.Name]
		if m == nil {
			m = &memory{index: s.Index}
			a.memory[s.Name] = m
		}
		if s.State == task.StepCompleted {
			m.done = s
		}
		a.nextIndex = max(a.nextIndex, s.Index+1)
	}
	a.ctx, a.cancel = context.WithCancelCause(context.WithValue(e.hard, attemptKey{}, a))
	if c.TimeLeft > 0 {
		var stop context.CancelFunc
		a.ctx, stop = context.WithTimeoutCause(a.ctx, c.TimeLeft, ErrDeadline)
		a.stopTimer(stop)
	}
	return a
}

// stopTimer ties the release of a timer to the end of the attempt.
func (a *Attempt) stopTimer(stop context.CancelFunc) {
	cancel := a.cancel
	a.cancel = func(cause error) { cancel(cause); stop() }
}

// trust believes the lease for another TTL less a safety margin, counted from
// the moment before the store was asked.
func (a *Attempt) trust(before time.Time) {
	ttl := a.e.cfg.TTL
	a.trusted.Store(int64(before.Sub(a.e.started) + ttl - ttl/6))
}

// trustedFor returns how long the lease may still be believed.
func (a *Attempt) trustedFor() time.Duration {
	return time.Duration(a.trusted.Load()) - time.Since(a.e.started)
}

// end ends the handler's context. The first cause stands.
func (a *Attempt) end(cause error) { a.cancel(cause) }

// askCancel is end for a cancel request, which says who and why.
func (a *Attempt) askCancel(kind task.ErrorKind, by, reason string) {
	a.mu.Lock()
	if a.cancelBy == (cancelAsk{}) {
		a.cancelBy = cancelAsk{by, reason}
	}
	a.mu.Unlock()
	if kind == task.KindDeadline {
		a.end(ErrDeadline)
		return
	}
	a.end(ErrCancelled)
}

// abandon makes the attempt over although its handler still runs. It reports
// false when the handler has returned meanwhile.
func (a *Attempt) abandon() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	a.over = true
	return true
}

// execute runs the handler and writes what came of it. When it ends the
// outcome is durable or the lease is gone, and the slot is free.
func (e *Engine) execute(a *Attempt) {
	defer e.forget(a)
	defer a.cancel(nil)
	var out json.RawMessage
	err := errGoexit
	defer func() {
		// Deferred, so that a handler that ends its goroutine (a FailNow of
		// package testing does) still gets an outcome.
		if a.abandon() {
			e.complete1(a, out, err)
		} // else the drain gave up on this handler and released its lease
	}()
	if a.ctx.Err() != nil {
		// Nothing may begin any more: not even what the handler does outside
		// before it looks at its context (R5).
		err = context.Cause(a.ctx)
		return
	}
	h, routeErr := e.route(a.task)
	if routeErr != nil {
		err = &KindError{Kind: task.KindInternal, Err: routeErr}
		return
	}
	a.mu.Lock()
	a.version = h.CodeVersion
	a.mu.Unlock()
	e.emit(event.TaskStarted{Header: a.header(), Input: a.task.Input})
	out, err = a.call(h)
}

// route asks the Router, whose panic is an error of the engine.
func (e *Engine) route(t task.Task) (h Handler, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the router panicked: %v", p)
		}
	}()
	name := e.cfg.Router.Route(t)
	h, ok := e.handlers[name]
	if !ok {
		return h, fmt.Errorf("the router chose %q for a task of type %s, which has no handler here", name, t.Type)
	}
	return h, nil
}

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit instead of returning")

// call runs the handler; a panic becomes its error.
func (a *Attempt) call(h Handler) (out json.RawMessage, err error) {
	ctx := a.ctx
	if a.task.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, a.task.Timeout, ErrTimeout)
		defer stop()
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, &task.PanicError{Value: p, Stack: string(debug.Stack())}
		}
		if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) && a.ctx.Err() == nil {
			if !errors.Is(err, ErrTimeout) {
				err = errors.Join(ErrTimeout, err)
			}
			err = &KindError{Kind: task.KindTimeout, Err: fmt.Errorf("limit %s: %w", a.task.Timeout, err)}
		}
	}()
	return h.Run(ctx, a.task.Input)
}

func (a *Attempt) header() event.Header {
	return event.Header{
		At:        time.Now().UTC(),
		Namespace: a.e.cfg.Namespace,
		TaskID:    a.task.ID,
		TaskType:  a.task.Type,
		JobID:     a.task.JobID,
		Node:      a.task.Node,
		AttemptNo: a.task.AttemptNo,
	}
}

// Task returns the task as it was claimed.
func (a *Attempt) Task() *task.Task { return &a.task }

// Namespace returns the namespace the engine works in.
func (a *Attempt) Namespace() string { return a.e.cfg.Namespace }

// Store returns the store the task lives in.
func (a *Attempt) Store() store.Store { return a.e.cfg.Store }

// IDs returns the engine's source of ids.
func (a *Attempt) IDs() *task.IDs { return a.e.cfg.IDs }

// InlineLimit returns the largest payload that a row may hold, in bytes.
func (a *Attempt) InlineLimit() int { return a.e.cfg.InlineLimit }

// unreached names the recorded steps that this attempt never asked for. The
// caller holds a.mu.
func (a *Attempt) unreached() []string {
	var names []string
	for name, m := range a.memory {
		if m.done != nil && !m.used {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Needs returns what the task needed, with how that ended. It is read once.
func (a *Attempt) Needs(ctx context.Context) ([]store.Need, error) {
	a.needsMu.Lock()
	defer a.needsMu.Unlock()
	if a.needsRead {
		return a.needs, nil
	}
	needs, err := a.e.cfg.Store.Needs(ctx, a.e.cfg.Namespace, a.task.ID)
	if err != nil {
		err = fmt.Errorf("read the needs of task %s: %w", a.task.ID, err)
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &KindError{Kind: task.KindInternal, Err: err}
	}
	a.needs, a.needsRead = needs, true
	return a.needs, nil
}
