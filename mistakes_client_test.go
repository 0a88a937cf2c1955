package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestVerbsThatTheStateForbids(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.verbs.run.v1")
	verbs := map[string]func(context.Context, *weaver.Client, weaver.TaskID) error{
		"retry":   func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Retry(ctx, id) },
		"cancel":  func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Cancel(ctx, id) },
		"unblock": func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Unblock(ctx, id, nil) },
		"delete":  func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Delete(ctx, id) },
	}
	forbidden := map[weaver.State][]string{
		weaver.StateRunning:   {"retry", "unblock", "delete"},
		weaver.StateSucceeded: {"retry", "cancel", "unblock"},
		weaver.StatePending:   {"retry", "unblock", "delete"},
		weaver.StateBlocked:   {"retry", "delete"},
	}
	scene(t, "each says which state the task is in", func(w *world) {
		g := newGate()
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			switch in {
			case "running":
				return in, g.pass(ctx)
			case "blocked":
				return in, weaver.Blocked("a person, please")
			}
			return in, nil
		}))
		tasks := map[weaver.State]weaver.TaskID{
			weaver.StateRunning: enqueue(w, typ, "running").ID(),
			weaver.StatePending: enqueue(w, typ, "pending", weaver.Delay(time.Hour)).ID(),
		}
		<-g.in
		done, stuck := enqueue(w, typ, "done"), enqueue(w, typ, "blocked")
		result(w, done)
		blocks(w, stuck)
		tasks[weaver.StateSucceeded], tasks[weaver.StateBlocked] = done.ID(), stuck.ID()
		for state, names := range forbidden {
			for _, name := range names {
				err := verbs[name](w.Context(), w.client, tasks[state])
				wantError(w, err, weaver.ErrState, name+" task "+tasks[state].String(), string(state))
				w.wantState(tasks[state], state)
			}
		}
		g.open()
	})
	scene(t, "and what does not exist is not found", func(w *world) {
		absent := weaver.TaskID{9}
		for name, verb := range verbs {
			wantError(w, verb(w.Context(), w.client, absent), weaver.ErrNotFound, name+" task "+absent.String())
		}
		_, err := w.client.CancelJob(w.Context(), absent)
		wantError(w, err, weaver.ErrNotFound, "cancel job "+absent.String())
		_, err = w.client.JobStatus(w.Context(), absent)
		wantError(w, err, weaver.ErrNotFound, "job "+absent.String(), `namespace "default"`)
		_, err = w.client.History(w.Context(), absent)
		wantError(w, err, weaver.ErrNotFound, absent.String())
		_, err = w.client.Wait(w.Context(), absent)
		wantError(w, err, weaver.ErrNotFound, absent.String())
	})
}

func TestBadReads(t *testing.T) {
	text := weaver.Define[string, string]("mistakes.read.text.v1")
	number := weaver.Define[int, int]("mistakes.read.number.v1")
	inWorld(t, func(w *world) {
		h := enqueue(w, text, "x")

		_, _, err := w.client.List(w.Context(), weaver.Filter{After: "not-a-cursor"})
		wantError(w, err, weaver.ErrBadCursor, "list tasks")
		_, _, err = w.client.Jobs(w.Context(), weaver.JobFilter{After: "not-a-cursor"})
		wantError(w, err, weaver.ErrBadCursor, "list jobs")
		_, _, err = w.client.List(w.Context(), weaver.Filter{States: []weaver.State{"completed"}})
		wantError(w, err, nil, `"completed" is no state`, "succeeded", "blocked")
		_, err = number.Get(w.Context(), w.client, h.ID())
		wantError(w, err, weaver.ErrWrongType, h.ID().String(), text.Name(), number.Name())
		_, err = weaver.ParseID("123")
		wantError(w, err, nil, `"123"`, "26 characters")

		// The input was stored by a program whose type had another shape.
		old, err := w.client.EnqueueTasks(w.Context(), weaver.NewDraft(number.Name(), []byte(`"seven"`)))
		w.must(err)
		_, err = number.Get(w.Context(), w.client, old[0].ID)
		wantError(w, err, nil, "input", old[0].ID.String(), "no longer decodes")

		// It does not keep the others from being listed.
		good := enqueue(w, number, 8)
		list, next, err := number.List(w.Context(), w.client, weaver.Filter{})
		w.must(err)
		if len(list) != 2 || next != "" || list[0].ID != good.ID() || list[0].Input != 8 || list[0].DecodeError != nil {
			w.Errorf("listed %+v and %q, want the good one first", list, next)
		}
		wantError(w, list[1].DecodeError, nil, "input", old[0].ID.String(), "no longer decodes")
		equal(w, "what was stored", string(list[1].TaskInfo.Input), `"seven"`)
	})
}

