package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Tasks that were enqueued before the input changed go through Upcast.
func ExampleUpcast() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	type name struct{ First, Last string }
	old := weaver.Define[string, string]("example.mail.letter.v1")
	current := weaver.Define[name, string]("example.mail.letter.v1", weaver.SchemaVersion(2))
	h := must(old.Enqueue(ctx, must(weaver.NewClient(db, weaver.ClientConfig{})), "Ada Lovelace"))
	work(ctx, db, current.Handler(
		func(_ context.Context, n name) (string, error) { return "Dear Ms " + n.Last, nil },
		weaver.Upcast(1, func(full string) (name, error) {
			first, last, _ := strings.Cut(full, " ")
			return name{first, last}, nil
		})))
	fmt.Println(h.Wait(ctx))
	// Output: Dear Ms Lovelace <nil>
}

// Any process can wait for a task by its ID.
func ExampleType_Wait() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	id := must(Greet.Enqueue(ctx, client, "Ann")).ID().String() // say, in a web request
	work(ctx, db, Greet.Handler(greet))
	fmt.Println(Greet.Wait(ctx, client, must(task.ParseID(id))))
	// Output: Hello, Ann! <nil>
}

// RunJob runs a job to its end in a program without other work. The key lets a restarted program
// continue its job.
func ExampleEngine_RunJob() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	eng := must(weaver.New(db, weaver.Config{Handlers: []weaver.Handler{
		Greet.Handler(greet),
		Add.Handler(func(_ context.Context, n []int) (int, error) { return n[0] + n[1], nil }),
	}}))
	j := weaver.NewJob("nightly")
	sum := j.Add("sum", Add.With([]int{20, 22}))
	j.Add("greet", Greet.With("Ann"), weaver.Needs(sum))
	res, err := eng.RunJob(ctx, j, weaver.IdempotencyKey("2026-11-22"))
	fmt.Println(res.State, err)
	fmt.Println(Add.JobOutput(ctx, eng, res.ID, "sum"))
	// Output:
	// succeeded <nil>
	// 42 <nil>
}

// A task that waits for a time starts now, or at another time.
func ExampleClient_RunNow() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann", weaver.Delay(24*time.Hour)))
	_ = client.RunNow(ctx, h.ID(), weaver.By("ops"), weaver.Reason("she is waiting"))
	work(ctx, db, Greet.Handler(greet))
	fmt.Println(h.Wait(ctx))
	// Output: Hello, Ann! <nil>
}

// A Decider uses the code of a failure, not its text.
func ExampleWithCode() {
	refused := weaver.WithCode("card_refused", errors.New("the bank says no"))
	fmt.Println(weaver.ErrorCode(fmt.Errorf("charge: %w", refused)))
	var cards decide.Decider = decide.Chain(decide.Func(func(in decide.Input) decide.Decision {
		if in.Error.Code == "card_refused" {
			return decide.Decision{Kind: task.DecideBlock, Reason: task.Reason{Policy: "cards", Text: "the customer gives another card"}}
		}
		return decide.Decision{} // no decision
	}))
	fmt.Println(cards.Decide(decide.Input{Error: task.Error{Code: "card_refused"}}).Kind)
	// Output:
	// card_refused
	// block
}

// A handler submits a job once for its task, however often it runs.
func ExampleStartJob() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	report := weaver.Define[weaver.None, weaver.None]("example.report.month.v1")
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	must(report.Enqueue(ctx, client, weaver.None{}))
	work(ctx, db, Greet.Handler(greet), report.Handler(func(ctx context.Context, _ weaver.None) (weaver.None, error) {
		j := weaver.NewJob("letters")
		j.Add("ann", Greet.With("Ann"))
		j.Add("bob", Greet.With("Bob"))
		_, err := weaver.StartJob(ctx, "letters", j)
		return weaver.None{}, err
	}))
	jobs, _, _ := client.Jobs(ctx, store.JobFilter{Name: "letters"})
	fmt.Println(len(jobs), jobs[0].State)
	// Output: 1 succeeded
}
