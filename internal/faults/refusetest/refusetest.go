// Package refusetest runs tasks on a store that permanently rejects one of their writes,
// for each write path of an engine. Only tests use it.
//
// The task must end within 10 s with the store's error on record. Tasks with writes in
// the same batches must end as usual.
package refusetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Poison is contained in the rejected writes.
const Poison = "poison"

// Said is contained in the error of each rejected write.
const Said = "weaver_refused"

// Write selects the rejected rows of a path: those whose column contains [Poison].
type Write struct {
	Table, Column string

	// Record and Finish report whether a store without tables rejects a write of the
	// path.
	Record func(*store.Record) bool
	Finish func(*store.Finish) bool
}

// path is a write path of an engine.
type path struct {
	name  string
	write Write
	run   func(ctx context.Context, e weaver.Enqueuer) error
	out   string // the handler's output
	logs  bool   // the handler's logs are stored
	job   bool   // the task belongs to a job
}

var (
	parent = weaver.Define[bool, string]("acme.refused.parent.v1", weaver.MaxAttempts(1))
	child  = weaver.Define[int, int]("acme.refused.child.v1")
	await  = weaver.DefineSignal[int]("go")
)

// late is a number of children that exceeds one transaction of a store.
const late = 501

func labelled(n *task.New) bool { return n.Labels["of"] == Poison }

func ofStep(name string) Write {
	return Write{Table: "weaver_steps", Column: "name", Record: func(r *store.Record) bool { return r.Step != nil && r.Step.Name == name }}
}

func childOf(tasks []task.New) bool {
	for i := range tasks {
		if labelled(&tasks[i]) {
			return true
		}
	}
	return false
}

var children = Write{
	Table: "weaver_task_labels", Column: "value",
	Record: func(r *store.Record) bool { return childOf(r.Tasks) },
	Finish: func(f *store.Finish) bool { return childOf(f.Children) },
}

var paths = []path{
	{name: "step", write: ofStep(Poison), run: func(ctx context.Context, _ weaver.Enqueuer) error {
		_, err := weaver.Step(ctx, Poison, func(context.Context) (int, error) { return 1, nil })
		return err
	}},
	{name: "sleep", write: ofStep(Poison), run: func(ctx context.Context, _ weaver.Enqueuer) error {
		return weaver.Sleep(ctx, Poison, time.Hour)
	}},
	{name: "wait for a signal", write: ofStep(Poison), run: func(ctx context.Context, _ weaver.Enqueuer) error {
		_, _, err := await.Wait(ctx, Poison, 0)
		return err
	}},
	{name: "call", write: children, run: func(ctx context.Context, _ weaver.Enqueuer) error {
		_, err := weaver.Call(ctx, "sub", child, 1, weaver.Label("of", Poison))
		return err
	}},
	{name: "start", write: children, run: func(ctx context.Context, _ weaver.Enqueuer) error {
		_, err := weaver.Start(ctx, "sub", child, 1, weaver.Label("of", Poison))
		return err
	}},
	{
		name: "checkpoint",
		write: Write{Table: "weaver_checkpoints", Column: "name", Record: func(r *store.Record) bool {
			return r.Checkpoint != nil && r.Checkpoint.Name == Poison
		}},
		run: func(ctx context.Context, _ weaver.Enqueuer) error { return weaver.Checkpoint(ctx, Poison, 1) },
	},
	{
		name: "failed try",
		write: Write{Table: "weaver_steps", Column: "error_json", Record: func(r *store.Record) bool {
			return r.Step != nil && r.Step.Error != nil && strings.Contains(r.Step.Error.Message, Poison)
		}},
		run: func(ctx context.Context, _ weaver.Enqueuer) error {
			_, err := weaver.Step(ctx, "one", func(context.Context) (int, error) { return 0, &said{} })
			return err
		},
	},
	{
		name: "undo",
		write: Write{Table: "weaver_steps", Column: "error_json", Record: func(r *store.Record) bool {
			return r.Step != nil && r.Step.Error != nil && strings.Contains(r.Step.Error.Message, Poison)
		}},
		run: func(ctx context.Context, _ weaver.Enqueuer) error {
			_, err := weaver.Step(ctx, "pay", func(context.Context) (int, error) { return 1, nil },
				weaver.Undo(func(context.Context, weaver.Undoing[int]) error { return &said{} }))
			return cmp.Or(err, weaver.Permanent(errors.New("no")))
		},
	},
	{
		name:  "children of a job that are stored later",
		write: children,
		job:   true,
		run:   decomposeLate,
	},
	{
		name: "progress",
		write: Write{Table: "weaver_tasks", Column: "progress", Record: func(r *store.Record) bool {
			return r.Progress != nil && r.Progress.Message == Poison
		}, Finish: func(f *store.Finish) bool { return f.Progress != nil && f.Progress.Message == Poison }},
		run: func(ctx context.Context, _ weaver.Enqueuer) error {
			return weaver.Progress(ctx, 1, 2, Poison)
		},
	},
	{
		name: "stored logs",
		write: Write{Table: "weaver_logs", Column: "body", Record: func(r *store.Record) bool { return withEvents(r.Events) }, Finish: func(f *store.Finish) bool {
			return withEvents(f.Events)
		}},
		run: func(ctx context.Context, _ weaver.Enqueuer) error {
			weaver.Log(ctx).Info(Poison)
			return nil
		},
		logs: true,
	},
	{name: "output", write: Write{Table: "weaver_tasks", Column: "output", Finish: func(f *store.Finish) bool {
		return strings.Contains(string(f.Output), Poison)
	}}, run: func(context.Context, weaver.Enqueuer) error { return nil }, out: Poison},
	{name: "error of the handler", write: Write{Table: "weaver_tasks", Column: "last_error_json", Finish: func(f *store.Finish) bool {
		return f.Error != nil && strings.Contains(f.Error.Message, Poison)
	}}, run: func(context.Context, weaver.Enqueuer) error { return &said{} }},
	{name: "decompose", write: children, run: func(context.Context, weaver.Enqueuer) error {
		return weaver.Decompose(weaver.JoinRerun, child.With(1, weaver.Label("of", Poison)), child.With(2))
	}},
	{name: "children that are stored later", write: children, run: decomposeLate},
	{name: "enqueue in a handler", write: children, run: func(ctx context.Context, e weaver.Enqueuer) error {
		_, err := child.Enqueue(ctx, e, 1, weaver.Label("of", Poison))
		return err
	}},
}

