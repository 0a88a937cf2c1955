// Package engine runs tasks: one file per role. The claimer leases due tasks
// into free slots, the executor runs each handler as an attempt, the completer
// writes outcomes in batches, the heartbeat keeps leases alive, the reaper
// takes expired ones away.
//
// The engine holds no truth: everything it knows can be lost with the
// process. It never writes without a lease, and it stops trusting a lease
// before the store would take it away (LEASES R5).
//
// Package weaver is its public face.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// HandlerFunc runs one attempt: encoded input in, encoded output out.
type HandlerFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Handler is the code of one task type.
type Handler struct {
	Type        string
	CodeVersion int
	Run         HandlerFunc
}

// Config is what an Engine needs; the caller has validated it and filled in
// every default.
type Config struct {
	Store        store.Store
	Namespace    string
	Handlers     []Handler
	Slots        int
	Queues       map[string]int // nil: every queue
	TTL          time.Duration
	Poll         time.Duration
	DrainTimeout time.Duration
	Log          *slog.Logger
	Decider      decide.Decider
	Router       decide.Router
	Sink         event.Sink // may be nil
	InlineLimit  int
	CrashBudget  int
	IDs          *task.IDs
}

// Engine runs handlers for one namespace of one store.
type Engine struct {
	cfg      Config
	handlers map[string]Handler
	types    map[string]int
	log      *slog.Logger
	worker   store.WorkerID
	name     string
	started  time.Time // origin of trusted-until offsets
	complete bool      // the store's notices miss nothing: no polling

	mu       sync.Mutex
	active   bool // Run was called
	running  map[leaseKey]*Attempt
	queues   map[string]int        // running, by queue
	suspects map[*Attempt]struct{} // running

	claimKick   chan struct{} // work may be due, or a slot became free
	beatKick    chan struct{} // heartbeat now: a cancel may wait
	reapKick    chan struct{} // a lease or deadline may now be the next to expire
	trustKick   chan struct{} // an attempt is trusted for less long than trustLoop sleeps
	draining    atomic.Bool
	cancelAsked atomic.Bool  // a running task may have been asked to cancel
	elsewhere   atomic.Bool  // another process wrote, and did perhaps that
	reapLate    atomic.Bool  // the reaper sleeps for longer than a new lease lasts
	trustLook   atomic.Int64 // when trustLoop looks again, as an offset from started
	reapPaused  atomic.Int64 // since when expired leases are there that we may not judge; an offset from started, 0: none are

	finishes *combiner[store.Finish, store.FinishResult]
	records  *combiner[store.Record, store.RecordResult]

	hard  context.Context         // ends when Run gives everything up; a scope, set by Run
	hurry context.CancelCauseFunc // ends the patience of the drain; set by Run
	work  *group.Group            // the attempts
}

type leaseKey struct {
	task  task.ID
	epoch int64
}

// New returns an Engine that does nothing until Run.
func New(cfg Config) *Engine {
	e := &Engine{
		cfg:       cfg,
		handlers:  make(map[string]Handler, len(cfg.Handlers)),
		types:     make(map[string]int, len(cfg.Handlers)),
		log:       cfg.Log,
		worker:    store.WorkerID(cfg.IDs.New().String()),
		started:   time.Now(),
		running:   make(map[leaseKey]*Attempt),
		queues:    make(map[string]int),
		suspects:  make(map[*Attempt]struct{}),
		claimKick: make(chan struct{}, 1),
		beatKick:  make(chan struct{}, 1),
		reapKick:  make(chan struct{}, 1),
		trustKick: make(chan struct{}, 1),
	}
	for _, h := range cfg.Handlers {
		e.handlers[h.Type] = h
		e.types[h.Type] = h.CodeVersion
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	e.name = fmt.Sprintf("%s:%d", host, os.Getpid())
	e.finishes = newCombiner(e.finishBatch, func(err error) store.FinishResult { return store.FinishResult{Err: err} })
	e.records = newCombiner(e.recordBatch, func(err error) store.RecordResult { return store.RecordResult{Err: err} })
	return e
}

// ErrRunning: an Engine runs once at a time.
var ErrRunning = errors.New("the engine runs already")

// Wake makes an idle engine look for due tasks now.
func (e *Engine) Wake() { kick(e.claimKick) }

// Run executes tasks until ctx ends, then drains: it claims nothing more,
// waits up to DrainTimeout for its handlers, ends the contexts of those that
// still run (ErrDraining) and gives their leases back. It returns nil after a
// clean drain and a *task.RunningError when handlers ignored the end of their
// context.
func (e *Engine) Run(ctx context.Context) error { return e.run(ctx, false) }

// RunUntilIdle is Run that ends by itself when nothing of its lanes is due or
// running. Tasks that are due later (retries, sleeps, delays) are left; expired
// leases are waited for until this worker may take them, two TTLs at most.
func (e *Engine) RunUntilIdle(ctx context.Context) error { return e.run(ctx, true) }

// unlessEnded returns what went wrong, unless the engine was told to stop
// before it began: that is a clean end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (e *Engine) run(ctx context.Context, untilIdle bool) error {
	e.mu.Lock()
	if e.active {
		e.mu.Unlock()
		return ErrRunning
	}
	e.active = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.active = false
		e.mu.Unlock()
	}()

	if err := e.cfg.Store.Ready(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	if err := e.join(ctx); err != nil {
		_ = e.leave(ctx) // it may have joined all the same; what is left over is forgotten in time
		return unlessEnded(ctx, fmt.Errorf("join as a worker: %w", err))
	}
	e.draining.Store(false)
	hard, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	e.hard = hard
	patience, hurry := context.WithCancelCause(hard)
	e.mu.Lock()
	e.hurry = hurry
	e.mu.Unlock()
	e.work = group.New(hard)

	if n, ok := e.cfg.Store.(store.Notifier); ok {
		stop, complete := n.Notify(e.cfg.Namespace, e.notice)
		defer stop()
		e.complete = complete
	}

	if untilIdle {
		// What a dead process of this machine left behind is work too. Before
		// the reaper looks by itself, or the later answer could be forgotten.
		e.reap(ctx)
	}
	// The roles outlive the claimer: leases must be kept while draining.
	roles := group.New(hard)
	roles.Go("heartbeat", e.heartbeatLoop)
	roles.Go("trust", e.trustLoop)
	roles.Go("reaper", e.reapLoop)
	claiming, stopClaiming := context.WithCancelCause(ctx)
	defer stopClaiming(nil)
	// A role that failed ends the run: leases must not be taken unrenewed.
	unwatch := context.AfterFunc(roles.Context(), func() { stopClaiming(context.Cause(roles.Context())) })
	defer unwatch()
	unhurry := context.AfterFunc(patience, func() { stopClaiming(context.Cause(patience)) })
	defer unhurry()
	claimErr := e.claimLoop(claiming, untilIdle)
	drainErr := e.drain(patience, giveUp)
	roles.Cancel(ErrDraining)
	roleErr := roles.Wait()

	return errors.Join(claimErr, drainErr, roleErr, e.leave(ctx))
}

