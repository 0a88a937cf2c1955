// Package faultstore shows a real store to one process, and lets something go
// wrong at a chosen call: the store has trouble, an answer gets lost after the
// commit, or the process dies just before or just after the call.
//
// Between faults the calls go to the store below unchanged, so a test that
// uses it says something about that very store. What always holds:
//
//   - A process that died stays dead. What it had under way is cancelled, none
//     of its later calls reach the store, no answer and no notice reaches it,
//     and Dead tells when the store has seen the last of it.
//   - Who looks for store.Notifier or store.StepTxer finds them if and only if
//     the store below has them.
//   - A fault strikes at most the call that the plan names. There is no
//     randomness and no time in here.
//
// It does not corrupt data, does not delay calls and does not reorder them.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/goweaver/weaver/store"
)

// Fault is what goes wrong with a call.
type Fault int

// The faults.
const (
	None        Fault = iota
	ErrorBefore       // store.ErrUnavailable, and nothing happened
	ReplyLost         // the store did it, and the caller gets an error
	CrashBefore       // the process dies before the call
	CrashAfter        // the store did it, and the process died before the answer came
)

// String returns the fault's name.
func (f Fault) String() string {
	names := []string{"no fault", "error before", "reply lost", "crash before", "crash after"}
	if f < 0 || int(f) >= len(names) {
		return fmt.Sprintf("fault %d", int(f))
	}
	return names[f]
}

// Moments inside a StepTx, which plans see like calls of their own.
const (
	StepTxBegun = "StepTx begun" // the transaction is open, the user's function has not run
	StepTxRan   = "StepTx ran"   // the function has returned, nothing is committed
)

// Call is one call of the store, or a moment inside one.
type Call struct {
	N      int    // 1 is the first call of the process
	Method string // of store.Store, store.Notifier or store.StepTxer, or StepTxBegun, StepTxRan
	Nth    int    // 1 is the process's first call of this method
}

// String returns the call's name.
func (c Call) String() string { return fmt.Sprintf("%s #%d (call %d)", c.Method, c.Nth, c.N) }

// Faults returns what can go wrong with such a call. Inside a transaction
// nothing is committed yet, and Notify cannot fail.
func (c Call) Faults() []Fault {
	switch c.Method {
	case StepTxBegun, StepTxRan:
		return []Fault{ErrorBefore, CrashBefore}
	case "Notify":
		return []Fault{CrashBefore, CrashAfter}
	}
	return []Fault{ErrorBefore, ReplyLost, CrashBefore, CrashAfter}
}

// Plan is asked before every call what is to go wrong with it, one call at a
// time. It must not use the process. A fault that is not among the call's
// Faults does nothing.
type Plan func(Call) Fault

// At strikes the nth call of a method.
func At(method string, nth int, f Fault) Plan {
	return func(c Call) Fault {
		if c.Method == method && c.Nth == nth {
			return f
		}
		return None
	}
}

// AtCall strikes the nth call of all.
func AtCall(n int, f Fault) Plan {
	return func(c Call) Fault {
		if c.N == n {
			return f
		}
		return None
	}
}

var (
	// ErrInjected: every error that a plan caused is this one, beside the
	// store's error that it pretends to be.
	ErrInjected = errors.New("injected fault")
	// ErrDead: the process that calls is dead. To code that asks it reads as a
	// closed store, so that nothing is tried again.
	ErrDead = fmt.Errorf("this process is dead: %w", store.ErrClosed)
)

// Process is a store as one process sees it.
type Process struct {
	inner store.Store
	plan  Plan

	life context.Context // ends when the process dies; a scope
	end  context.CancelCauseFunc
	gone chan struct{} // closed when it is dead and nothing is under way

	mu      sync.Mutex // guards the rest
	dead    bool
	under   int // calls that are under way
	calls   []Call
	count   map[string]int
	struck  []Strike
	workers []store.WorkerID
}

// Strike is a fault that happened.
type Strike struct {
	Call
	Fault Fault
}

// String returns what happened to which call.
func (s Strike) String() string { return s.Fault.String() + " at " + s.Call.String() }

// New returns a process that uses a store. A nil plan lets everything through.
func New(inner store.Store, plan Plan) *Process {
	if plan == nil {
		plan = func(Call) Fault { return None }
	}
	p := &Process{inner: inner, plan: plan, gone: make(chan struct{}), count: map[string]int{}}
	p.life, p.end = context.WithCancelCause(context.Background())
	return p
}

// Die ends the process at once.
func (p *Process) Die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return
	}
	p.dead = true
	p.end(ErrDead)
	if p.under == 0 {
		close(p.gone)
	}
}

// Died reports whether the process is dead. Code that runs in its name should
// then do nothing more.
func (p *Process) Died() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Dead is closed when the process is dead and the store has seen the last of
// it: what was under way has ended, one way or the other.
func (p *Process) Dead() <-chan struct{} { return p.gone }

// Calls returns the calls so far, in the order in which they began.
func (p *Process) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Struck returns the faults that happened.
func (p *Process) Struck() []Strike {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.struck)
}

// Workers returns the workers that the process announced.
func (p *Process) Workers() []store.WorkerID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.workers)
}

// enter begins a call: it is counted, and under way until leave.
func (p *Process) enter(method string) (Strike, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return Strike{}, ErrDead
	}
	p.under++
	p.count[method]++
	c := Call{N: len(p.calls) + 1, Method: method, Nth: p.count[method]}
	p.calls = append(p.calls, c)
	s := Strike{Call: c, Fault: p.plan(c)}
	if !slices.Contains(c.Faults(), s.Fault) {
		s.Fault = None
		return s, nil
	}
	p.struck = append(p.struck, s)
	return s, nil
}

// leave ends a call. Its error says that nobody is left to hear the answer.
func (p *Process) leave() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
	if !p.dead {
		return nil
	}
	if p.under == 0 {
		close(p.gone)
	}
	return ErrDead
}

// bound returns a context that also ends when the process dies: a claim that
// the store holds for a dead process would lease tasks to nobody.
func (p *Process) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unbind := context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })
	return ctx, func() {
		unbind()
		cancel(nil)
	}
}

// trouble is the error that a call gets. A lost reply reads now as the one
// and now as the other: nobody may draw conclusions from which it is.
func (s Strike) trouble() error {
	looks := store.ErrUnavailable
	if s.Fault == ReplyLost && s.N%2 == 1 {
		looks = store.ErrUnknown
	}
	return fmt.Errorf("%s: %w (%w)", s.Call, looks, ErrInjected)
}

// through makes one call, and lets the plan's fault happen to it.
func through[R any](ctx context.Context, p *Process, method string, do func(context.Context) (R, error)) (R, error) {
	var none R
	s, err := p.enter(method)
	if err != nil {
		return none, err
	}
	switch s.Fault {
	case ErrorBefore:
		err = s.trouble()
	case CrashBefore:
		p.Die()
	}
	res := none
	if s.Fault != ErrorBefore && s.Fault != CrashBefore {
		ctx, release := p.bound(ctx)
		res, err = do(ctx)
		release()
	}
	switch s.Fault {
	case ReplyLost:
		res, err = none, s.trouble()
	case CrashAfter:
		p.Die()
	}
	if dead := p.leave(); dead != nil {
		return none, dead
	}
	return res, err
}

// only is through for methods that return an error alone.
func only(ctx context.Context, p *Process, method string, do func(context.Context) error) error {
	_, err := through(ctx, p, method, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}
