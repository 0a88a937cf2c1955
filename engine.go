package weaver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Config configures an Engine. The zero value works: an engine without
// Handlers runs no task, and still ends what has passed its deadline and gives
// back the tasks of workers that died.
type Config struct {
	Namespace    string              // default DefaultNamespace
	Handlers     []Handler           // of the task types this worker runs, several for a type if they have names (HandlerName); tasks of other types are left alone; default none
	Expect       []AnyType           // task types that must have a handler, checked by New
	Concurrency  int                 // handlers at once; default 10 × GOMAXPROCS
	Queues       map[string]int      // queues to serve, each with its own limit; default every queue
	Lease        time.Duration       // how long a silent worker keeps its tasks; default 30 s, at least 1 s
	SessionGrace time.Duration       // PostgreSQL: how long a worker without an answer of its session keeps its tasks; shorter outages end no handler, and another machine takes over what a dead process ran about a second later; default Lease/3, 1 s to Lease
	Poll         time.Duration       // how often an idle worker looks by itself; default 1 s
	DrainTimeout time.Duration       // how long Run waits for handlers once its context ended; default 30 s. Under `weaver dev` (WEAVER_DEV is set) at most 2 s, and handlers end before their next step
	Logger       *slog.Logger        // default slog.Default()
	Decider      decide.Decider      // default decide.Default{}
	RepairHinter decide.RepairHinter // writes the hints for Repair; default decide.DefaultHint{}: the error, its path, and what is expected
	Router       decide.Router       // chooses among the handlers of a type; default decide.Direct{}: the one without a name
	Sink         event.Sink          // receives every event, before the listeners of Plugins and On; default none
	InlineLimit  int                 // bytes; default 64 KiB
	Bucket       blob.Bucket         // keeps inputs, outputs and step values over InlineLimit, and artifacts; all programs of a store need the same; default none: such values are refused
	Codec        codec.Codec         // seals inputs, outputs, step values, signals, checkpoints, progress messages, logs, events and what goes to the bucket before they are stored, and opens them (codec/aesgcm); error texts, names, labels and keys stay readable; all programs of a store need the same; default none
	CrashBudget  int                 // crashes in a row after which a task fails as poison; default 3, −1: never
	KeepStats    time.Duration       // how long statistics of attempts are kept, of the whole namespace (Client.Stats): the shortest time of its engines holds, so give all the same; default 90 days, at least 1 h; Forever: no end
	NoStats      bool                // count no attempts for statistics; default false
	Retain       []Retention         // how long what has ended is kept, by rules that Retain makes; default: for ever

	// UnknownFields says what becomes of fields of a stored input that its Go type lacks,
	// after a rename for example; default task.UnknownWarn. What people and other programs hand
	// in (WithJSON, Unblock) is refused in any case.
	UnknownFields task.UnknownFields

	// Redact are keys ("password", "*token*") and paths ("/card/number") of what is
	// masked in events, log lines and errors, and of tasks that the engine enqueues also
	// in what readers show; see ClientConfig. Default none.
	Redact []string

	// Middleware wraps every handler, that of repairs too (Repair); the first is the outermost. New calls
	// each once for each handler; none may return nil.
	Middleware []func(HandlerFunc) HandlerFunc

	// Plugins extend the engine, for example schema.Plugin(), which announces the task types
	// to programs that do not have them; New installs them in their order. What they wrap
	// lies outside of Middleware, and what the first wraps outside of all.
	Plugins []Plugin

	dev bool // under `weaver dev`
}

// Further defaults of Config.
const (
	defaultPoll  = time.Second
	defaultDrain = 30 * time.Second

	devDrain           = 2 * time.Second // of a program that `weaver dev` replaces
	defaultCrashBudget = 3
)

// Engine runs tasks in this process. It embeds a Client of its store and
// namespace.
type Engine struct {
	*Client
	inner *engine.Engine

	listeners *engine.Listeners
	types     []string       // that it handles
	queues    map[string]int // that it serves; nil: all
	handlers  []Handler      // as they were given
}

