package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
)

// A trial is charged, and refunded when it is cancelled while its task sleeps.
func ExampleCleanupWhenCancelled() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	money := func(word string) func(context.Context) error {
		return func(context.Context) error { fmt.Println("deposit", word); return nil }
	}
	trial := Greet.Handler(func(ctx context.Context, name string) (string, error) {
		err := weaver.Do(ctx, "charge", money("charged"))
		if err == nil {
			err = weaver.Sleep(ctx, "trial", 30*24*time.Hour)
		}
		if weaver.Final(ctx, err) {
			err = errors.Join(err, weaver.Cleanup(ctx, "refund", money("paid back")))
		}
		return name + " stays", err
	})
	h := must(Greet.Enqueue(ctx, client, "Rome", weaver.CleanupWhenCancelled()))
	work(ctx, db, trial)
	_ = client.Cancel(ctx, h.ID())
	fmt.Println(must(h.Get(ctx)).State)
	work(ctx, db, trial)
	fmt.Println(must(h.Get(ctx)).State)
	// Output:
	// deposit charged
	// pending
	// deposit paid back
	// cancelled
}
