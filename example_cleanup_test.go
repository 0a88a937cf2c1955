package weaver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
)

// A cancelled handler releases the resources of its steps.
func ExampleCleanup() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	seat := func(word string) func(context.Context) error {
		return func(context.Context) error { fmt.Println("seat", word); return nil }
	}
	h := must(Greet.Enqueue(ctx, client, "Rome"))
	work(ctx, db, Greet.Handler(func(ctx context.Context, _ string) (string, error) {
		err := weaver.Do(ctx, "book", seat("booked"))
		if err == nil {
			_ = client.Cancel(ctx, h.ID()) // by someone else, while the handler works
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		if weaver.Suspended(err) {
			return "", err
		}
		return "", errors.Join(err, weaver.Cleanup(ctx, "unbook", seat("given back")))
	}))
	fmt.Println(must(h.Get(ctx)).State)
	// Output:
	// seat booked
	// seat given back
	// cancelled
}