// join has a limit: while it hangs, nobody beats and nobody reaps.
func (e *Engine) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(e.cfg.TTL/3, time.Second))
	defer cancel()
	return e.cfg.Store.Join(ctx, e.cfg.Namespace, store.WorkerInfo{ID: e.worker, Name: e.name, TTL: e.cfg.TTL})
}

func (e *Engine) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := e.cfg.Store.Leave(ctx, e.cfg.Namespace, e.worker); err != nil {
		return fmt.Errorf("leave as a worker: %w", err)
	}
	return nil
}

// notice hears of commits, possibly on a goroutine that holds the store's
// writer: it only sets flags.
func (e *Engine) notice(n store.Notice) {
	if n.Due || n.External {
		kick(e.claimKick)
		kick(e.reapKick)
	}
	if n.External {
		e.elsewhere.Store(true)
		kick(e.beatKick)
	}
	if len(n.Cancels) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range n.Cancels {
		for key := range e.running {
			if key.task == id {
				// The heartbeat's answer says who cancelled and why.
				e.cancelAsked.Store(true)
				kick(e.beatKick)
				return
			}
		}
	}
}

// StopNow ends the claiming and the patience of the drain.
func (e *Engine) StopNow() {
	e.mu.Lock()
	hurry := e.hurry
	e.mu.Unlock()
	if hurry != nil {
		hurry(ErrDraining)
	}
}

// drain ends the attempts: patiently, then with their contexts, then without
// them.
func (e *Engine) drain(patience context.Context, giveUp context.CancelCauseFunc) error {
	e.draining.Store(true)
	if e.idleWithin(patience, e.cfg.DrainTimeout) {
		return nil
	}
	for _, a := range e.attempts() {
		a.end(ErrDraining)
	}
	if e.idleWithin(e.hard, drainGrace) {
		return nil
	}

	// These handlers ignore their context. Their leases go back now, so that
	// another worker can start at once; the fence keeps them from writing.
	stuck := &task.RunningError{}
	for _, a := range e.attempts() {
		if !a.abandon() {
			continue
		}
		stuck.Tasks = append(stuck.Tasks, a.task.Type+" "+a.task.ID.String())
		res := e.finishes.do(a.released())
		if res.Err != nil {
			e.log.Warn("release the lease of a handler that does not return", "task_id", a.task.ID, "error", res.Err)
		}
		e.forget(a)
	}
	giveUp(ErrDraining)
	if len(stuck.Tasks) == 0 {
		return nil
	}
	return stuck
}

// idleWithin reports whether every attempt ended within d, and before ctx.
func (e *Engine) idleWithin(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var still *group.StillRunningError
	return !errors.As(e.work.WaitContext(ctx), &still) // attempts report their own errors
}

// drainGrace is how long handlers get to return after their contexts ended.
const drainGrace = 2 * time.Second

func (e *Engine) attempts() []*Attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*Attempt, 0, len(e.running))
	for _, a := range e.running {
		all = append(all, a)
	}
	return all
}

// Running returns how many attempts hold a slot.
func (e *Engine) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running)
}

// emit tells the sink, whose trouble never touches a task.
func (e *Engine) emit(ev event.Event) {
	if e.cfg.Sink == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("the event sink panicked", "event", ev.Type(), "task_id", ev.Head().TaskID, "panic", p)
		}
	}()
	e.cfg.Sink.Emit(ev)
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wait sleeps for d (d < 0: for ever) unless one of the channels or the
// context ends it.
func wait(ctx context.Context, d time.Duration, kicks <-chan struct{}) {
	var timeout <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
	case <-kicks:
	case <-timeout:
	}
}