func TestBadEnqueues(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.enqueue.run.v1")
	inWorld(t, func(w *world) {
		_, err := typ.EnqueueMany(w.Context(), w.client, []string{"a", "b"}, weaver.IdempotencyKey("evt-1"))
		wantError(w, err, weaver.ErrInvalidOption, "IdempotencyKey in EnqueueMany", typ.Name(), "use EnqueueTasks")

		for name, opt := range map[string]weaver.EnqueueOption{
			"Delay(-1s)":            weaver.Delay(-time.Second),
			"IdempotencyKey":        weaver.IdempotencyKey(""),
			`ConcurrencyKey("k"`:    weaver.ConcurrencyKey("k", 0),
			"Priority(0)":           weaver.Priority(0),
			"Queue: the name is":    weaver.Queue(""),
			"Metadata key contains": weaver.Metadata("key", "\x00"),
			"is not UTF-8":          weaver.Label("key", "\xff"),
		} {
			// Metadata names the key of the value.
			if name == "Metadata key contains" {
				name = "Metadata key"
			}
			_, err := typ.Enqueue(w.Context(), w.client, "x", opt)
			wantError(w, err, weaver.ErrInvalidOption, typ.Name(), name)
		}
		_, err = w.client.EnqueueTasks(w.Context(), weaver.Draft{})
		wantError(w, err, weaver.ErrInvalidInput, "the draft is empty", "With")
		_, err = w.client.EnqueueTasks(w.Context(), weaver.NewDraft("sync-users", []byte(`1`)))
		wantError(w, err, weaver.ErrInvalidInput, `"sync-users"`, "acme.billing.charge.v1")

		list, _, err := w.client.List(w.Context(), weaver.Filter{})
		w.must(err)
		equal(w, "stored tasks", len(list), 0)
	})
}

func TestBadJobs(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.jobs.run.v1")
	charge := weaver.Define[order, order]("mistakes.jobs.charge.v1")
	for name, c := range map[string]struct {
		job      func() *weaver.Job
		sentinel error
		words    []string
	}{
		"an empty job": {
			func() *weaver.Job { return weaver.NewJob("nightly") },
			weaver.ErrInvalidJob,
			[]string{`"nightly"`, "the job is empty", "Add at least one task"},
		},
		"a cycle": {func() *weaver.Job {
			j := weaver.NewJob("nightly")
			j.Add("a", typ.With(""), weaver.NeedsNamed("c"))
			j.Add("b", typ.With(""), weaver.NeedsNamed("a"))
			j.Add("c", typ.With(""), weaver.NeedsNamed("b"))
			return j
		}, weaver.ErrInvalidJob, []string{"cycle", "a → c → b → a"}},
		"a task that needs itself": {func() *weaver.Job {
			j := weaver.NewJob("nightly")
			j.Add("a", typ.With(""), weaver.NeedsNamed("a"))
			return j
		}, weaver.ErrInvalidJob, []string{"a → a"}},
		"IfFailed": {func() *weaver.Job {
			j := weaver.NewJob("nightly")
			j.Add("alert", typ.With(""), weaver.IfFailed(j.Add("a", typ.With(""))))
			return j
		}, weaver.ErrNotBuilt, []string{`"alert"`, "IfFailed", "not built yet"}},
		"IfDone": {func() *weaver.Job {
			j := weaver.NewJob("nightly")
			j.Add("clean", typ.With(""), weaver.IfDone(j.Add("a", typ.With(""))))
			return j
		}, weaver.ErrNotBuilt, []string{`"clean"`, "IfDone", "not built yet"}},
		"budgets to come": {func() *weaver.Job {
			j := weaver.NewJob("nightly", weaver.Budget{MaxTotalAttempts: 1, MaxCost: 1, MaxRepairs: 1, MaxNoProgress: 1})
			j.Add("a", typ.With(""))
			return j
		}, weaver.ErrNotBuilt, []string{"MaxTotalAttempts", "MaxCost", "MaxRepairs", "MaxNoProgress", "not built yet"}},
		"a negative budget": {func() *weaver.Job {
			j := weaver.NewJob("nightly", weaver.Budget{MaxDuration: -1})
			j.Add("a", typ.With(""))
			return j
		}, weaver.ErrInvalidOption, []string{"budget", "negative"}},
		"everything at once": {func() *weaver.Job {
			j, other := weaver.NewJob(""), weaver.NewJob("other")
			j.Add("a", typ.With("", weaver.IdempotencyKey("k")))
			j.Add("a", charge.With(order{Total: -1}), weaver.Needs(other.Add("x", typ.With("")), nil))
			j.Add("b", typ.With(""), weaver.NeedsNamed("ghost"))
			return j
		}, weaver.ErrInvalidJob, []string{
			"NewJob: the name is empty", `two tasks are named "a"`, "IdempotencyKey", "Total is -1",
			`"a" needs "x", which belongs to another job`, `"a" needs a nil node`, `"b" needs "ghost", which is not in the job`, "nothing was stored",
		}},
	} {
		scene(t, name, func(w *world) {
			_, err := w.client.Submit(w.Context(), c.job())
			wantError(w, err, weaver.ErrInvalidJob)
			wantError(w, err, c.sentinel, c.words...)
			list, _, err := w.client.List(w.Context(), weaver.Filter{})
			w.must(err)
			jobs, _, err := w.client.Jobs(w.Context(), weaver.JobFilter{})
			w.must(err)
			equal(w, "stored", len(list)+len(jobs), 0)
		})
	}
}

