package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// An order that cannot be shipped refunds the money.
func ExampleUndo() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Rome", weaver.NoRetry()))
	work(ctx, db, Greet.Handler(func(ctx context.Context, city string) (string, error) {
		_, err := weaver.Step(ctx, "charge", func(context.Context) (int, error) {
			fmt.Println("charged 25")
			return 25, nil
		}, weaver.Undo(func(_ context.Context, u weaver.Undoing[int]) error {
			if u.Done { // otherwise look up u.Key at the partner
				fmt.Println("refunded", u.Out)
			}
			return nil
		}))
		if err == nil {
			err = weaver.Do(ctx, "ship", func(context.Context) error { return errors.New("no courier to " + city) })
		}
		return "on its way", err
	}))
	t := must(h.Get(ctx))
	fmt.Println(t.State, t.Error.Message)
	// Output:
	// charged 25
	// refunded 25
	// failed step "ship": no courier to Rome
}

// A trip without a flight cancels the rooms that other tasks booked.
func ExampleUndoChildren() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	room := weaver.Define[string, string]("example.room.book.v1")
	trip := weaver.Define[[]string, string]("example.trip.book.v1", weaver.NoRetry())
	h := must(trip.Enqueue(ctx, client, []string{"Oslo", "Rome"}))
	workUntilEnd(ctx, db, h, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{
		room.Handler(func(ctx context.Context, city string) (string, error) {
			return weaver.Step(ctx, "book", func(context.Context) (string, error) { return "a room in " + city, nil },
				weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error {
					fmt.Println("cancelled", u.Out)
					return nil
				}))
		}),
		trip.Handler(func(ctx context.Context, cities []string) (string, error) {
			if _, err := weaver.CallAll(ctx, "rooms", room, cities, weaver.UndoChildren()); err != nil {
				return "", err
			}
			return "", errors.New("no seat is left")
		}),
	}})
	t := must(h.Get(ctx))
	fmt.Println(t.State, t.Error.Message)
	// Output:
	// cancelled a room in Rome
	// cancelled a room in Oslo
	// failed no seat is left
}

// workUntilEnd runs tasks until one has ended, even if it waits for a second.
func workUntilEnd[Out any](ctx context.Context, db store.Store, h *weaver.Handle[Out], cfg weaver.Config) {
	eng := must(weaver.New(db, cfg))
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	_, _ = h.Wait(ctx)
	stop()
	if err := <-ended; err != nil {
		panic(err)
	}
}

// The plan of a cancel's undo, read before the cancel.
func ExampleClient_UndoPlan() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Ann"))
	trial := Greet.Handler(func(ctx context.Context, name string) (string, error) {
		nothing := func(context.Context) error { return nil }
		undo := weaver.Undo(func(context.Context, weaver.Undoing[weaver.None]) error { return nil })
		return name + " stays", errors.Join(
			weaver.Do(ctx, "register", nothing, undo),
			weaver.PointOfNoReturn(ctx, "terms accepted"),
			weaver.Do(ctx, "welcome mail", nothing),
			weaver.Do(ctx, "deposit", nothing, undo),
			weaver.Do(ctx, "reserve desk", nothing, undo),
			weaver.Sleep(ctx, "trial", 30*24*time.Hour),
		)
	})
	work(ctx, db, trial)
	show := func() {
		plan := must(client.UndoPlan(ctx, h.ID()))
		fmt.Printf("%s, %d to undo\n", plan.State, plan.Open())
		for _, e := range plan.Effects {
			fmt.Printf("  %s (%s): %s, %s\n", e.Step, e.Kind, e.Effect, e.Undo)
		}
	}
	show()
	_ = client.Cancel(ctx, h.ID())
	work(ctx, db, trial)
	show()
	// Output:
	// pending, 2 to undo
	//   reserve desk (step): confirmed, declared
	//   deposit (step): confirmed, declared
	//   welcome mail (step): confirmed, none
	//   terms accepted (point): confirmed, kept
	//   register (step): confirmed, kept
	// cancelled, 0 to undo
	//   welcome mail (step): confirmed, none
	//   terms accepted (point): confirmed, kept
	//   register (step): confirmed, kept
	//   reserve desk (step): confirmed, undone
	//   deposit (step): confirmed, undone
}