// New checks the configuration and returns an Engine; Run starts it. Every
// problem is reported at once: duplicate handlers, expected task types without
// one, impossible values.
func New(s store.Store, cfg Config) (*Engine, error) {
	cc := ClientConfig{Namespace: cfg.Namespace, InlineLimit: cfg.InlineLimit, Bucket: cfg.Bucket, Codec: cfg.Codec, Logger: cfg.Logger, Redact: cfg.Redact}
	if problems := append(cc.problems(s), cfg.problems()...); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	client := newClient(s, cc)
	setup, problems := cfg.install(s)
	client.inject, client.stored = setup.inject(client.log), setup.stored(client.log)
	cfg.Middleware = slices.Concat(setup.handlers, cfg.Middleware)
	wrapStep, bad := setup.stepFunc()
	problems = append(problems, bad...)
	client.wrapped, bad = setup.enqueueFunc()
	problems = append(problems, bad...)
	handlers, bad := cfg.handlers(client, len(setup.handlers))
	if problems = append(problems, bad...); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	client.known = knownTypes(cfg.Handlers)
	cfg = cfg.withDefaults()
	cfg.warnUnserved()
	eng := &Engine{Client: client, listeners: setup.listeners, types: cfg.types(), queues: maps.Clone(cfg.Queues), handlers: slices.Clone(cfg.Handlers)}
	eng.inner = engine.New(engine.Config{
		AtStart:      setup.atStart(eng),
		Store:        client.store,
		Namespace:    client.ns,
		Handlers:     handlers,
		Slots:        cfg.Concurrency,
		Queues:       maps.Clone(cfg.Queues),
		TTL:          cfg.Lease,
		SessionGrace: cfg.SessionGrace,
		Poll:         cfg.Poll,
		DrainTimeout: cfg.DrainTimeout, LeaveAtSteps: cfg.dev,
		Log:          cfg.Logger,
		Decider:      cfg.Decider,
		Router:       cfg.Router,
		RepairHinter: cfg.RepairHinter,
		Listeners:    setup.listeners,
		WrapStep:     wrapStep,
		Inject:       client.inject,
		Stored:       client.stored,
		LogAttrs:     setup.logAttrs(client.log),
		StoreCall:    setup.storeCall(client.log),
		StoreLogs:    setup.logs,
		StoreEvents:  setup.events,
		InlineLimit:  client.limit,
		Values:       client.values,
		CrashBudget:  cfg.CrashBudget,
		Retain:       rulesOf(cfg.Retain),
		KeepStats:    cfg.KeepStats,
		NoStats:      cfg.NoStats,
		IDs:          client.ids,
		Redact:       client.redact,

		UnknownFields: cfg.UnknownFields,
	})
	client.wake = eng.inner.Wake
	client.live = &live{listeners: setup.listeners, logs: !setup.logs, events: !setup.events}
	return eng, nil
}

// Troubles returns the task types that this engine cannot run at the moment, or could not
// when it stopped: see [NotHere]. A program's own check of its health asks for it.
func (e *Engine) Troubles() []store.Trouble { return e.inner.Troubles() }

// Run executes tasks until ctx ends and then drains: it claims nothing more,
// waits up to DrainTimeout for its handlers, ends the contexts of the rest
// (cause ErrDraining) and gives their leases back at no cost to the tasks. It
// returns nil after a clean drain, a *task.RunningError naming handlers that never
// returned, store.ErrNotMigrated or store.ErrNewerSchema before anything runs. When a newer
// program migrates the store while it runs, and the migration is not one that older
// programs may run beside, it drains and returns store.ErrNewerSchema.
func (e *Engine) Run(ctx context.Context) error { return e.inner.Run(ctx) }

// RunUntilIdle is Run that returns by itself when nothing of its task types
// and queues is due or running: for cron jobs and serverless functions. Tasks
// that are due later, retries and sleeps among them, are left. When it finds
// leases of others that have expired it stays until it may take them over,
// about a lease length, two at most: their workers may be about to come back.
// Where ctx ends sooner they are left, and nil is returned all the same.
func (e *Engine) RunUntilIdle(ctx context.Context) error { return e.inner.RunUntilIdle(ctx) }

// StopNow makes Run stop without waiting for DrainTimeout: it claims nothing
// more and ends the contexts of all handlers (cause ErrDraining) at once. Their
// leases go back at no cost to the tasks. It does not wait; Run returns when the
// handlers have. Without a Run it does nothing.
func (e *Engine) StopNow() { e.inner.StopNow() }

