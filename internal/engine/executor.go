package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// executor runs each leased task as an attempt, in a goroutine of its own.
type executor struct {
	*env
	handlers  map[handlerKey]Handler
	recorder  *recorder
	completer *completer
	validity  *validityChecker
	due       signal // wakes the claimer: a slot became free
	attempts  *group.Group
	endings   *endings
}

func newExecutor(e *env, handlers map[handlerKey]Handler, recorder *recorder, completer *completer, validity *validityChecker, due signal) *executor {
	x := &executor{
		env: e, handlers: handlers, recorder: recorder, completer: completer, validity: validity, due: due,
		attempts: group.New(e.work),
	}
	x.endings = &endings{completer: completer, attempts: x.attempts, over: x.over}
	return x
}

// start runs leased tasks, each in a slot. before is the start of the claim call, from which the leases are valid. It
// releases the leases of an answer that came too late.
func (x *executor) start(tasks []store.Claimed, before time.Time) {
	for i := range tasks {
		a := newAttempt(x.env, x.recorder, tasks[i], before)
		ended := x.slots.take(a, tasks[i].Quarantined)
		if a.validFor() <= 0 {
			a.end(ErrLeaseUncertain)
		} else {
			x.validity.watch(a)
		}
		x.attempts.Go("attempt", func(context.Context) error {
			if ended != nil && x.listens() {
				x.awaitOrder(a, ended)
			}
			x.execute(a)
			return nil
		})
	}
}

// awaitOrder waits until the end of the task's previous attempt is announced: listeners get the events of a task in
// order.
func (x *executor) awaitOrder(a *Attempt, ended <-chan struct{}) {
	select {
	case <-ended:
	case <-a.held.Done():
	}
}

// release forgets an attempt, once.
func (x *executor) release(a *Attempt) {
	if x.slots.release(a) {
		x.due.Set()
	}
}

// idleWithin reports whether every attempt ended within d and before ctx.
func (x *executor) idleWithin(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var still *group.StillRunningError
	return !errors.As(x.attempts.WaitContext(ctx), &still) // attempts report their own errors
}

// over is called when the outcome of an attempt is durable or its lease is gone.
func (x *executor) over(a *Attempt) {
	a.close()
	x.release(a)
}

// execute runs the handler and has its outcome written.
func (x *executor) execute(a *Attempt) {
	var out json.RawMessage
	err := errGoexit
	defer func() {
		// Deferred, so that a handler that ends its goroutine (for example by FailNow of package testing) still gets
		// an outcome.
		ends := false
		defer func() {
			if !ends { // also after a panic, for example of a log
				x.over(a)
			}
		}()
		if errors.Is(err, errGoexit) {
			a.panicked = true
		}
		a.undoSteps(err)
		a.noteUndoTry(err)
		a.awaitUndoables()
		if !a.abandon() {
			return // the drain gave up on this handler and released its lease
		}
		if !notHere(err) && !notHere(a.fatalError()) {
			x.troubles.provenBy(a)
		}
		if x.slots.end(a) {
			x.due.Set() // the next claim and this outcome share a commit
		}
		if fin, ok := x.completer.outcome(a, out, err); ok {
			batch := x.endings.put(a, fin)
			ends = true
			x.endings.lead(batch, true)
		}
	}()
	if a.held.Err() != nil || a.ctx.Err() != nil && !a.undoes() && !a.cleansUp() {
		// The lease is not valid or the task was cancelled. The handler might act before it looks at its context, so
		// it is called only to clean up.
		err = a.endCause()
		return
	}
	h, why, routeErr := x.route(a.task)
	if routeErr != nil {
		err = &KindError{Kind: task.KindInternal, Err: routeErr}
		return
	}
	a.setHandler(&h, why)
	if err = a.takePlace(); err != nil || a.of != nil && len(a.open) == 0 {
		return
	}
	err = errGoexit
	if loadErr := a.loadInput(); loadErr != nil {
		err = loadErr
		return
	}
	a.redacts(&h, a.recorded())
	if a.undoes() {
		if a.children, err = a.unendedChildren(); err != nil || a.children > 0 {
			return
		}
		err = errGoexit
	}
	if x.listens() {
		x.emit(a.masked(event.TaskStarted{Header: a.headerOf(event.FirstSequence(a.lease.Epoch)), Input: a.task.Input}))
	}
	out, err = a.call(h)
}

// route asks the Router; its panic is an error of the engine.
func (x *executor) route(t task.Task) (h Handler, why string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the router panicked: %v", p)
		}
	}()
	to := x.Router.Route(t)
	h, ok := x.handlers[handlerKey{cmp.Or(to.Type, t.Type), to.Handler}]
	switch {
	case ok:
		return h, sanitize(to.Reason), nil
	case to.Handler != "":
		return h, "", fmt.Errorf("the router chose the handler %q of %s for a task of type %s, but there is no such handler here", to.Handler, cmp.Or(to.Type, t.Type), t.Type)
	}
	return h, "", fmt.Errorf("the router chose %q for a task of type %s, which has no handler without a name here", cmp.Or(to.Type, t.Type), t.Type)
}

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit instead of returning")
