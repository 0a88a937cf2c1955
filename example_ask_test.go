package weaver_test

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver"
)

// Two approvals in one handler: each is a question with its own name.
func ExampleAsk() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	handler := Greet.Handler(func(ctx context.Context, city string) (string, error) {
		manager, err := weaver.Ask[string](ctx, "manager", "may we go to "+city+"?")
		if err != nil {
			return "", err
		}
		budget, err := weaver.Ask[int](ctx, "budget", "how much may it cost?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, for %d, says %s", city, budget, manager), nil
	})
	h := must(Greet.Enqueue(ctx, client, "Rome"))
	for _, answer := range []any{"ann", 500} {
		work(ctx, db, handler)
		fmt.Println(must(h.Get(ctx)).Error.Message)
		_ = client.Unblock(ctx, h.ID(), answer)
	}
	work(ctx, db, handler)
	fmt.Println(h.Wait(ctx))
	// Output:
	// manager: may we go to Rome?
	// budget: how much may it cost?
	// Rome, for 500, says ann <nil>
}
