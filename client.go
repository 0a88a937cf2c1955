package weaver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// DefaultNamespace is the default of ClientConfig.Namespace and Config.Namespace.
const DefaultNamespace = "default"

// DefaultInlineLimit is the maximum size in bytes of an input, output or step value in a row of the
// store.
const DefaultInlineLimit = 64 << 10

// ClientConfig configures a Client. The zero value works.
type ClientConfig struct {
	Namespace   string       // default DefaultNamespace
	InlineLimit int          // bytes; default 64 KiB
	Bucket      blob.Bucket  // stores inputs over InlineLimit, and has outputs and artifacts; see Config; optional
	Codec       codec.Codec  // seals values before they are stored and opens them; see Config; optional
	Logger      *slog.Logger // default slog.Default()
	Handlers    []Handler    // handlers of known task types, used to check inputs (RepairInput, RerunInput, CheckInput) but never run
	Plugins     []Plugin     // a client without an engine uses only their enqueue hooks: WrapEnqueue, InjectMetadata, OnStored

	// Delivery gets hints of the tasks that this client enqueued and that are due, after the commit, so
	// that a worker starts them at once; see Config. Its errors are ignored: the publisher of an engine
	// sends the hints too. Tasks enqueued by InTx get theirs from a publisher. Optional.
	Delivery delivery.Transport

	// Redact holds keys ("password", "*token*") and paths ("/card/number") that readers hide in the
	// values of tasks enqueued by this client, in addition to the fields with the tag
	// `weaver:"redact"`; see docs/privacy.md.
	Redact []string
}

// Client enqueues, reads and operates tasks of one namespace. It is safe for concurrent use and need
// not be closed.
type Client struct {
	given  store.Store // the store passed to NewClient
	store  store.Store // the same, or a wrapper that seals values
	ns     string
	limit  int
	values *engine.Values
	redact []string // patterns that readers hide
	log    *slog.Logger
	ids    *task.IDs
	waits  waits
	tail   tail               // of the feed of events
	warned *sync.Map          // task types for which an enqueue without key was warned about
	hints  *hinter            // sends hints of enqueued tasks; nil: does not
	wake   func()             // wakes the engine that embeds this client
	room   *queueRoom         // of queues with a limit of waiting tasks
	known  map[string]Handler // handlers of the engine or the configuration, by task type

	live    *live         // events of the engine; nil for a plain client
	wrapped EnqueueFunc   // enqueue hook of the plug-ins; may be nil
	inject  engine.Inject // metadata hook of the plug-ins; may be nil
	stored  engine.Stored // OnStored hook of the plug-ins; may be nil
}

// NewClient returns a client of a store. The store need not be migrated yet.
func NewClient(s store.Store, cfg ClientConfig) (*Client, error) {
	if problems := cfg.problems(s); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	c := newClient(s, cfg)
	c.known, c.hints = knownTypes(cfg.Handlers), newHinter(cfg.Delivery)
	setup, problems := installAll(cfg.Plugins, new(Setup))
	wrapped, bad := setup.enqueueFunc()
	if problems = append(problems, bad...); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	c.wrapped, c.inject, c.stored = wrapped, setup.inject(c.log), setup.stored(c.log)
	return c, nil
}

func (cfg ClientConfig) problems(s store.Store) []error {
	var problems []error
	if s == nil {
		problems = append(problems, errors.New("the store is nil"))
	}
	if cfg.Namespace != "" {
		if err := option.CheckKey("Namespace", cfg.Namespace); err != nil {
			problems = append(problems, err)
		}
	}
	_, redactProblems := redactKeys(cfg.Redact)
	problems = append(problems, redactProblems...)
	for i := range cfg.Handlers {
		if cfg.Handlers[i].name == "" {
			problems = append(problems, fmt.Errorf("%s is empty: make handlers with a task type's Handler", fmt.Sprintf("Handlers[%d]", i)))
		}
	}
	for i, p := range cfg.Plugins {
		if p == nil {
			problems = append(problems, fmt.Errorf("%s is nil", fmt.Sprintf("Plugins[%d]", i)))
		}
	}
	if cfg.Codec != nil {
		if err := codec.CheckKeyID(cfg.Codec.Newest()); err != nil {
			problems = append(problems, fmt.Errorf("Config.Codec: its newest key is %.70q: %w", cfg.Codec.Newest(), err))
		}
	}
	if cfg.InlineLimit < 0 {
		problems = append(problems, fmt.Errorf("InlineLimit is %d: want a number of bytes, or 0 for the default, %d", cfg.InlineLimit, DefaultInlineLimit))
	}
	if cfg.Bucket != nil {
		if c, ok := cfg.Bucket.(blob.Checker); ok {
			if err := c.Check(); err != nil && !errors.Is(err, blob.ErrUnavailable) {
				problems = append(problems, fmt.Errorf("Config.Bucket: %w", err))
			}
		}
	}
	return problems
}