func (cfg Config) problems() []error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if cfg.UnknownFields < task.UnknownWarn || cfg.UnknownFields > task.UnknownIgnore {
		complain("UnknownFields is %d: want task.UnknownWarn, UnknownRefuse or UnknownIgnore", cfg.UnknownFields)
	}
	seen := make(map[string]bool, len(cfg.Handlers))
	names := make(map[[2]string]bool, len(cfg.Handlers))
	repairs := make(map[string]bool)
	for i, h := range cfg.Handlers {
		switch {
		case h.name == "":
			complain("Handlers[%d] is empty: make handlers with a task type's Handler", i)
		case h.problem != "":
			complain("%s", h.problem)
		case h.name == task.RepairType:
			complain("%s is the type of repairs, which has a handler already: give the handler of your own type the option Repair", h.name)
		case h.repair != nil && repairs[h.name]:
			complain("%s has two handlers with a Repair: give it to one of them", h.name)
		case names[[2]string{h.name, h.variant}] && h.variant == "":
			complain("%s has two handlers: register each task type once, or name the others (HandlerName)", h.name)
		case names[[2]string{h.name, h.variant}]:
			complain("%s has two handlers of the name %q: give each its own", h.name, h.variant)
		}
		repairs[h.name] = repairs[h.name] || h.repair != nil
		seen[h.name], names[[2]string{h.name, h.variant}] = true, true
	}
	for name := range seen {
		if name != "" && !names[[2]string{name, ""}] && cfg.Router == nil {
			complain("%s has only handlers with names, and no Router chooses among them: set Config.Router, or leave the name of one out", name)
		}
	}
	for i, t := range cfg.Expect {
		switch {
		case t == nil:
			complain("Expect[%d] is nil", i)
		case !seen[t.Name()]:
			complain("%s is expected but has no handler: add it to Config.Handlers", t.Name())
		}
	}
	for name, v := range map[string]int64{
		"Concurrency": int64(cfg.Concurrency), "Poll": int64(cfg.Poll), "DrainTimeout": int64(cfg.DrainTimeout),
	} {
		if v < 0 {
			complain("%s is negative", name)
		}
	}
	if cfg.Lease != 0 && cfg.Lease < time.Second {
		complain("Lease is %s: want at least 1s", cfg.Lease)
	}
	if lease := cmp.Or(cfg.Lease, store.DefaultLease); cfg.SessionGrace != 0 && (cfg.SessionGrace < time.Second || cfg.SessionGrace > lease) {
		complain("SessionGrace is %s: want from 1s to the Lease, %s, or 0 for a third of that", cfg.SessionGrace, lease)
	}
	if cfg.KeepStats != 0 && cfg.KeepStats != Forever && cfg.KeepStats < time.Hour {
		complain("KeepStats is %s: want at least 1h, 0 for the default, %d days, or Forever", cfg.KeepStats, store.StatsKept/(24*time.Hour))
	}
	if cfg.CrashBudget < -1 {
		complain("CrashBudget is %d: want −1 (never), 0 (the default, %d) or more", cfg.CrashBudget, defaultCrashBudget)
	}
	if cfg.Queues != nil && len(cfg.Queues) == 0 {
		complain("Queues is empty: name the queues to serve, or leave it nil for all")
	}
	for q, n := range cfg.Queues {
		if err := option.CheckKey("Queues", q); err != nil {
			problems = append(problems, err)
		}
		if n < 1 {
			complain("Queues[%q] is %d: want at least 1", q, n)
		}
	}
	for i, p := range cfg.Plugins {
		if p == nil {
			complain("Plugins[%d] is nil", i)
		}
	}
	for i := range cfg.Retain {
		if err := cfg.Retain[i].problem(); err != nil {
			complain("Retain[%d]: %w", i, err)
		}
	}
	for i, m := range cfg.Middleware {
		if m == nil {
			complain("Middleware[%d] is nil", i)
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

func (cfg Config) withDefaults() Config {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 10 * runtime.GOMAXPROCS(0)
	}
	if cfg.Lease == 0 {
		cfg.Lease = store.DefaultLease
	}
	if cfg.SessionGrace == 0 {
		cfg.SessionGrace = engine.SessionGrace(cfg.Lease)
	}
	if cfg.Poll == 0 {
		cfg.Poll = defaultPoll
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = defaultDrain
	}
	if cfg.dev = os.Getenv("WEAVER_DEV") != ""; cfg.dev {
		cfg.DrainTimeout = min(cfg.DrainTimeout, devDrain)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Decider == nil {
		cfg.Decider = decide.Default{}
	}
	if cfg.Router == nil {
		cfg.Router = decide.Direct{}
	}
	if cfg.CrashBudget == 0 {
		cfg.CrashBudget = defaultCrashBudget
	}
	return cfg
}

// handlers are those that the engine calls, wrapped by the middleware, which
// is the user's code and runs here only once the rest of the configuration is
// known to be good. The first of it comes from plug-ins.
func (cfg Config) handlers(client *Client, plugins int) (hs []engine.Handler, problems []error) {
	all := cfg.Handlers
	if r := client.repairHandler(all); r.run != nil {
		all = append(slices.Clip(all), r)
	}
	hs = make([]engine.Handler, len(all))
	for i, h := range all {
		run := h.run
		if client.inject != nil || client.stored != nil {
			run = entered(run)
		}
		for j := len(cfg.Middleware) - 1; j >= 0; j-- {
			if run = cfg.Middleware[j](run); run == nil {
				what := fmt.Sprintf("Middleware[%d]", j-plugins)
				if j < plugins {
					what = "a WrapHandler of Plugins"
				}
				problems = append(problems, fmt.Errorf("for the handler of %s %s returned nil: return the handler itself to leave it as it is", h.name, what))
				break
			}
		}
		if len(cfg.Middleware) > 0 {
			run = checkOutput(run)
		}
		hs[i] = engine.Handler{Type: h.name, Name: h.variant, CodeVersion: h.version, SchemaVersion: h.schema, Redact: h.redact, Expires: h.expires, Run: engine.HandlerFunc(run), Draft: h.planned(client)}
		if h.repair != nil {
			hs[i].Repairs, hs[i].Schema = true, h.repair.schema
		}
	}
	return hs, problems
}

// checkOutput checks what middleware made of an output. No output at all is null.
func checkOutput(run HandlerFunc) HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		out, err := run(ctx, input)
		switch {
		case err != nil && !completes(err):
			return nil, err
		case len(out) == 0:
			return json.RawMessage("null"), err
		}
		if bad := checkJSON(out); bad != nil {
			return nil, &engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the output, as Middleware returned it, cannot be stored: %w", bad)}
		}
		return out, err
	}
}

