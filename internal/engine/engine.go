// Package engine runs tasks, with one file and one type per role:
//
//   - the claimer leases due tasks into free slots (slots);
//   - the executor runs each of them as an attempt;
//   - the recorder writes the records of attempts (combiner), and the completer
//     their ends (endings), both in batches;
//   - the heartbeater renews the leases;
//   - the validity checker ends the attempts whose leases were not renewed in
//     time;
//   - the reaper takes expired leases away;
//   - the collector deletes unneeded data, in the store and in the bucket;
//   - the statistics writer stores counts of ended attempts (stats);
//   - troubles holds the task types that this worker cannot run: they are claimed
//     with backoff, and announced;
//   - the publisher sends hints of due tasks to a delivery transport, and the hint
//     reader receives those for the claimer, which claims their tasks by ID;
//   - the scheduler fires the schedules that are due, after it stored those that the
//     program declares;
//   - the watcher logs warnings of the store, and stops claiming when the schema
//     is newer than this program;
//   - the drain ends the attempts when the engine stops.
//
// Each Run creates its roles anew. A role owns its state. Shared state is in env, and slots has its own mutex. Roles
// wake each other by a signal, through a method of the woken role.
//
// The engine is not a source of truth: all its state can be lost with the process. It never writes without a lease,
// and it stops relying on a lease (an attempt's local lease validity) before the store would give it away.
//
// Package weaver is its public API.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// HandlerFunc runs one attempt: encoded input in, encoded output out.
type HandlerFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Handler is the code of one task type, or one of several handlers of it.
type Handler struct {
	Type          string
	Name          string // among the handlers of the type; "": the handler used without a Router
	CodeVersion   int
	SchemaVersion int      // newest schema version that it reads; 0: any
	Redact        []string // patterns of its task type
	Expires       bool     // its task type's input has fields with a retention time
	Run           HandlerFunc

	// Draft makes a task of the type, without an ID, from a Decider's draft, or returns an error. nil: a Decider
	// cannot use the type.
	Draft func(d *task.Draft) (task.New, error)

	// Repairs reports that the handler of [task.RepairType] repairs inputs of the type here.
	Repairs bool
	Schema  json.RawMessage // JSON Schema of its input, if known
}

// handlerKey identifies a handler.
type handlerKey struct{ taskType, name string }

// Config is the configuration of an Engine; the caller has validated it and filled in every default.
type Config struct {
	Store        store.Store
	Namespace    string
	Handlers     []Handler
	Slots        int
	Queues       map[string]int // nil: every queue
	TTL          time.Duration
	SessionGrace time.Duration // time to rely on leases without an answer of the worker's session; see store.Ops.Session
	Poll         time.Duration
	LeaveAtSteps bool // a drain ends attempts before their next step, and releases leases at the end of DrainTimeout
	DrainTimeout time.Duration
	Log          *slog.Logger
	Decider      decide.Decider
	Router       decide.Router
	RepairHinter decide.RepairHinter // nil: decide.DefaultHint
	Listeners    *Listeners          // may be nil
	WrapStep     StepFunc            // runs the function of a step by RunStep; nil: not wrapped
	Inject       Inject              // completes tasks that attempts store; may be nil
	Stored       Stored              // notified of tasks that attempts stored; may be nil
	LogAttrs     LogAttrs            // may be nil
	InlineLimit  int
	Values       *Values // of the same store, namespace and limit
	CrashBudget  int
	Retain       []store.Retention // retention rules of the collector; empty: it deletes nothing
	IDs          *task.IDs
	KeepStats    time.Duration // retention of statistics, the shortest of all engines; 0: store.StatsKept, < 0: unlimited
	NoStats      bool          // count nothing; the statistics of others are still merged
	Redact       []string      // patterns of values that only handlers see, in addition to those of tasks

	UnknownFields task.UnknownFields // of stored inputs

	StoreLogs, StoreEvents bool // in the store

	StoreCall func(op string, took time.Duration, err error) // called after each store call of a role; may be nil

	Delivery       delivery.Transport // may be nil
	RedeliverAfter time.Duration      // a hint is sent again after it, if its task was not claimed
	NoPublisher    bool

	Schedules   []Declared // declared by the program
	Program     string     // that declares them
	CodeVersion int        // of Program

	AtStart []func(context.Context) error // called before the first claim; a failed one is called again later
}

// Engine runs handlers for one namespace of one store.
type Engine struct {
	cfg      Config
	handlers map[handlerKey]Handler
	types    map[string]int // code versions by task type
	schemas  map[string]int // newest readable schema version, by task type
	drafts   map[string]func(*task.Draft) (task.New, error)
	repairs  map[string]json.RawMessage // schema of inputs that are repaired here, by task type
	worker   store.WorkerID
	host     string
	name     string // host:pid
	stats    *stats
	unknown  unknownTypes
	hints    hintCounts

	mu      sync.Mutex
	active  bool      // Run was called
	trouble *troubles // of the last Run
	current *current  // controls the current Run; nil: not running
}

