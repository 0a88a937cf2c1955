package weaver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
)

// The undo of a task was given up, because its partner knew no such account, and is retried.
func ExampleCleanups() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	known := false
	order := Greet.Handler(func(ctx context.Context, _ string) (string, error) {
		err := weaver.Do(ctx, "charge", func(context.Context) error { return nil })
		if err == nil {
			err = weaver.Permanent(errors.New("no courier"))
		}
		return "", errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error {
			if !known {
				return weaver.Permanent(errors.New("no such account"))
			}
			return nil
		}))
	})
	h := must(Greet.Enqueue(ctx, client, "Rome"))
	work(ctx, db, order)
	fmt.Println(must(h.Get(ctx)).Error.Kind)

	known = true
	fmt.Println(errors.Is(client.Retry(ctx, h.ID()), weaver.ErrState))
	_ = client.Retry(ctx, h.ID(), weaver.Cleanups())
	work(ctx, db, order)
	fmt.Println(must(h.Get(ctx)).Error.Kind)
	// Output:
	// undo_failed
	// true
	// handler_error
}
