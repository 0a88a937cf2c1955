// Package faultstore gives one process its view of a real store and injects faults at
// chosen calls: an error before the call, a lost reply after the commit, or the death of
// the process just before or just after the call.
//
// Calls without a fault go to the store below unchanged, so a test that uses the view
// tests that store. Invariants:
//
//   - A dead process stays dead. Its calls in flight are cancelled, its later calls do not
//     reach the store, it gets no result and no notice, and Dead is closed when its last
//     call has ended.
//   - The view has the capabilities of the store below.
//   - A fault strikes only calls for which the plan returns it. The package uses neither
//     randomness nor time.
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

// Fault is a kind of failure of a call.
type Fault int

// The faults.
const (
	None        Fault = iota
	ErrorBefore       // store.ErrUnavailable, and the call has no effect
	ReplyLost         // the call takes effect, and the caller gets an error
	CrashBefore       // the process dies before the call
	CrashAfter        // the call takes effect, and the process dies before the reply arrives
)

// String returns the fault's name.
func (f Fault) String() string {
	names := []string{"no fault", "error before", "reply lost", "crash before", "crash after"}
	if f < 0 || int(f) >= len(names) {
		return fmt.Sprintf("fault %d", int(f))
	}
	return names[f]
}

// Points inside a StepTx, which plans see like separate calls.
const (
	StepTxBegun = "StepTx begun" // the transaction has begun; the user's function has not run
	StepTxRan   = "StepTx ran"   // the function has returned; the transaction is not committed
)

// Call is one call of the store, or a point inside one.
type Call struct {
	N      int    // 1 is the first call of the process
	Method string // of store.Store, or StepTxBegun, StepTxRan
	Nth    int    // 1 is the process's first call of this method
}

// String returns the call's name.
func (c Call) String() string { return fmt.Sprintf("%s #%d (call %d)", c.Method, c.Nth, c.N) }

// Faults returns the possible faults of a call. Inside a transaction nothing is committed
// yet, and Notify cannot fail.
func (c Call) Faults() []Fault {
	switch c.Method {
	case StepTxBegun, StepTxRan:
		return []Fault{ErrorBefore, CrashBefore}
	case "Notify":
		return []Fault{CrashBefore, CrashAfter}
	}
	return []Fault{ErrorBefore, ReplyLost, CrashBefore, CrashAfter}
}

// Plan returns the fault of a call. It is called before every call, sequentially, and
// must not use the process. A fault that is not in the call's Faults has no effect.
type Plan func(Call) Fault

// At returns a plan that strikes the nth call of a method.
func At(method string, nth int, f Fault) Plan {
	return func(c Call) Fault {
		if c.Method == method && c.Nth == nth {
			return f
		}
		return None
	}
}

// AtCall returns a plan that strikes the nth call of the process.
func AtCall(n int, f Fault) Plan {
	return func(c Call) Fault {
		if c.N == n {
			return f
		}
		return None
	}
}

var (
	// ErrInjected is wrapped by every injected error, together with the store's error
	// that it simulates.
	ErrInjected = errors.New("injected fault")
	// ErrDead is returned to a dead process. It wraps store.ErrClosed, so that the caller
	// does not retry.
	ErrDead = fmt.Errorf("this process is dead: %w", store.ErrClosed)
)

// Process is one process that uses a store.
type Process struct {
	inner store.Store
	plan  Plan

	life context.Context // ends when the process dies; a scope
	end  context.CancelCauseFunc
	gone chan struct{} // closed when it is dead and no call is in flight

	mu      sync.Mutex // guards the fields below
	dead    bool
	flight  int // calls in flight
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

// String returns the fault and the call.
func (s Strike) String() string { return s.Fault.String() + " at " + s.Call.String() }

// New returns a process that uses a store. A nil plan injects nothing.
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
	if p.flight == 0 {
		close(p.gone)
	}
}

// Died reports whether the process is dead. Code of the process must stop then.
func (p *Process) Died() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Dead returns a channel that is closed when the process is dead and its last
// call has ended.
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

// enter begins a call: it counts the call, which is in flight until leave.
func (p *Process) enter(method string) (Strike, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return Strike{}, ErrDead
	}
	p.flight++
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

// leave ends a call. It returns ErrDead if the process has died meanwhile.
func (p *Process) leave() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flight--
	if !p.dead {
		return nil
	}
	if p.flight == 0 {
		close(p.gone)
	}
	return ErrDead
}

// bound returns a context that also ends when the process dies: a waiting claim must not
// lease tasks to a dead process.
func (p *Process) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unbind := context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })
	return ctx, func() {
		unbind()
		cancel(nil)
	}
}

// err returns the error of the call. A lost reply is alternately ErrUnknown and
// ErrUnavailable: the caller must not conclude from the error whether the write took
// effect.
func (s Strike) err() error {
	looks := store.ErrUnavailable
	if s.Fault == ReplyLost && s.N%2 == 1 {
		looks = store.ErrUnknown
	}
	return fmt.Errorf("%s: %w (%w)", s.Call, looks, ErrInjected)
}