// newClient is NewClient with a valid configuration.
func newClient(s store.Store, cfg ClientConfig) *Client {
	if cfg.Namespace == "" {
		cfg.Namespace = DefaultNamespace
	}
	if cfg.InlineLimit == 0 {
		cfg.InlineLimit = DefaultInlineLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	given := s
	var sealer *seal.Sealer
	if cfg.Codec != nil {
		sealer = &seal.Sealer{Codec: cfg.Codec, Namespace: cfg.Namespace}
		s = seal.Store(s, sealer)
	}
	c := &Client{given: given, store: s, ns: cfg.Namespace, limit: cfg.InlineLimit, log: cfg.Logger, ids: task.NewIDs(nil), warned: new(sync.Map), room: new(queueRoom)}
	c.values = &engine.Values{Store: s, Namespace: c.ns, Bucket: cfg.Bucket, IDs: c.ids, Limit: c.limit, Sealer: sealer}
	c.redact, _ = redactKeys(cfg.Redact) // its problems were reported
	c.waits.init(s, cfg.Namespace, cfg.Logger)
	c.tail.init(s, cfg.Namespace)
	return c
}

// Namespace returns the client's namespace.
func (c *Client) Namespace() string { return c.ns }

// Store returns the store passed to NewClient. With a Codec, its values are sealed.
func (c *Client) Store() store.Store { return c.given }

// OpenStore returns the store as the client uses it: with a Codec, it seals and opens values.
func (c *Client) OpenStore() store.Store { return c.store }

// Wake makes an idle engine of this process, and on PostgreSQL of other processes, look for due tasks
// now. Call it after the commit of a transaction given to InTx. Without it the store's notices and the
// poll find the tasks a little later.
func (c *Client) Wake() {
	c.store.Wake(c.ns)
	if c.wake != nil {
		c.wake()
	}
	c.waits.recheck()
}

// Get reads one task. An input or output in the bucket is read from there; if that fails, its
// reference stays (a JSON object with the key "$weaver"). Error: ErrNotFound.
func (c *Client) Get(ctx context.Context, id TaskID) (TaskInfo, error) {
	t, err := c.get(ctx, id)
	if err == nil {
		t.Input, t.Output = c.loaded(ctx, t.Input), c.loaded(ctx, t.Output)
	}
	return t, err
}

// get is Get without reading the bucket.
func (c *Client) get(ctx context.Context, id TaskID) (TaskInfo, error) {
	got, err := c.store.Tasks(ctx, c.ns, id)
	if err != nil {
		return TaskInfo{}, fmt.Errorf("get task %s: %w", id, err)
	}
	if len(got) == 0 {
		return TaskInfo{}, c.noTask(id)
	}
	return got[0], nil
}

func (c *Client) noTask(id TaskID) error {
	return fmt.Errorf("task %s in namespace %q: %w", id, c.ns, ErrNotFound)
}

// List reads tasks newest first, and the cursor of the next page, "" at the end. It does not read
// inputs and outputs from the bucket; Get does. A page takes a bounded time: if few of many tasks
// match, it may have fewer than Limit, even zero, before the end. Errors: ErrInvalidOption for an
// unknown state, reason to wait or error kind; ErrBadCursor for a cursor that no list returned.
func (c *Client) List(ctx context.Context, f Filter) ([]TaskInfo, string, error) {
	if err := checkFilter(&f); err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	ts, next, err := c.store.List(ctx, c.ns, f)
	if err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	return ts, next, nil
}

func checkTexts(what string, texts ...string) error {
	for _, text := range texts {
		if err := task.CheckText(what, text); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidOption, err)
		}
	}
	return nil
}

func checkFilter(f *Filter) error {
	if err := f.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	return nil
}

// History reads all records of a task. Error: ErrNotFound.
func (c *Client) History(ctx context.Context, id TaskID) (store.History, error) {
	h, err := c.store.History(ctx, c.ns, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return store.History{}, c.noTask(id)
	case err != nil:
		return store.History{}, fmt.Errorf("read the history of task %s: %w", id, err)
	}
	return h, nil
}

var jobStates = []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled}

// Jobs reads jobs newest first, and the cursor of the next page; see List.
func (c *Client) Jobs(ctx context.Context, f store.JobFilter) ([]JobInfo, string, error) {
	for _, s := range f.States {
		if !slices.Contains(jobStates, s) {
			return nil, "", fmt.Errorf("list jobs: %w: the job state %q is unknown: use one of %v", ErrInvalidOption, s, jobStates)
		}
	}
	if err := cmp.Or(checkTexts("Name", f.Name), checkTexts("After", f.After)); err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	js, next, err := c.store.Jobs(ctx, c.ns, f)
	if err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	return js, next, nil
}

