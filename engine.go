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
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Config configures an Engine. The zero value works: an engine without Handlers runs no tasks, but
// still ends tasks past their deadline and requeues the tasks of dead workers.
type Config struct {
	Namespace    string              // default DefaultNamespace
	Handlers     []Handler           // of the task types this worker runs; several for a type need names (HandlerName); tasks of other types are skipped
	Expect       []AnyType           // task types that need a handler, checked by New
	Concurrency  int                 // maximum number of concurrent handlers; default 10 × GOMAXPROCS
	Queues       map[string]int      // queues to serve, each with its own limit; default every queue
	Lease        time.Duration       // time after which a silent worker loses its tasks; default 30 s, at least 1 s
	SessionGrace time.Duration       // PostgreSQL: time after which a worker loses its tasks if its session does not answer; shorter outages end no handler, and another machine takes over the tasks of a dead process about a second later; default Lease/3, 1 s to Lease
	Poll         time.Duration       // polling interval of an idle worker; default 1 s
	DrainTimeout time.Duration       // time for which Run waits for handlers after its context ended; default 30 s. Under `weaver dev` (WEAVER_DEV is set) at most 2 s, and handlers end before their next step
	Logger       *slog.Logger        // default slog.Default()
	Decider      decide.Decider      // default decide.Default{}
	RepairHinter decide.RepairHinter // writes the hints for Repair; default decide.DefaultHint{}: the error, its path, and the expected value
	Router       decide.Router       // chooses among the handlers of a type; default decide.Direct{}: the unnamed one
	Sink         event.Sink          // receives every event, before the listeners of Plugins and On; optional
	InlineLimit  int                 // bytes; default 64 KiB
	Bucket       blob.Bucket         // stores inputs, outputs and step values over InlineLimit, and artifacts; all programs of a store need the same; default nil: such values are refused
	Codec        codec.Codec         // seals inputs, outputs, step values, signals, checkpoints, progress messages, logs, events and bucket data before they are stored, and opens them (codec/aesgcm); error texts, names, labels and keys stay readable; all programs of a store need the same; optional
	CrashBudget  int                 // consecutive crashes after which a task fails as poison; default 3, −1: never
	KeepStats    time.Duration       // retention of attempt statistics in the namespace (Client.Stats): the minimum over its engines applies, so set the same everywhere; default 90 days, at least 1 h; Forever: no end
	NoStats      bool                // disables attempt statistics; default false
	Retain       []Retention         // retention rules for finished tasks and jobs, made by Retain; default: keep forever

	// Delivery carries hints that wake idle workers, for example of package delivery/redis; optional.
	// Without it, or while it fails, workers learn of tasks from the store: notices and Poll. Its
	// failures cost latency only. The engine does not close it.
	Delivery       delivery.Transport
	RedeliverAfter time.Duration // time after which the hint of a task that no worker claimed is sent again; default 30 s, at least 1 s
	NoPublisher    bool          // the engine receives hints and sends none for the store's due tasks; another engine must; default false

	// UnknownFields is the policy for fields of a stored input that its Go type lacks, for example
	// after a rename; default task.UnknownWarn. Input from people and other programs (WithJSON,
	// Unblock) is always refused.
	UnknownFields task.UnknownFields

	// Redact holds keys ("password", "*token*") and paths ("/card/number") to mask in events, log
	// lines and errors, and for readers of tasks that the engine enqueues; see ClientConfig.
	Redact []string

	// Middleware wraps every handler, including repairs (Repair); the first is the outermost. New
	// calls each once per handler; it must not return nil.
	Middleware []func(HandlerFunc) HandlerFunc

	// Plugins extend the engine, for example schema.Plugin(), which announces the task types to
	// programs without them. New installs them in order. Their wrappers are outside Middleware, the
	// first outermost.
	Plugins []Plugin

	// Schedules are stored when the engine starts: new ones are created, changed ones are changed. A
	// schedule that an older version of Program declared and this one does not have is paused. While an
	// engine with a newer version runs, this one changes nothing that it declared; when the newer one
	// is gone, as after a rollback, the schedules of this one come back. Schedules of other programs and
	// those of Client.PutSchedule stay as they are.
	Schedules      []Schedule
	Program        string           // name of the program in Schedules; default: the path of its main package
	ProgramVersion int              // version of Program, raised with each deployment that adds or removes schedules; default 0: it pauses none
	Limits         map[string]Limit // set at the start, by name (Client.SetLimit), unless somebody else set the same one

	dev bool // under `weaver dev`
}

// Further defaults of Config.
const (
	defaultPoll  = time.Second
	defaultDrain = 30 * time.Second

	defaultRedeliver = 30 * time.Second

	devDrain           = 2 * time.Second // drain timeout of a program that `weaver dev` replaces
	defaultCrashBudget = 3
)

// Engine runs tasks in this process. It embeds a Client of its store and
// namespace.
type Engine struct {
	*Client
	inner *engine.Engine

	listeners *engine.Listeners
	types     []string       // types that it handles
	queues    map[string]int // queues that it serves; nil: all
	handlers  []Handler      // handlers passed to New
}

