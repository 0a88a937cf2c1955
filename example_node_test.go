package weaver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// An alarm runs when a task fails, a clean-up always runs, and a task with AllowFailure may fail.
func ExampleIfFailed() {
	ctx := context.Background()
	load := weaver.Define[string, weaver.None]("acme.report.load.v1", weaver.NoRetry())
	say := weaver.Define[string, weaver.None]("acme.report.say.v1")

	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		fmt.Println(err)
		return
	}
	eng, err := weaver.New(db, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{
		load.Handler(func(context.Context, string) (weaver.None, error) {
			return weaver.None{}, errors.New("no such host")
		}),
		say.Handler(func(_ context.Context, text string) (weaver.None, error) {
			fmt.Println(text)
			return weaver.None{}, nil
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	j := weaver.NewJob("nightly")
	prices := j.Add("prices", load.With("prices"))
	weather := j.Add("weather", load.With("weather"), weaver.AllowFailure())
	j.Add("report", say.With("the report"), weaver.Needs(prices, weather))
	j.Add("alarm", say.With("the report failed"), weaver.IfFailed(prices))
	h, err := eng.Submit(ctx, j)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := eng.RunUntilIdle(ctx); err != nil {
		fmt.Println(err)
		return
	}
	info, err := eng.Job(ctx, h.ID())
	fmt.Println(info.State, info.Counters.Failed, info.Counters.Allowed, err)
	// Output:
	// the report failed
	// failed 2 1 <nil>
}