// Cancel ends a task. A task that is not running is cancelled at once, or its cleanups run first
// (CleanupWhenCancelled). The context of a running task ends with cause ErrCancelled, and it ends
// cancelled unless its handler still returns success. An undo in progress continues. A terminal task
// is ErrState. Force and AbandonUndo end a task that does not end by itself.
func (c *Client) Cancel(ctx context.Context, id TaskID, opts ...OperateOption) error {
	_, err := c.operate(ctx, "cancel task "+id.String(), opts, func(s operateSettings) store.Command {
		return store.CancelTask{Audit: s.audit, Seen: s.seen, Task: id, Force: s.force, Abandon: s.abandonUndo}
	})
	return err
}

// Retry revives a failed or cancelled task with its full number of attempts. Its completed steps stay
// and do not run again, including those whose error was recorded (RecordError); its history stays, and
// attempt numbers continue. A passed deadline no longer applies. Its job continues, and so do the
// tasks that were cancelled because of it (dependency_failed). AddAttempts and AddCost first raise its
// own MaxAttempts and MaxCost.
//
// Retry returns ErrState in these cases:
//
//   - The task is in another state.
//   - A task that it needs failed or was cancelled: retry that one first, or use RetryJob.
//   - Its job's budget is used up: raise it by RetryJob with AddAttempts or AddCost.
//   - A cleanup ran in the task, or in one that would revive with it: the undone steps would count
//     as done. Rerun the task, or use KeepSteps if they still hold.
//   - The task is being undone, or its undo was given up: Cleanups retries the undo.
func (c *Client) Retry(ctx context.Context, id TaskID, opts ...OperateOption) error {
	_, err := c.operate(ctx, "retry task "+id.String(), opts, func(s operateSettings) store.Command {
		cmd := store.RetryTask{Audit: s.audit, Seen: s.seen, Task: id, KeepSteps: s.keepSteps, Cleanup: s.cleanups, Skip: s.skipUndo}
		cmd.AddAttempts, cmd.AddCost = s.added()
		return cmd
	})
	return err
}

// Unblock resumes a blocked task. The input (may be nil) is encoded and passed to the Ask that
// blocked the task, or else to UnblockInput. Errors: ErrInvalidInput for an input that the Ask cannot
// take; ErrState in any other state.
func (c *Client) Unblock(ctx context.Context, id TaskID, input any, opts ...OperateOption) error {
	var raw json.RawMessage
	if input != nil {
		var err error
		if raw, err = json.Marshal(input); err == nil {
			err = c.checkSize("unblock input", len(raw))
		}
		if err == nil {
			err = checkJSON(raw)
		}
		if err != nil {
			return fmt.Errorf("unblock task %s: %w: %w", id, ErrInvalidInput, err)
		}
	}
	var set operateSettings
	for _, o := range opts {
		if o != nil {
			o.applyOperate(&set)
		}
	}
	if err := c.checkAnswer(ctx, id, set.ask, raw); err != nil {
		return err
	}
	_, err := c.operate(ctx, "unblock task "+id.String(), opts, func(s operateSettings) store.Command {
		return store.UnblockTask{Audit: s.audit, Seen: s.seen, Task: id, Input: raw, Ask: s.ask}
	})
	return err
}

// Reschedule changes the due time of a task that waits for a time: its delay, its retry, or the end of
// its sleep. A due task that has not started waits until then. A past instant means now; see RunNow.
// The deadline does not move. Any other task, for example with open needs, is ErrState.
func (c *Client) Reschedule(ctx context.Context, id TaskID, when time.Time, opts ...OperateOption) error {
	if when.IsZero() || !option.ValidTime(when) {
		return fmt.Errorf("reschedule task %s: %w: to %s: want an instant before the year 10000, or RunNow", id, ErrInvalidOption, when)
	}
	return c.reschedule(ctx, id, when, "to "+when.UTC().Format(time.RFC3339), opts)
}

func (c *Client) reschedule(ctx context.Context, id TaskID, when time.Time, what string, opts []OperateOption) error {
	_, err := c.operate(ctx, "reschedule task "+id.String(), opts, func(s operateSettings) store.Command {
		audit := s.audit
		if audit.Reason = what; s.audit.Reason != "" {
			audit.Reason += ": " + s.audit.Reason
		}
		return store.RescheduleTask{Audit: audit, Seen: s.seen, Task: id, At: when}
	})
	return err
}