// New checks the configuration and returns an Engine; Run starts it. It reports every problem at once:
// duplicate handlers, expected task types without a handler, invalid values.
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
	schedules, bad := cfg.declared(client)
	if len(bad) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(bad...))
	}
	eng := &Engine{Client: client, listeners: setup.listeners, types: cfg.types(), queues: maps.Clone(cfg.Queues), handlers: slices.Clone(cfg.Handlers)}
	eng.inner = engine.New(engine.Config{
		AtStart:      cfg.atStart(client, setup.atStart(eng)),
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

		Delivery:       cfg.Delivery,
		RedeliverAfter: cfg.RedeliverAfter,
		NoPublisher:    cfg.NoPublisher,

		Schedules: schedules, Program: cfg.Program, CodeVersion: cfg.ProgramVersion,
	})
	if cfg.NoPublisher { // otherwise the publisher of this engine sends them
		client.hints = newHinter(cfg.Delivery)
	}
	client.wake = eng.inner.Wake
	client.live = &live{listeners: setup.listeners, logs: !setup.logs, events: !setup.events}
	return eng, nil
}

// Troubles returns the task types that this engine cannot run at the moment, or could not when it
// stopped: see [NotHere]. Use it in a health check.
func (e *Engine) Troubles() []store.Trouble { return e.inner.Troubles() }

// Run executes tasks until ctx ends and then drains: it claims no more tasks, waits up to DrainTimeout
// for its handlers, ends the remaining contexts (cause ErrDraining) and returns their leases at no
// cost to the tasks. It returns nil after a clean drain, and a *task.RunningError naming handlers that
// never returned. It returns store.ErrNotMigrated or store.ErrNewerSchema before running a task. If a
// newer program applies an incompatible migration while it runs, it drains and returns
// store.ErrNewerSchema.
func (e *Engine) Run(ctx context.Context) error { return e.inner.Run(ctx) }

// RunUntilIdle is Run that returns when no task of its types and queues is due or running: for cron
// jobs and serverless functions. It ignores tasks due later, including retries and sleeps. If it finds
// expired leases of other workers it stays until it may take them over, one to two lease lengths:
// those workers may still come back. If ctx ends sooner they are left, and it still returns nil.
func (e *Engine) RunUntilIdle(ctx context.Context) error { return e.inner.RunUntilIdle(ctx) }

// StopNow makes Run stop without waiting for DrainTimeout: it claims no more tasks and ends the
// contexts of all handlers (cause ErrDraining) at once. Their leases are returned at no cost to the
// tasks. StopNow does not wait; Run returns when the handlers have. Without a Run it has no effect.
func (e *Engine) StopNow() { e.inner.StopNow() }

func (cfg Config) problems() []error {
	problems := cfg.limitProblems()
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
	if cfg.RedeliverAfter != 0 && cfg.RedeliverAfter < time.Second {
		complain("RedeliverAfter is %s: want at least 1s, or 0 for the default, %s", cfg.RedeliverAfter, defaultRedeliver)
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
	if cfg.RedeliverAfter == 0 {
		cfg.RedeliverAfter = defaultRedeliver
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = defaultDrain
	}
	if cfg.dev = os.Getenv("WEAVER_DEV") != ""; cfg.dev {
		cfg.DrainTimeout = min(cfg.DrainTimeout, devDrain)
	}
	if cfg.Program == "" && (len(cfg.Schedules) > 0 || cfg.ProgramVersion > 0) {
		cfg.Program = engine.DefaultProgram()
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

// handlers returns the engine's handlers, wrapped by the middleware. Middleware is user code and runs
// here only after the rest of the configuration is known to be valid. The first of it comes from
// plug-ins.
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

// checkOutput checks an output that middleware changed. An empty output becomes null.
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
	AttemptNo      int           // number of the attempt in the task's history
	AttemptCount   int           // number of earlier attempts that counted
	MaxAttempts    int           // maximum number of attempts that count
	LastAttempt    bool          // if this attempt fails, the task fails, unless a Decider decides otherwise
	Epoch          int64         // rises with every lease of the task: a fencing token for external services
	StartedVersion int           // code version of the task's first attempt
	SchemaVersion  int           // of the stored input; see Upcast
	Waited         time.Duration // time from due to the start of this attempt, by the store's clock
	InlineLimit    int           // maximum size in bytes of an inline input, output or step value
	Labels         map[string]string
	Metadata       map[string]string
	Undoing        bool // the task has ended and is being undone: see Undo

	attempt *engine.Attempt
}

// StepKey returns a key for an external service's idempotency header: constant for this task and step
// name in every attempt, different for all others. A step that was undone ([Undo]) and runs again
// after a retry has a new key.
func (c CurrentInfo) StepKey(name string) string {
	if c.attempt != nil {
		return c.attempt.StepKey(name)
	}
	return task.StepKey(c.TaskID, name, 0)
}

// Current returns the attempt that ctx belongs to, or the zero value outside a handler.
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

// Progress reports the progress of the task; total 0 means unknown. It is stored, at most every 200
// ms, and survives restarts. Its errors are those of a step, except store errors: a report that cannot
// be written is written with the next one, or with the end of the attempt.
//
// It does not go back in a replay: repeated reports on the way through recorded steps are dropped. So
// are reports lower than an earlier attempt's, until as much or another total is reported.
func Progress(ctx context.Context, current, total float64, message ...string) error {
	a, err := engine.From(ctx)
	if err != nil {
		return err
	}
	return a.Progress(ctx, task.Progress{Current: current, Total: total, Message: strings.Join(message, " ")})
}

// Emit sends a piece of the handler's live output to the engine's listeners (Config.Sink, On): a chunk
// of a named stream, for example a line of "stdout". It is stored with PersistEvents only: put durable
// data into the output or a Step. Emit returns after the listeners have. Errors: ErrNoTask,
// ErrAttemptOver.
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