// current holds the parts of a Run that other goroutines may use.
type current struct {
	slots   *slots
	due     signal
	stopNow context.CancelCauseFunc
}

// New returns an Engine that does nothing until Run.
func New(cfg Config) *Engine {
	if cfg.Values == nil {
		cfg.Values = &Values{Store: cfg.Store, Namespace: cfg.Namespace, IDs: cfg.IDs, Limit: cfg.InlineLimit}
	}
	e := &Engine{
		cfg:      cfg,
		handlers: make(map[handlerKey]Handler, len(cfg.Handlers)),
		types:    make(map[string]int, len(cfg.Handlers)),
		schemas:  make(map[string]int, len(cfg.Handlers)),
		drafts:   make(map[string]func(*task.Draft) (task.New, error), len(cfg.Handlers)),
		repairs:  make(map[string]json.RawMessage),
		worker:   store.WorkerID(cfg.IDs.New().String()),
	}
	e.stats = newStats(cfg.Store, cfg.Namespace, e.worker)
	if e.stats != nil {
		e.stats.off = cfg.NoStats
	}
	for _, h := range cfg.Handlers {
		e.handlers[handlerKey{h.Type, h.Name}] = h
		if _, known := e.types[h.Type]; !known || h.Name == "" {
			e.types[h.Type], e.drafts[h.Type] = h.CodeVersion, h.Draft
		}
		if h.Repairs {
			e.repairs[h.Type] = h.Schema
		}
		if h.SchemaVersion > 0 {
			e.schemas[h.Type] = h.SchemaVersion
		}
	}
	var err error
	if e.host, err = os.Hostname(); err != nil {
		e.host = "unknown"
	}
	e.name = fmt.Sprintf("%s:%d", e.host, os.Getpid())
	return e
}

// ErrRunning: a second Run of an Engine was started.
var ErrRunning = errors.New("the engine is already running")

// Run executes tasks until ctx ends, then drains. It stops claiming, waits up to DrainTimeout for its handlers, ends
// the contexts of those that still run (ErrDraining) and releases their leases. It returns nil after a clean drain
// and a *task.RunningError when handlers ignored the end of their context. When the store's schema becomes newer than
// this program it also drains, and returns store.ErrNewerSchema.
func (e *Engine) Run(ctx context.Context) error { return e.run(ctx, false) }

// RunUntilIdle is Run that also ends when no task of its lanes is due or running. It leaves tasks that are due later
// (retries, sleeps, delays). It waits for expired leases until this worker may take them, at most two TTLs.
func (e *Engine) RunUntilIdle(ctx context.Context) error { return e.run(ctx, true) }

// Wake makes an idle engine look for due tasks now.
func (e *Engine) Wake() {
	if c := e.underWay(); c != nil {
		c.due.Set()
	}
}

// StopNow stops claiming and ends the grace period of the drain.
func (e *Engine) StopNow() {
	if c := e.underWay(); c != nil {
		c.stopNow(ErrDraining)
	}
}

// Troubles returns the task types that this worker cannot run at the moment, or could not when it stopped.
func (e *Engine) Troubles() []store.Trouble {
	e.mu.Lock()
	t := e.trouble
	e.mu.Unlock()
	return t.announced()
}

// Hints returns the counts of hints.
func (e *Engine) Hints() HintCounts { return e.hints.read() }

// Running returns the number of attempts that hold a slot.
func (e *Engine) Running() int {
	if c := e.underWay(); c != nil {
		return c.slots.taken()
	}
	return 0
}