// foreignTx is a transaction of a database that is not the store's.
type foreignTx struct{}

// Driver implements store.Tx.
func (foreignTx) Driver() string { return "postgres" }

// Handle implements store.Tx.
func (foreignTx) Handle() any { return nil }

func TestTransactionsInTheWrongPlace(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.tx.run.v1")

	scene(t, "InTx with another driver's transaction", func(w *world) {
		_, err := typ.Enqueue(w.Context(), w.client.InTx(foreignTx{}), "x")
		wantError(w, err, weaver.ErrForeignTx, "postgres")
		_, err = typ.Enqueue(w.Context(), w.client.InTx(nil), "x")
		wantError(w, err, weaver.ErrForeignTx, "nil")
	})

	scene(t, "a client inside StepTx", func(w *world) {
		var errs []error
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.StepTx(ctx, "save", func(ctx context.Context, _ *sql.Tx) (string, error) {
				_, err := typ.Enqueue(ctx, w.client, "child")
				errs = append(errs, err)
				_, err = w.client.Submit(ctx, weaver.NewJob("x"))
				errs = append(errs, err, w.client.Cancel(ctx, weaver.TaskID{1}))
				return in, nil
			})
		}))
		equal(w, "output", result(w, enqueue(w, typ, "x")), "x")
		for _, err := range errs {
			wantError(w, err, weaver.ErrNestedTx, "weaver.InStepTx(ctx)")
		}
		equal(w, "calls refused", len(errs), 3)
	})

	scene(t, "StepTx with another type of transaction", func(w *world) {
		type pgxTx interface {
			Begin(context.Context) (any, error)
		}
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			out, err := weaver.StepTx(ctx, "save", func(context.Context, pgxTx) (string, error) { return in, nil })
			if !errors.Is(err, weaver.ErrTxType) {
				w.Errorf("StepTx returned %v", err)
			}
			return out, err
		}))
		te := failure(w, enqueue(w, typ, "x"))
		wantError(w, te, nil, `step "save"`, "pgxTx", "*sql.Tx")
		equal(w, "attempts", te.Attempts, 1)
	})

	scene(t, "StepTx on a store without", func(w *world) {
		w.runConfig(struct{ store.Store }{w.store}, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return in, nil })
		})}})
		h := enqueue(w, typ, "x")
		w.client.Wake()
		te := failure(w, h)
		wantError(w, te, nil, `step "save"`, "cannot run steps inside its transactions")
		equal(w, "kind", te.Kind, task.KindHandler)
	})
}
