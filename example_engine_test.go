package weaver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// A job of tasks that need each other's outputs.
func ExampleNewJob() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))

	extract := weaver.Define[string, []int]("example.report.extract.v1")
	sum := weaver.Define[weaver.None, int]("example.report.sum.v1")

	j := weaver.NewJob("nightly", weaver.Budget{MaxAttemptsPerTask: 3})
	rows := j.Add("extract", extract.With("2026-01-31"))
	j.Add("sum", sum.With(weaver.None{}), weaver.Needs(rows))
	h := must(client.Submit(ctx, j))

	work(ctx, db,
		extract.Handler(func(context.Context, string) ([]int, error) { return []int{20, 22}, nil }),
		sum.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
			rows, err := extract.Output(ctx, "extract")
			total := 0
			for _, n := range rows {
				total += n
			}
			return total, err
		}))
	res := must(h.Wait(ctx))
	fmt.Println(res.State)
	for _, t := range res.Completed {
		fmt.Println(t.Name, string(must(client.Get(ctx, t.ID)).Output))
	}
	// Output:
	// succeeded
	// extract [20,22]
	// sum 42
}

// All mistakes of a job are reported at once, before it is stored.
func ExampleClient_Submit() {
	db := memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	j := weaver.NewJob("nightly")
	j.Add("a", Greet.With("Ann"), weaver.Needs(j.Nodes("b")...))
	j.Add("b", Greet.With("Bob"), weaver.Needs(j.Nodes("a", "c")...))
	_, err := client.Submit(context.Background(), j)
	fmt.Println(err)
	// Output:
	// invalid job "nightly": nothing was stored: "b" needs "c", which is not in the job
	// the needs form a cycle: a → b → a
}

// A handler may ask a person and read the answer.
func ExampleBlocked() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	handler := Add.Handler(func(ctx context.Context, _ []int) (int, error) {
		limit, ok, err := weaver.UnblockInput[int](ctx)
		if err != nil || ok {
			return limit, err
		}
		return 0, weaver.Blocked("needs an approved budget")
	})
	h := must(Add.Enqueue(ctx, client, nil))
	work(ctx, db, handler)
	_, err := h.Wait(ctx)
	fmt.Println(errors.Is(err, weaver.ErrBlocked), must(h.Get(ctx)).Error.Message)

	_ = client.Unblock(ctx, h.ID(), 500, weaver.By("ann"))
	work(ctx, db, handler)
	fmt.Println(h.Wait(ctx))
	// Output:
	// true needs an approved budget
	// 500 <nil>
}

// A permanent error fails the task at once.
func ExamplePermanent() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Nobody"))
	work(ctx, db, Greet.Handler(func(_ context.Context, name string) (string, error) {
		return "", weaver.Permanent(fmt.Errorf("%s has no address", name))
	}))
	_, err := h.Wait(ctx)
	var te *weaver.TaskError
	if errors.As(err, &te) {
		fmt.Println(te.State, te.Kind, te.Attempts, te.Message)
	}
	// Output: failed handler_error 1 Nobody has no address
}

// The step's value and the caller's own rows commit together.
func ExampleStepTx() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	must(db.DB().ExecContext(ctx, "CREATE TABLE users (name TEXT)"))
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, name string) (string, error) {
		id, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int64, error) {
			res, err := tx.ExecContext(ctx, "INSERT INTO users (name) VALUES (?)", name)
			if err != nil {
				return 0, err
			}
			return res.LastInsertId()
		})
		return fmt.Sprint(name, " is user ", id), err
	}))
	fmt.Println(h.Wait(ctx))
	// Output: Ann is user 1 <nil>
}

// Tasks enqueued inside StepTx exist only if the step is recorded.
func ExampleInStepTx() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	must(Add.Enqueue(ctx, client, []int{7}))
	work(ctx, db,
		Add.Handler(func(ctx context.Context, ns []int) (int, error) {
			return weaver.StepTx(ctx, "save", func(ctx context.Context, _ *sql.Tx) (int, error) {
				_, err := Greet.Enqueue(ctx, weaver.InStepTx(ctx), fmt.Sprint("user ", ns[0]))
				return ns[0], err
			})
		}),
		Greet.Handler(func(_ context.Context, name string) (string, error) {
			fmt.Println("welcome,", name)
			return "", nil
		}))
	// Output: welcome, user 7
}

// A task that exists exactly if the caller's transaction commits.
func ExampleClient_InTx() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	for _, commit := range []bool{false, true} {
		tx := must(db.DB().BeginTx(ctx, nil))
		must(Greet.Enqueue(ctx, client.InTx(sqlite.Tx(tx)), "Ann"))
		if commit {
			_ = tx.Commit()
			client.Wake()
		} else {
			_ = tx.Rollback()
		}
		tasks, _, _ := client.List(ctx, weaver.Filter{})
		fmt.Println(len(tasks))
	}
	// Output:
	// 0
	// 1
}