func (e *Engine) run(ctx context.Context, untilIdle bool) error {
	if !e.begin() {
		return ErrRunning
	}
	defer e.end()

	env := &env{Config: e.cfg, worker: e.worker, name: e.name, host: e.host, schemas: e.schemas, drafts: e.drafts, repairs: e.repairs, handled: slices.Sorted(maps.Keys(e.types)), origin: time.Now(), slots: newSlots(e.cfg.Slots, e.queues()), stats: e.stats, unknown: &e.unknown, hints: &e.hints}
	env.troubles, env.questions = newTroubles(env), newQuestions(env)
	e.mu.Lock()
	e.trouble = env.troubles
	e.mu.Unlock()
	if err := e.cfg.Store.Ready(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	if err := e.cfg.Values.CheckBucket(ctx); errors.Is(err, blob.ErrUnavailable) {
		e.cfg.Log.Warn("tasks with large values and artifacts wait for the bucket", "error", err)
	} else if err != nil {
		return unlessEnded(ctx, err)
	}
	if err := env.joinAtStart(ctx); err != nil {
		_ = env.leave(ctx) // the join may still have worked; remains are removed in time
		return unlessEnded(ctx, fmt.Errorf("join as a worker: %w", err))
	}

	// work is the context of handlers and roles. It outlives ctx, because leases must be kept during the drain, and
	// ends when the drain gives up.
	work, hardStop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer hardStop(nil)
	// grace is the period in which the drain waits for handlers. StopNow ends it.
	grace, stopNow := context.WithCancelCause(work)
	// stop ends the claiming: with ctx, with grace, or when a role failed.
	stop, stopClaiming := context.WithCancelCause(ctx)
	defer stopClaiming(nil)
	defer context.AfterFunc(grace, func() { stopClaiming(context.Cause(grace)) })()

	env.work = work
	due := newSignal() // wakes the claimer: a task may be due, or a slot became free
	e.publish(&current{slots: env.slots, due: due, stopNow: stopNow})
	recorder := newRecorder(env)
	completer := newCompleter(env)
	validity := newValidityChecker(env)
	heartbeater := newHeartbeater(env)
	reaper := newReaper(env, due)
	executor := newExecutor(env, e.handlers, recorder, completer, validity, due)
	reader := newHintReader(env, due)
	publisher := newPublisher(env)
	scheduler := newScheduler(env)
	claimer := newClaimer(env, e.types, untilIdle, due, executor, heartbeater, reaper, reader)
	watcher := newWatcher(env, stopClaiming)
	drain := newDrain(env, executor, completer, hardStop)
	statWriter := newStatWriter(env)

	if e.cfg.Store.Capabilities().Has(store.CanNotify) {
		// Called after commits, possibly on a goroutine that holds the store's writer: it only wakes roles.
		stopNotices, complete := e.cfg.Store.Notify(e.cfg.Namespace, nil, func(n store.Notice) {
			if n.Due || n.External {
				due.Set()
			}
			reaper.notify(&n)
			publisher.notify(&n)
			scheduler.notify(&n)
			heartbeater.notify(len(n.Cancels) > 0 && env.slots.runsAny(n.Cancels), n.External)
		})
		defer stopNotices()
		env.complete = complete
	} else {
		env.unnoticed = true
	}

	// Tasks left by a dead process of this machine are work too, and go before younger ones. Reap before the reaper
	// looks by itself, or its later answer could be lost.
	reaper.reap(ctx, !untilIdle)
	roles := group.New(work)
	roles.Go("heartbeat", heartbeater.run)
	roles.Go("lease validity", validity.run)
	roles.Go("reaper", reaper.run)
	roles.Go("watcher", watcher.run)
	roles.Go("collector", newCollector(env).run)
	roles.Go("statistics", statWriter.run)
	roles.Go("troubles", env.troubles.run)
	roles.Go("questions", env.questions.run)
	if reader.enabled() {
		roles.Go("hints", reader.run)
	}
	if publisher.enabled() {
		roles.Go("publisher", publisher.run)
	}
	if scheduler.enabled() {
		roles.Go("scheduler", scheduler.run)
	}
	// A failed role ends the run: leases must not be taken without renewal.
	defer context.AfterFunc(roles.Context(), func() { stopClaiming(context.Cause(roles.Context())) })()

	starts := e.cfg.AtStart
	if scheduler.enabled() && (len(e.cfg.Schedules) > 0 || e.cfg.CodeVersion > 0) {
		starts = append(slices.Clone(starts), scheduler.declare)
	}
	if failed := env.atStart(stop, starts); len(failed) > 0 {
		roles.Go("start", env.startLater(failed))
	}
	if untilIdle && scheduler.enabled() { // before there may be nothing to do
		if _, err := scheduler.fire(stop); err != nil && stop.Err() == nil {
			env.repeats.warn(env.Log, "fire schedules", err)
		}
	}
	claimErr := claimer.run(stop)
	drainErr := drain.run(grace)
	roles.Cancel(ErrDraining)
	rolesErr := roles.Wait() // before reading the results of the roles
	err := errors.Join(claimErr, watcher.newer, drainErr, rolesErr)
	statWriter.flush(context.WithoutCancel(ctx))
	left := env.leave(ctx)
	if errors.Is(err, store.ErrClosed) && errors.Is(left, store.ErrClosed) {
		return err // the error says so
	}
	return errors.Join(err, left)
}

// begin returns false when a Run is in progress.
func (e *Engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active {
		return false
	}
	e.active = true
	return true
}

func (e *Engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active, e.current = false, nil
}

func (e *Engine) publish(c *current) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = c
}

func (e *Engine) underWay() *current {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current
}

// unlessEnded returns an error of the start-up, or nil when ctx has ended: an engine stopped before its start ends
// without an error.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
