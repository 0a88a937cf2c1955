package weaver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
)

// Questions to a model have a cost. The job may spend 100 micro-units in total: the second answer
// exceeds that, and unstarted tasks end. An operator raises the budget.
func ExampleSpend() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	ask := weaver.Define[string, string]("acme.model.ask.v1", weaver.MaxCost(80))
	handler := ask.Handler(func(ctx context.Context, question string) (string, error) {
		answer, err := weaver.Step(ctx, "answer", func(ctx context.Context) (string, error) {
			return "yes, " + question, weaver.Spend(ctx, 60)
		})
		if err != nil {
			return "", err
		}
		return answer, weaver.Do(ctx, "check", func(context.Context) error { return nil })
	})
	job := weaver.NewJob("questions", weaver.Budget{MaxCost: 100, MaxTotalAttempts: 20})
	first := job.Add("first", ask.With("red"))
	second := job.Add("second", ask.With("green"), weaver.Needs(first))
	job.Add("third", ask.With("blue"), weaver.Needs(second))

	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(client.Submit(ctx, job))
	show := func() {
		work(ctx, db, handler)
		st := must(client.JobStatus(ctx, h.ID()))
		fmt.Printf("%s, spent %d of %d\n", st.State, st.Cost, st.Budget.MaxCost)
		for _, t := range must(client.JobTasks(ctx, h.ID())) {
			fmt.Println(t.Node, t.State)
		}
	}
	show()
	_, err := client.RetryJob(ctx, h.ID())
	fmt.Println(errors.Is(err, weaver.ErrState))
	must(client.RetryJob(ctx, h.ID(), weaver.AddCost(100)))
	show()
	// Output:
	// failed, spent 120 of 100
	// first succeeded
	// second failed
	// third cancelled
	// true
	// succeeded, spent 180 of 200
	// first succeeded
	// second succeeded
	// third succeeded
}
