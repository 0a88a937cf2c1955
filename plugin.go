package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Plugin extends an engine (Config.Plugins).
type Plugin interface {
	// Install registers the plug-in's functions by the methods of s. New calls it once, before the
	// engine starts, and reports its error.
	Install(s *Setup) error
}

// PluginFunc adapts a function to a Plugin.
type PluginFunc func(*Setup) error

// Install implements Plugin.
func (f PluginFunc) Install(s *Setup) error {
	if f == nil {
		return errors.New("the function is nil")
	}
	return f(s)
}

// Setup registers the functions of a Plugin with an engine. Use it during Install only; the functions
// must be safe for concurrent use.
type Setup struct {
	listeners *engine.Listeners
	handlers  []func(HandlerFunc) HandlerFunc
	steps     []func(StepFunc) StepFunc
	enqueues  []func(EnqueueFunc) EnqueueFunc
	injects   []func(context.Context) map[string]string
	attrs     []func(context.Context) []slog.Attr
	stores    []func(ctx context.Context, typ, queue string)
	starts    []func(context.Context, *Engine) error
	calls     []func(op string, took time.Duration, err error)
	problems  []error

	logs, events bool // are stored
}

// StepFunc runs the named step's function and returns its encoded value. InStepTx, Spend and the like
// work with its ctx and contexts derived from it.
type StepFunc func(ctx context.Context, name string) (json.RawMessage, error)

// EnqueueFunc stores drafts: Enqueuer.EnqueueTasks.
type EnqueueFunc func(ctx context.Context, drafts ...Draft) ([]Enqueued, error)

// OnEvent adds a listener for every event of the engine, as On does.
func (s *Setup) OnEvent(fn func(event.Event)) {
	if s.given("OnEvent", fn == nil) {
		s.listeners.Add(fn)
	}
}

// OnAttempt adds a listener for the start and end events of attempts: those of package event whose
// names begin with Task. Other events, whose cost grows with the handler's work, are not produced for
// it.
func (s *Setup) OnAttempt(fn func(event.Event)) {
	if s.given("OnAttempt", fn == nil) {
		s.listeners.AddCoarse(fn)
	}
}

// WrapHandler wraps every handler, as Config.Middleware does.
func (s *Setup) WrapHandler(wrap func(HandlerFunc) HandlerFunc) {
	if s.given("WrapHandler", wrap == nil) {
		s.handlers = append(s.handlers, wrap)
	}
}

// WrapStep wraps the functions of steps (Step, Do and StepTx), once for each try. A recorded step runs
// no function. New calls wrap once; it must not return nil. The ctx passed on must derive from the
// received one.
func (s *Setup) WrapStep(wrap func(StepFunc) StepFunc) {
	if s.given("WrapStep", wrap == nil) {
		s.steps = append(s.steps, wrap)
	}
}

// WrapEnqueue wraps the enqueues of the engine and of its InTx: Enqueue, EnqueueMany, EnqueueTasks. It
// may add options to drafts (Draft.And). It does not see tasks stored by a Submit, a step (Start,
// Call), a Decompose, or other clients. New calls wrap once; it must not return nil.
func (s *Setup) WrapEnqueue(wrap func(EnqueueFunc) EnqueueFunc) {
	if s.given("WrapEnqueue", wrap == nil) {
		s.enqueues = append(s.enqueues, wrap)
	}
}

// InjectMetadata makes fn add metadata to every task stored by the engine, its InTx, or one of its
// handlers: enqueued, submitted, started, called, decomposed, or named by a Decider. ctx is that of
// the call, or of the innermost handler for tasks stored after the handler has returned. The task's
// own metadata takes precedence. Invalid metadata (a name over 255 bytes, NUL, no UTF-8) and a panic
// of fn are logged, and the task is stored without it.
func (s *Setup) InjectMetadata(fn func(ctx context.Context) map[string]string) {
	if s.given("InjectMetadata", fn == nil) {
		s.injects = append(s.injects, fn)
	}
}

// OnStored calls fn for every task stored in one of the ways of InjectMetadata, with its type and
// queue; in InTx before the commit. An existing task does not count. If the process dies, or an answer
// of the store is lost, fn may be called never or twice: use it for counting. A panic of fn is logged.
func (s *Setup) OnStored(fn func(ctx context.Context, typ, queue string)) {
	if s.given("OnStored", fn == nil) {
		s.stores = append(s.stores, fn)
	}
}

// LogAttrs makes fn add attributes to the loggers that Log returns for ctx. A panic of fn is logged,
// and the logger lacks them.
func (s *Setup) LogAttrs(fn func(ctx context.Context) []slog.Attr) {
	if s.given("LogAttrs", fn == nil) {
		s.attrs = append(s.attrs, fn)
	}
}

// OnStart calls fn when a Run of the engine begins, before the first claim: for one-time work of a
// worker, such as announcing its task types. It has 10 s. An error or panic is logged, tasks run
// nevertheless, and fn is called again every 30 s until it succeeds. A plain client never calls it.
func (s *Setup) OnStart(fn func(ctx context.Context, e *Engine) error) {
	if s.given("OnStart", fn == nil) {
		s.starts = append(s.starts, fn)
	}
}

// OnStoreCall calls fn after each store call of the engine's own work, with its duration: join, claim,
// heartbeat, record, finish, reap, collect and write_stats. claim_or_wait is a claim that waits for
// work. Calls of clients and handlers do not count. fn delays every task: it must be fast. A panic of
// it is logged.
func (s *Setup) OnStoreCall(fn func(op string, took time.Duration, err error)) {
	if s.given("OnStoreCall", fn == nil) {
		s.calls = append(s.calls, fn)
	}
}

