package weaver_test

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver"
)

// A task splits itself into children, which run in parallel, and combines their outputs when all of
// them have ended. It holds no worker meanwhile.
func ExampleDecompose() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	count := weaver.Define[string, int]("acme.text.count.v1")
	total := weaver.Define[[]string, int]("acme.text.total.v1")
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(total.Enqueue(ctx, client, []string{"one", "three", "fifteen"}))
	work(ctx, db,
		count.Handler(func(_ context.Context, word string) (int, error) { return len(word), nil }),
		total.Handler(func(ctx context.Context, words []string) (int, error) {
			children, err := weaver.Children(ctx)
			if err != nil {
				return 0, err
			}
			if len(children) == 0 { // the first attempt
				var drafts []weaver.Draft
				for _, word := range words {
					drafts = append(drafts, count.With(word))
				}
				return 0, weaver.Decompose(weaver.JoinRerun, drafts...)
			}
			sum := 0
			for _, child := range children {
				n, err := count.OutputOf(child)
				if err != nil {
					return 0, weaver.Permanent(err)
				}
				fmt.Println(child.Node, n)
				sum += n
			}
			return sum, nil
		}))
	fmt.Println(h.Wait(ctx))
	// Output:
	// decompose[0] 3
	// decompose[1] 5
	// decompose[2] 7
	// 15 <nil>
}

// A report needs an import that another program enqueued: it waits for it and runs again when it has
// succeeded.
func ExampleAddDependency() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	load := weaver.Define[string, int]("acme.prices.load.v1")
	report := weaver.Define[weaver.TaskID, string]("acme.prices.report.v1")
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	prices := must(load.Enqueue(ctx, client, "prices.csv"))
	h := must(report.Enqueue(ctx, client, prices.ID()))
	handler := report.Handler(func(ctx context.Context, id weaver.TaskID) (string, error) {
		rows, err := load.Get(ctx, client, id)
		if err != nil {
			return "", err
		}
		if rows.State != weaver.StateSucceeded {
			return "", weaver.AddDependency(id)
		}
		return fmt.Sprintf("a report of %d prices", rows.Output), nil
	})
	work(ctx, db, handler)
	fmt.Println(must(h.Get(ctx)).Waiting)
	work(ctx, db, load.Handler(func(context.Context, string) (int, error) { return 42, nil }))
	work(ctx, db, handler)
	fmt.Println(h.Wait(ctx))
	// Output:
	// deps
	// a report of 42 prices <nil>
}