// Middleware wraps every handler in its encoded form.
func ExampleConfig_middleware() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	logged := func(next weaver.HandlerFunc) weaver.HandlerFunc {
		return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			out, err := next(ctx, input)
			fmt.Printf("%s(%s) = %s, %v\n", weaver.Current(ctx).Type, input, out, err)
			return out, err
		}
	}
	eng := must(weaver.New(db, weaver.Config{
		Handlers:   []weaver.Handler{Greet.Handler(greet)},
		Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{logged},
	}))
	must(Greet.Enqueue(ctx, eng, "Ann"))
	_ = eng.RunUntilIdle(ctx)
	// Output: example.mail.greet.v1("Ann") = "Hello, Ann!", <nil>
}

// For cron jobs and serverless functions: run all due tasks, then return.
func ExampleEngine_RunUntilIdle() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	eng := must(weaver.New(db, weaver.Config{Handlers: []weaver.Handler{Greet.Handler(greet)}}))
	hs := must(Greet.EnqueueMany(ctx, eng, []string{"Ann", "Bob"}))
	fmt.Println(eng.RunUntilIdle(ctx))
	for _, h := range hs {
		fmt.Println(h.Wait(ctx))
	}
	// Output:
	// <nil>
	// Hello, Ann! <nil>
	// Hello, Bob! <nil>
}

// Lists filter by state, type and labels, newest first.
func ExampleType_List() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		must(Greet.Enqueue(ctx, client, name, weaver.Label("initial", name[:1])))
	}
	filter := weaver.Filter{States: []weaver.State{weaver.StateReady}, Limit: 2}
	for {
		page, next, _ := Greet.List(ctx, client, filter)
		for _, t := range page {
			fmt.Println(t.Input, t.Labels["initial"])
		}
		if next == "" {
			break
		}
		filter.After = next
	}
	// Output:
	// Cid C
	// Bob B
	// Ann A
}

// Operators give their name and a reason, which the task's history keeps.
func ExampleClient_Cancel() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann"))
	_ = client.Cancel(ctx, h.ID(), weaver.By("ops"), weaver.Reason("sent by post"))
	_ = client.Retry(ctx, h.ID(), weaver.By("ann"), weaver.Reason("the post is on strike"))
	work(ctx, db, Greet.Handler(greet))
	fmt.Println(h.Wait(ctx))
	for _, entry := range must(client.History(ctx, h.ID())).Audit {
		fmt.Println(entry.Verb, entry.Actor, entry.Reason)
	}
	// Output:
	// Hello, Ann! <nil>
	// cancel ops sent by post
	// retry ann the post is on strike
}

// Every log line of a handler names its task and step.
func ExampleLog() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	keep := []string{slog.LevelKey, slog.MessageKey, "task_type", "attempt_no", "step", "count"}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if !slices.Contains(keep, a.Key) {
			return slog.Attr{} // times and IDs vary
		}
		return a
	}}))
	eng := must(weaver.New(db, weaver.Config{Logger: logger, Handlers: []weaver.Handler{
		Greet.Handler(func(ctx context.Context, name string) (string, error) {
			return weaver.Step(ctx, "fetch", func(ctx context.Context) (string, error) {
				weaver.Log(ctx).Info("fetched", "count", 3)
				return name, nil
			})
		}),
	}}))
	must(Greet.Enqueue(ctx, eng, "Ann"))
	_ = eng.RunUntilIdle(ctx)
	// Output: level=INFO msg=fetched task_type=example.mail.greet.v1 attempt_no=1 step=fetch count=3
}

// Reported progress is readable while the handler runs and afterwards.
func ExampleProgress() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, name string) (string, error) {
		return name, weaver.Progress(ctx, 10, 100, "fetched")
	}))
	p := must(h.Get(ctx)).Progress
	fmt.Printf("%g of %g: %s\n", p.Current, p.Total, p.Message)
	// Output: 10 of 100: fetched
}

// An invalid output is a failure even if the handler returned no error.
func ExampleVerifySuccess() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	once := weaver.Define[[]int, int]("example.math.once.v1", weaver.NoRetry())
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(once.Enqueue(ctx, client, []int{1}))
	work(ctx, db, once.Handler(
		func(context.Context, []int) (int, error) { return -1, nil },
		weaver.VerifySuccess(func(_ context.Context, sum int) error {
			if sum < 0 {
				return fmt.Errorf("a sum of %d", sum)
			}
			return nil
		})))
	_, err := h.Wait(ctx)
	var te *weaver.TaskError
	fmt.Println(errors.As(err, &te), te.Message)
	// Output: true verify the output: a sum of -1
}

// Number and duration of attempts by outcome.
func ExampleClient_Stats() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	mail := weaver.Define[string, weaver.None]("example.stats.mail.v1", weaver.MaxAttempts(1))
	for _, to := range []string{"ann", "bob", ""} {
		must(mail.Enqueue(ctx, client, to))
	}
	work(ctx, db, mail.Handler(func(_ context.Context, to string) (weaver.None, error) {
		if to == "" {
			return weaver.None{}, errors.New("no address")
		}
		return weaver.None{}, nil
	}))

	got := must(client.Stats(ctx, ops.StatsRequest{By: []store.StatBy{store.ByType, store.ByOutcome}}))
	for _, r := range got.Rows {
		fmt.Println(r.Type, r.Outcome, r.Count)
	}
	// Output:
	// example.stats.mail.v1 failure 1
	// example.stats.mail.v1 success 2
}