// CurrentInfo describes the running attempt.
type CurrentInfo struct {
	TaskID         TaskID
	JobID          JobID // zero outside jobs
	Node           string
	Type           string
	Queue          string
	Namespace      string
	AttemptNo      int           // numbers the task's history
	AttemptCount   int           // attempts that counted before this one
	MaxAttempts    int           // attempts that may count
	LastAttempt    bool          // a failure of this attempt leaves none: the task fails, unless a Decider knows better
	Epoch          int64         // rises with every lease of the task: a fencing token for partners
	StartedVersion int           // code version of the task's first attempt
	SchemaVersion  int           // of the input, as it was enqueued; see Upcast
	Waited         time.Duration // the task was due for so long before this attempt began, by the store's clock
	InlineLimit    int           // bytes that an input, output or step value may have
	Labels         map[string]string
	Metadata       map[string]string
	Undoing        bool // the task is over, and is being undone: see Undo

	attempt *engine.Attempt
}

// StepKey returns a key for a partner's idempotency header: the same for this
// task and step name in every attempt, different for all others. A step that was
// undone ([Undo]) and runs again, after a retry, has another one.
func (c CurrentInfo) StepKey(name string) string {
	if c.attempt != nil {
		return c.attempt.StepKey(name)
	}
	return task.StepKey(c.TaskID, name, 0)
}

// Current describes the attempt that ctx belongs to. Outside a handler it is
// the zero value.
func Current(ctx context.Context) CurrentInfo {
	a, err := engine.From(ctx)
	if err != nil {
		return CurrentInfo{}
	}
	t := a.Task()
	return CurrentInfo{
		TaskID:         t.ID,
		JobID:          t.JobID,
		Node:           t.Node,
		Type:           t.Type,
		Queue:          t.Queue,
		Waited:         a.Waited(),
		Namespace:      a.Namespace(),
		AttemptNo:      t.AttemptNo,
		AttemptCount:   t.AttemptCount,
		MaxAttempts:    t.MaxAttempts,
		LastAttempt:    t.AttemptCount+1 >= t.MaxAttempts,
		Epoch:          t.Epoch,
		StartedVersion: t.StartedVersion,
		SchemaVersion:  t.SchemaVersion,
		InlineLimit:    a.InlineLimit(),
		Labels:         maps.Clone(t.Labels),
		Metadata:       maps.Clone(t.Metadata),
		Undoing:        t.Undo != nil,
		attempt:        a,
	}
}

// Progress reports how far the task is; total 0 means unknown. It is stored,
// at most every 200 ms, and survives restarts. Its errors are those of a step,
// but for store errors: a report that cannot be written now is written with the
// next one, or with the end of the attempt.
//
// It does not go back in a replay: what a handler reports again on its way
// through recorded steps is left out, and so is less than an earlier attempt
// reported, until as much or another total is reported.
func Progress(ctx context.Context, current, total float64, message ...string) error {
	a, err := engine.From(ctx)
	if err != nil {
		return err
	}
	return a.Progress(ctx, task.Progress{Current: current, Total: total, Message: strings.Join(message, " ")})
}

// Emit gives the engine's listeners (Config.Sink, On) a piece of the handler's live
// output: a chunk of a named stream, say a line of "stdout". It is stored with
// PersistEvents only: what must be kept belongs into the output or a Step. They have returned
// when Emit returns. Errors: ErrNoTask, ErrAttemptOver.
func Emit(ctx context.Context, stream string, data any) error {
	a, err := engine.From(ctx)
	if err != nil {
		return err
	}
	return a.Emit(stream, data)
}

// Log returns a logger that adds the task, the attempt and the step. Outside a
// handler it is slog.Default().
func Log(ctx context.Context) *slog.Logger {
	a, err := engine.From(ctx)
	if err != nil {
		return slog.Default()
	}
	return a.Log(ctx)
}

// An Engine is a Client in all respects.
var (
	_ Caller   = (*Engine)(nil)
	_ Enqueuer = (*Engine)(nil)
)
