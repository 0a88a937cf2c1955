package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// workWith runs due tasks with a Decider and a Router.
func workWith(ctx context.Context, db store.Store, cfg weaver.Config) {
	eng, err := weaver.New(db, cfg)
	if err == nil {
		err = eng.RunUntilIdle(ctx)
	}
	if err != nil {
		panic(err)
	}
}

// A Decider splits a task that is too large into pieces proposed by a model. The handler asks the
// model in a Step, and the answer travels in the error: the Decider does no I/O, so the same failure
// always leads to the same decision.
func ExampleDecider_decompose() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	write := weaver.Define[string, string]("acme.report.write.v1")
	// The script replaces a model: it knows the pieces of a topic.
	model := func(topic string) []string {
		return map[string][]string{"everything": {"costs", "sales"}}[topic]
	}
	type proposal struct{ Pieces []string }
	handler := write.Handler(func(ctx context.Context, topic string) (string, error) {
		children, err := weaver.Children(ctx)
		if err != nil {
			return "", err
		}
		if len(children) > 0 {
			return fmt.Sprintf("%s, in %d parts", topic, len(children)), nil
		}
		pieces, err := weaver.Step(ctx, "ask the model", func(context.Context) ([]string, error) { return model(topic), nil })
		if err != nil {
			return "", err
		}
		if len(pieces) > 0 {
			raw, _ := json.Marshal(proposal{pieces})
			return "", weaver.WithCode("too_large", errors.New(string(raw)))
		}
		fmt.Println("write", topic)
		return topic, nil
	})
	splitter := decide.Func(func(in decide.Input) decide.Decision {
		var p proposal
		if in.Error.Code != "too_large" || json.Unmarshal([]byte(in.Error.Message), &p) != nil {
			return decide.Decision{} // no decision
		}
		dec := decide.Decision{Kind: task.DecideDecompose, Reason: task.Reason{
			Policy: "model", Version: 1, Text: fmt.Sprintf("it is too large: split into %d", len(p.Pieces)),
			Evidence: map[string]any{"pieces": p.Pieces},
		}}
		for _, piece := range p.Pieces {
			draft, err := write.With(piece, weaver.Label("part", "yes")).Plain()
			if err != nil {
				return decide.Decision{}
			}
			dec.Children = append(dec.Children, draft)
		}
		return dec
	})
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(write.Enqueue(ctx, client, "everything"))
	workWith(ctx, db, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{handler}, Decider: splitter})
	fmt.Println(h.Wait(ctx))
	d := must(client.History(ctx, h.ID())).Decisions[0]
	fmt.Println(d.Kind, len(d.ChildIDs), d.Reason.Text)
	// Output:
	// write costs
	// write sales
	// everything, in 2 parts <nil>
	// decompose 2 it is too large: split into 2
}

// A Decider with a cost limit: each attempt of these tasks has a price, and the Decider gives a task
// up before the next attempt would exceed the limit. The decision keeps the amounts as evidence.
func ExampleDecider_cost() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	ask := weaver.Define[string, string]("acme.model.ask.v1", weaver.MaxAttempts(100), weaver.Backoff(time.Microsecond))
	byCost := decide.Func(func(in decide.Input) decide.Decision {
		price, err := strconv.Atoi(in.Task.Metadata["price"])
		limit, err2 := strconv.Atoi(in.Task.Metadata["max_cost"])
		if err != nil || err2 != nil {
			return decide.Decision{}
		}
		spent := price * (in.Task.AttemptCount + 1)
		if spent+price <= limit {
			return decide.Decision{}
		}
		return decide.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{
			Policy: "cost", Version: 1, Text: fmt.Sprintf("%d are spent of %d, and the next attempt costs %d", spent, limit, price),
			Evidence: map[string]any{"spent": spent, "max_cost": limit, "price": price},
		}}
	})
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(ask.Enqueue(ctx, client, "?", weaver.Metadata("price", "300"), weaver.Metadata("max_cost", "1000")))
	handler := ask.Handler(func(context.Context, string) (string, error) { return "", errors.New("no answer") })
	for !must(client.Get(ctx, h.ID())).State.Terminal() {
		workWith(ctx, db, weaver.Config{Handlers: []weaver.Handler{handler}, Decider: decide.Chain(byCost)})
	}
	t := must(client.History(ctx, h.ID()))
	fmt.Println(t.Task.State, t.Task.AttemptCount)
	fmt.Println(t.Decisions[len(t.Decisions)-1].Reason.Text)
	// Output:
	// failed 3
	// 900 are spent of 1000, and the next attempt costs 300
}

// A task type has two handlers, and the tasks of one tenant go to the new one.
func ExampleRouter() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	ann := must(Greet.Enqueue(ctx, client, "Ann"))
	bob := must(Greet.Enqueue(ctx, client, "Bob", weaver.Metadata("tenant", "t1")))
	workWith(ctx, db, weaver.Config{
		Router: decide.Rules{{Type: Greet.Name(), Metadata: map[string]string{"tenant": "t1"}, Handler: "canary"}},
		Handlers: []weaver.Handler{
			Greet.Handler(greet),
			Greet.Handler(func(_ context.Context, name string) (string, error) { return "Good day, " + name, nil }, weaver.HandlerName("canary")),
		},
	})
	fmt.Println(ann.Wait(ctx))
	fmt.Println(bob.Wait(ctx))
	a := must(client.History(ctx, bob.ID())).Attempts[0]
	fmt.Printf("%s: %s\n", a.Handler, a.RouteReason)
	// Output:
	// Hello, Ann! <nil>
	// Good day, Bob <nil>
	// canary: rule 1: type example.mail.greet.v1, metadata tenant=t1
}
