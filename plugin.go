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
	// Install says what the plug-in does, by the methods of s. New calls it once
	// and reports its error; the engine has not started then.
	Install(s *Setup) error
}

// PluginFunc lets a function be a Plugin.
type PluginFunc func(*Setup) error

// Install implements Plugin.
func (f PluginFunc) Install(s *Setup) error {
	if f == nil {
		return errors.New("the function is nil")
	}
	return f(s)
}

// Setup is what a Plugin can do with an engine. It is used during Install only,
// and its functions must be safe for concurrent use.
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

// StepFunc runs the function of a step, whose name it is given, and returns its
// encoded value. InStepTx, Spend and the like work with the ctx that it gets, and
// with those made from it.
type StepFunc func(ctx context.Context, name string) (json.RawMessage, error)

// EnqueueFunc stores drafts: Enqueuer.EnqueueTasks.
type EnqueueFunc func(ctx context.Context, drafts ...Draft) ([]Enqueued, error)

// OnEvent adds a listener for every event of the engine, as On does.
func (s *Setup) OnEvent(fn func(event.Event)) {
	if s.given("OnEvent", fn == nil) {
		s.listeners.Add(fn)
	}
}

// OnAttempt adds a listener for the events with which attempts begin and end: those of
// package event whose names begin with Task. The others, which cost more the more a
// handler does, are not made for it.
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

// WrapStep wraps the functions of the steps: Step, Do and StepTx, each try for itself.
// Steps whose value is recorded run no function. New calls wrap once; it may not
// return nil. The function in the middle gets the last ctx, which must be made from
// the one that came in.
func (s *Setup) WrapStep(wrap func(StepFunc) StepFunc) {
	if s.given("WrapStep", wrap == nil) {
		s.steps = append(s.steps, wrap)
	}
}

// WrapEnqueue wraps the enqueues of the engine and of its InTx: Enqueue, EnqueueMany,
// EnqueueTasks. Drafts can be given more options (Draft.And). What a Submit, a step
// (Start, Call) or a Decompose stores does not come by here, nor what other clients
// enqueue. New calls wrap once; it may not return nil.
func (s *Setup) WrapEnqueue(wrap func(EnqueueFunc) EnqueueFunc) {
	if s.given("WrapEnqueue", wrap == nil) {
		s.enqueues = append(s.enqueues, wrap)
	}
}

// InjectMetadata has fn give metadata to every task that is stored by the engine, its
// InTx, or a handler of it: enqueued, submitted, started, called, decomposed, or named
// by a Decider. ctx is that of the call; for what is stored when the handler has
// returned it is that of the innermost handler. Metadata that the task has itself
// stays; what cannot be stored (a name over 255 bytes, NUL, no UTF-8) and a panic of
// fn are logged, and the task goes without it.
func (s *Setup) InjectMetadata(fn func(ctx context.Context) map[string]string) {
	if s.given("InjectMetadata", fn == nil) {
		s.injects = append(s.injects, fn)
	}
}

// OnStored calls fn for every task that was stored in one of the ways of InjectMetadata,
// with its type and queue; in InTx that is before the commit. A task that existed is not
// stored. If the process dies in between, or an answer of the store is lost, fn is not
// called, or called twice: it is for counting. A panic of fn is logged.
func (s *Setup) OnStored(fn func(ctx context.Context, typ, queue string)) {
	if s.given("OnStored", fn == nil) {
		s.stores = append(s.stores, fn)
	}
}

// LogAttrs has fn give attributes to the loggers that Log returns for ctx. A panic of
// fn is logged, and the logger goes without them.
func (s *Setup) LogAttrs(fn func(ctx context.Context) []slog.Attr) {
	if s.given("LogAttrs", fn == nil) {
		s.attrs = append(s.attrs, fn)
	}
}

// OnStart calls fn when a Run of the engine begins, before the first task is claimed:
// for what a worker does once, such as announcing its task types. It has 10 s. If it
// fails, or panics, that is logged, tasks run all the same, and it is called again every
// 30 s until it succeeds. Clients have no start.
func (s *Setup) OnStart(fn func(ctx context.Context, e *Engine) error) {
	if s.given("OnStart", fn == nil) {
		s.starts = append(s.starts, fn)
	}
}

// OnStoreCall calls fn after each call of the store by which the engine works, with how
// long that took: join, claim, heartbeat, record, finish, reap, collect and write_stats.
// claim_or_wait is a claim that waits for work. Calls of clients and handlers are not
// among them. fn is on the way of every task: it must be quick. A panic of it is logged.
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

// atStart are the functions of OnStart for an engine.
func (s *Setup) atStart(e *Engine) (fns []func(context.Context) error) {
	for _, fn := range s.starts {
		fns = append(fns, func(ctx context.Context) error { return fn(ctx, e) })
	}
	return fns
}

// storeCall calls the functions of OnStoreCall; nil: no plug-in asks for them.
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

// install asks the plug-ins what they do.
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

// PersistLogs keeps the lines of Log from level Info on in the store, with their task.
// A line over 64 KiB is cut and says so. Lines are written with what the task records
// next, or 200 ms later (25 ms with a chunk among them); those of that time are lost when
// the process is killed.
func PersistLogs() Plugin {
	return PluginFunc(func(s *Setup) error { s.logs = true; return nil })
}

// PersistEvents keeps the events of steps, progress and chunks (Emit, Stream) in the
// store, in the way of PersistLogs, so that Subscribe replays them, in every process.
// The events of tasks and jobs themselves it reads from the rows of these.
func PersistEvents() Plugin {
	return PluginFunc(func(s *Setup) error { s.events = true; return nil })
}

// stepFunc is what runs the functions of steps; nil: no plug-in wraps them.
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

// enqueuing is what the innermost EnqueueFunc needs to know of a call.
type enqueuing struct {
	client *Client
	tx     store.Tx
}

// enqueueFunc is what stores drafts; nil: no plug-in wraps it.
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

// On calls fn for the events of one type, those of package event; event.Event stands
// for all of them. It is called synchronously, after what happened is durable, in
// the order of the task's events, and must be safe for concurrent use. A slow
// listener, or one that panics, delays that task and nothing else.
//
// stop ends it, also from inside fn; a call that is under way goes on. Events of the
// engine itself only: what happens in other processes does Subscribe see. On panics
// when the engine or fn is nil.
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