// RunNow makes a task that waits for a time due now; see Reschedule.
func (c *Client) RunNow(ctx context.Context, id TaskID, opts ...OperateOption) error {
	return c.reschedule(ctx, id, time.Time{}, "to run now", opts)
}

// Delete removes a terminal task and all its records, and frees its idempotency key. ErrState: the
// task is unfinished, belongs to a job, or is a child of a task that has not succeeded. A retry of the
// parent reads the child again: delete the parent first.
func (c *Client) Delete(ctx context.Context, id TaskID, opts ...OperateOption) error {
	_, err := c.operate(ctx, "delete task "+id.String(), opts, func(s operateSettings) store.Command {
		return store.DeleteTask{Audit: s.audit, Seen: s.seen, Task: id}
	})
	return err
}

// PauseQueue stops starting tasks of a queue; running tasks continue. Error: ErrInvalidOption for an
// invalid name.
func (c *Client) PauseQueue(ctx context.Context, queue string, opts ...OperateOption) error {
	return c.operateQueue(ctx, "pause queue", queue, opts, func(s operateSettings) store.Command {
		return store.PauseQueue{Audit: s.audit, Queue: queue}
	})
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, queue string, opts ...OperateOption) error {
	return c.operateQueue(ctx, "resume queue", queue, opts, func(s operateSettings) store.Command {
		return store.ResumeQueue{Audit: s.audit, Queue: queue}
	})
}

// PauseType stops starting tasks of a type, in all queues; running tasks continue. It also stops
// repairs of their inputs, by pausing their queue. Error: ErrInvalidOption for an invalid name.
func (c *Client) PauseType(ctx context.Context, name string, opts ...OperateOption) error {
	return c.operateType(ctx, "pause type", name, opts, func(s operateSettings) store.Command {
		return store.PauseType{Audit: s.audit, Type: name}
	})
}

// ResumeType ends a pause.
func (c *Client) ResumeType(ctx context.Context, name string, opts ...OperateOption) error {
	return c.operateType(ctx, "resume type", name, opts, func(s operateSettings) store.Command {
		return store.ResumeType{Audit: s.audit, Type: name}
	})
}

func (c *Client) operateType(ctx context.Context, what, name string, opts []OperateOption, verb func(operateSettings) store.Command) error {
	if err := task.CheckTypeName(name); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalidOption, err)
	}
	_, err := c.operate(ctx, what+" "+name, opts, verb)
	return err
}

// PauseTask stops starting one task until ResumeTask, whatever it waits for. A running task is paused
// when its attempt has ended. A cleanup after a cancel or deadline ends the pause. A terminal task is
// ErrState.
func (c *Client) PauseTask(ctx context.Context, id TaskID, opts ...OperateOption) error {
	_, err := c.operate(ctx, "pause task "+id.String(), opts, func(s operateSettings) store.Command {
		return store.PauseTask{Audit: s.audit, Seen: s.seen, Task: id}
	})
	return err
}

// ResumeTask ends the pause of a task, which keeps its original due time.
func (c *Client) ResumeTask(ctx context.Context, id TaskID, opts ...OperateOption) error {
	_, err := c.operate(ctx, "resume task "+id.String(), opts, func(s operateSettings) store.Command {
		return store.ResumeTask{Audit: s.audit, Seen: s.seen, Task: id}
	})
	return err
}

func (c *Client) operateQueue(ctx context.Context, what, queue string, opts []OperateOption, verb func(operateSettings) store.Command) error {
	if err := option.CheckKey("queue", queue); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalidOption, err)
	}
	_, err := c.operate(ctx, what+" "+queue, opts, verb)
	return err
}

// checkSize refuses a payload over the inline limit: ErrTooLarge.
func (c *Client) checkSize(what string, size int) error {
	if size > c.limit {
		return fmt.Errorf("%w: the %s is %d bytes, the limit is %d: pass a reference to where the data is kept, or raise InlineLimit in the Config (ClientConfig)", ErrTooLarge, what, size, c.limit)
	}
	return nil
}

// CheckInputSize returns ErrTooLarge if an enqueue would refuse an input of this size in bytes, else
// nil. Programs call it before they check inputs.
func (c *Client) CheckInputSize(taskType string, size int) error {
	return c.checkInput(taskType, size)
}

// checkInput refuses an input that fits neither its row nor the bucket.
func (c *Client) checkInput(taskType string, size int) error {
	if size > c.limit && !c.hasBucket() {
		return fmt.Errorf("%w: the input of %s is %d bytes, the limit is %d: set Bucket in the Config (ClientConfig) to keep it there, pass a reference to where the data is kept, or raise InlineLimit", ErrTooLarge, taskType, size, c.limit)
	}
	return nil
}

func (c *Client) hasBucket() bool { return c.values != nil && c.values.Bucket != nil }
