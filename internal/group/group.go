// Package group owns goroutines. Every `go` statement of the library and its command is here
// (tests, conformance suites and examples have their own), and the code that starts a Group
// waits for it.
//
// A Group's functions share a context and end together. The first failure ends the context for
// all, with the error as the cause. A panic becomes an error with the function's name and the
// stack; it does not end the process. The package restarts nothing and does not limit the
// number of concurrent functions.
package group

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// ErrGoexit is the failure of a function that ended its goroutine by runtime.Goexit (as
// FailNow of package testing does) instead of returning.
var ErrGoexit = errors.New("the goroutine was ended by runtime.Goexit")

// Group is a set of goroutines that end together. Use New.
type Group struct {
	ctx    context.Context // stored on purpose: a Group is the scope of its context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running map[string]int // by name
	idle    chan struct{}  // closed while nothing runs
	errs    []error
}

// New returns a Group whose context ends with ctx, at Cancel, or at the first failure. The
// caller must call Wait, or the context stays allocated for the life of ctx.
func New(ctx context.Context) *Group {
	inner, cancel := context.WithCancelCause(ctx)
	idle := make(chan struct{})
	close(idle)
	return &Group{ctx: inner, cancel: cancel, running: make(map[string]int), idle: idle}
}

// Go starts fn. Its error is part of Wait's result and ends the group's context, unless it
// only repeats that the context ended. The name is for messages: it precedes the error and
// appears in StillRunningError. Names need not be unique. Go may be called until Wait has
// returned, also by the group's own functions.
func (g *Group) Go(name string, fn func(ctx context.Context) error) {
	g.mu.Lock()
	if len(g.running) == 0 {
		g.idle = make(chan struct{})
	}
	g.running[name]++
	g.mu.Unlock()
	go g.run(name, fn)
}

func (g *Group) run(name string, fn func(ctx context.Context) error) {
	failure := ErrGoexit // unless fn returns
	defer func() {
		var err error
		if p := recover(); p != nil {
			err = &PanicError{Name: name, Value: p, Stack: string(debug.Stack())}
		} else if failure != nil && !g.repeatsEnd(failure) {
			err = fmt.Errorf("%s: %w", name, failure)
		}
		g.leave(name, err)
	}()
	failure = fn(g.ctx)
}

// repeatsEnd reports whether err only says that the context ended. A well-behaved function
// answers a Cancel with such an error.
func (g *Group) repeatsEnd(err error) bool {
	return g.ctx.Err() != nil && (errors.Is(err, g.ctx.Err()) || errors.Is(err, context.Cause(g.ctx)))
}

func (g *Group) leave(name string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.errs = append(g.errs, err)
		g.cancel(err)
	}
	if g.running[name]--; g.running[name] == 0 {
		delete(g.running, name)
	}
	if len(g.running) == 0 {
		close(g.idle)
	}
}

// Cancel ends the group's context with a cause; nil means context.Canceled.
// Only the first cause counts.
func (g *Group) Cancel(cause error) { g.cancel(cause) }

// Context returns the context that the group's functions run under.
func (g *Group) Context() context.Context { return g.ctx }

// Wait returns when every function has returned, with their errors joined in chronological
// order. By then the group's context has ended.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.running) > 0 {
		idle := g.idle
		g.mu.Unlock()
		<-idle
		g.mu.Lock()
	}
	g.cancel(nil)
	return errors.Join(g.errs...)
}

// WaitContext is Wait, but gives up when ctx ends. Then it returns a *StillRunningError with
// the names of the functions that have not returned. The group's context and its functions
// continue.
func (g *Group) WaitContext(ctx context.Context) error {
	for {
		g.mu.Lock()
		idle, n := g.idle, len(g.running)
		g.mu.Unlock()
		if n == 0 {
			return g.Wait()
		}
		select {
		case <-idle:
			continue
		case <-ctx.Done():
		}
		g.mu.Lock()
		names := g.names()
		g.mu.Unlock()
		if len(names) > 0 {
			return &StillRunningError{Names: names, Cause: context.Cause(ctx)}
		}
	}
}

// names lists the running functions, sorted, one entry per goroutine.
func (g *Group) names() []string {
	var names []string
	for name, n := range g.running {
		names = append(names, slices.Repeat([]string{name}, n)...)
	}
	slices.Sort(names)
	return names
}

// StillRunningError lists the functions that had not returned in time.
type StillRunningError struct {
	Names []string // sorted; a name appears once for each of its goroutines
	Cause error    // the reason why the wait ended
}

// Error implements error.
func (e *StillRunningError) Error() string {
	return fmt.Sprintf("still running: %s: %v", strings.Join(e.Names, ", "), e.Cause)
}

// Unwrap returns the reason for giving up.
func (e *StillRunningError) Unwrap() error { return e.Cause }

// PanicError is a panic of one of the group's functions.
type PanicError struct {
	Name  string
	Value any
	Stack string // of the goroutine, from the panic down
}

// Error implements error. The text includes the stack, the only trace of the panic's location.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: panic: %v\n%s", e.Name, e.Value, e.Stack)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