func (s *Setup) given(what string, missing bool) bool {
	if missing {
		s.problems = append(s.problems, fmt.Errorf("%s: the function is nil", what))
	}
	return !missing
}

// atStart returns the functions of OnStart for an engine.
func (s *Setup) atStart(e *Engine) (fns []func(context.Context) error) {
	for _, fn := range s.starts {
		fns = append(fns, func(ctx context.Context) error { return fn(ctx, e) })
	}
	return fns
}

// storeCall returns the functions of OnStoreCall, or nil.
func (s *Setup) storeCall(log *slog.Logger) func(op string, took time.Duration, err error) {
	if len(s.calls) == 0 {
		return nil
	}
	return func(op string, took time.Duration, err error) {
		for _, fn := range s.calls {
			guarded(log, "OnStoreCall", context.Background(), func(context.Context) (none None) {
				fn(op, took, err)
				return none
			})
		}
	}
}

// install calls Install of the plug-ins.
func (cfg Config) install(to store.Store) (*Setup, []error) {
	s := &Setup{listeners: new(engine.Listeners)}
	if cfg.Sink != nil {
		s.listeners.Add(cfg.Sink.Emit)
	}
	s, problems := installAll(cfg.Plugins, s)
	if (s.logs || s.events) && !to.Capabilities().Has(store.CanKeepEvents) {
		problems = append(problems, errors.New("the store keeps no events (it lacks store.CanKeepEvents), which PersistLogs and PersistEvents need"))
	}
	return s, problems
}

func installAll(plugins []Plugin, s *Setup) (*Setup, []error) {
	if s.listeners == nil {
		s.listeners = new(engine.Listeners)
	}
	var problems []error
	for i, p := range plugins {
		s.problems = nil
		err := p.Install(s)
		if err := errors.Join(append(s.problems, err)...); err != nil {
			problems = append(problems, fmt.Errorf("the plug-in Plugins[%d] (%T): %w", i, p, err))
		}
	}
	return s, problems
}

// PersistLogs stores the lines of Log from level Info on, with their task. A longer line is cut to 64
// KiB and marked. Lines are written with the task's next record, or 200 ms later (25 ms with a chunk
// among them); a killed process loses the lines of that time.
func PersistLogs() Plugin {
	return PluginFunc(func(s *Setup) error { s.logs = true; return nil })
}

// PersistEvents stores the events of steps, progress and chunks (Emit, Stream) as PersistLogs does, so
// that Subscribe in every process replays them. Subscribe reads the events of tasks and jobs from
// their rows.
func PersistEvents() Plugin {
	return PluginFunc(func(s *Setup) error { s.events = true; return nil })
}

// stepFunc returns the function that runs step functions; nil if no plug-in wraps them.
func (s *Setup) stepFunc() (engine.StepFunc, []error) {
	if len(s.steps) == 0 {
		return nil, nil
	}
	run := StepFunc(engine.RunStep)
	for _, wrap := range slices.Backward(s.steps) {
		if run = wrap(run); run == nil {
			return nil, []error{errors.New("a WrapStep of Plugins returned nil: return the function itself to leave it as it is")}
		}
	}
	return func(ctx context.Context, name string) (json.RawMessage, error) {
		value, err := run(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := checkJSON(value); err != nil {
			return nil, &engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the value, as a WrapStep returned it, cannot be stored: %w", err)}
		}
		return value, nil
	}, nil
}

type enqueueKey struct{}

// enqueuing holds the parameters of a call for the innermost EnqueueFunc.
type enqueuing struct {
	client *Client
	tx     store.Tx
}

// enqueueFunc returns the function that stores drafts; nil if no plug-in wraps it.
func (s *Setup) enqueueFunc() (EnqueueFunc, []error) {
	if len(s.enqueues) == 0 {
		return nil, nil
	}
	run := EnqueueFunc(func(ctx context.Context, drafts ...Draft) ([]Enqueued, error) {
		e, ok := ctx.Value(enqueueKey{}).(*enqueuing)
		if !ok {
			return nil, errors.New("enqueue: a WrapEnqueue of Plugins gave a context that is not made from its own")
		}
		return e.client.enqueueDrafts(ctx, e.tx, drafts)
	})
	for _, wrap := range slices.Backward(s.enqueues) {
		if run = wrap(run); run == nil {
			return nil, []error{errors.New("a WrapEnqueue of Plugins returned nil: return the function itself to leave it as it is")}
		}
	}
	return run, nil
}

// On calls fn for the events of one type of package event; event.Event selects all types. Calls are
// synchronous, made after the event is durable, in the order of the task's events. fn must be safe for
// concurrent use. A slow or panicking listener delays only its task.
//
// stop ends the subscription, also from inside fn; a running call continues. On sees events of this
// engine only; Subscribe sees those of other processes. On panics if the engine or fn is nil.
func On[E event.Event](eng *Engine, fn func(E)) (stop func()) {
	switch {
	case eng == nil:
		panic("weaver.On: the engine is nil")
	case fn == nil:
		panic("weaver.On: the function is nil")
	}
	return eng.listeners.Add(func(ev event.Event) {
		if ev, ok := ev.(E); ok {
			fn(ev)
		}
	})
}