// decomposeLate requests more children than one transaction stores; the last of them is
// rejected.
func decomposeLate(context.Context, weaver.Enqueuer) error {
	drafts := make([]weaver.Draft, late)
	for i := range drafts {
		drafts[i] = child.With(i, weaver.Delay(time.Hour))
	}
	drafts[late-1] = child.With(late, weaver.Label("of", Poison))
	return weaver.Decompose(weaver.JoinRerun, drafts...)
}

func withEvents(rows []store.EventRow) bool {
	for i := range rows {
		if strings.Contains(string(rows[i].Body), Poison) {
			return true
		}
	}
	return false
}

type said struct{}

// Error implements error.
func (*said) Error() string { return "the handler says " + Poison }

// StepTx runs a StepTx with transactions of type Tx. The function is nil or writes in the
// transaction.
func StepTx[Tx any](ctx context.Context, name string, fn func(ctx context.Context, tx Tx) error) error {
	_, err := weaver.StepTx(ctx, name, func(ctx context.Context, tx Tx) (int, error) {
		if fn == nil {
			return 1, nil
		}
		return 1, fn(ctx, tx)
	})
	return err
}

// Run runs each path on a store of its own. open returns a store that rejects the writes
// of a path. stepTx runs a step of a name in a transaction. broken, if it is not nil,
// runs a step whose commit fails because of its function's write.
func Run(t *testing.T, open func(t *testing.T, w Write) store.Store, stepTx, broken func(ctx context.Context, name string) error) {
	all := append(slices.Clone(paths), path{name: "step in a transaction", write: ofStep(Poison), run: func(ctx context.Context, _ weaver.Enqueuer) error {
		return stepTx(ctx, Poison)
	}})
	if broken != nil {
		all = append(all, path{name: "commit of a step's transaction", write: ofStep("none"), run: func(ctx context.Context, _ weaver.Enqueuer) error {
			return broken(ctx, "one")
		}})
	}
	for i := range all {
		p := &all[i]
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.test(t, open(t, p.write))
		})
	}
}

// start stores the task of the path.
func (p *path) start(ctx context.Context, t *testing.T, eng *weaver.Engine) weaver.TaskID {
	t.Helper()
	if !p.job {
		h, err := parent.Enqueue(ctx, eng, true)
		if err != nil {
			t.Fatal(err)
		}
		return h.ID()
	}
	j := weaver.NewJob("refused")
	j.Add("bad", parent.With(true))
	h, err := eng.Submit(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	list, err := eng.JobTasks(ctx, h.ID())
	if err != nil || len(list) == 0 {
		t.Fatalf("the tasks of the job: %v, %v", list, err)
	}
	return list[0].ID
}

func (p *path) test(t *testing.T, s store.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var plugins []weaver.Plugin
	if p.logs {
		plugins = append(plugins, weaver.PersistLogs())
	}
	var eng *weaver.Engine
	eng, err := weaver.New(s, weaver.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Plugins: plugins,
		Handlers: []weaver.Handler{
			child.Handler(func(_ context.Context, n int) (int, error) { return n, nil }),
			parent.Handler(func(ctx context.Context, bad bool) (string, error) {
				if !bad {
					return weaver.Step(ctx, "one", func(context.Context) (string, error) { return "1", nil })
				}
				return p.out, p.run(ctx, eng)
			}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(run) }()
	defer func() {
		stop()
		if err := <-ran; err != nil {
			t.Errorf("the engine ended: %v", err)
		}
	}()
	bad := p.start(ctx, t, eng)
	for range 3 {
		good, err := parent.Enqueue(ctx, eng, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := good.Wait(ctx); err != nil {
			t.Errorf("a task beside the refused one: %v", err)
		}
	}
	_, err = eng.Wait(ctx, bad)
	got, e := eng.Get(t.Context(), bad)
	if e != nil {
		t.Fatal(e)
	}
	if got.State != weaver.StateFailed && got.State != weaver.StateBlocked || got.Error == nil || !strings.Contains(got.Error.Message, Said) {
		t.Errorf("the task is %s with the error %v (%v): want it to end with the error of the store", got.State, got.Error, err)
	}
	snap, e := s.Snapshot(t.Context(), weaver.DefaultNamespace)
	if e != nil {
		t.Fatal(e)
	}
	for _, v := range store.Check(snap) {
		t.Error(v)
	}
}
