package weaver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
)

var Approved = weaver.DefineSignal[bool]("approved")

// A task waits for a person, at most two days, without a worker.
func ExampleSignal() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	handler := Greet.Handler(func(ctx context.Context, city string) (string, error) {
		yes, ok, err := Approved.Wait(ctx, "manager", 48*time.Hour)
		switch {
		case err != nil:
			return "", err
		case !ok:
			return "nobody answered", nil
		}
		return fmt.Sprint("to ", city, ": ", yes), nil
	})
	h := must(Greet.Enqueue(ctx, client, "Rome"))
	work(ctx, db, handler)
	fmt.Println(must(h.Get(ctx)).Waiting)
	_ = Approved.Send(ctx, client, h.ID(), "click-77", true)
	_ = Approved.Send(ctx, client, h.ID(), "click-77", true) // sending twice has no further effect
	work(ctx, db, handler)
	fmt.Println(h.Wait(ctx))
	// Output:
	// signal
	// to Rome: true <nil>
}

// The first of a signal and a time wins; the winner is recorded.
func ExampleRace() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	h := must(Greet.Enqueue(ctx, client, "Rome"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, city string) (string, error) {
		var yes bool
		first, err := weaver.Race(ctx, "answer", weaver.OnSignal(Approved, &yes), weaver.OnSleep(0))
		if err != nil {
			return "", err
		}
		return fmt.Sprint("number ", first, " came first"), nil
	}))
	fmt.Println(h.Wait(ctx))
	// Output:
	// number 1 came first <nil>
}
