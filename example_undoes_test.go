package weaver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
)

// A job that cannot ship undoes its tasks' effects, the last one first.
func ExampleUndoes() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	act := weaver.Define[string, weaver.None]("acme.shop.act.v1", weaver.NoRetry())

	j := weaver.NewJob("order")
	reserve := j.Add("reserve", act.With("reserve a desk"))
	charge := j.Add("charge", act.With("charge 25"), weaver.Needs(reserve))
	j.Add("ship", act.With("ship"), weaver.Needs(charge))
	j.Add("undo reserve", act.With("release the desk"), weaver.Undoes(reserve))
	j.Add("undo charge", act.With("refund 25"), weaver.Undoes(charge))
	h := must(client.Submit(ctx, j))

	work(ctx, db, act.Handler(func(_ context.Context, what string) (weaver.None, error) {
		fmt.Println(what)
		if what == "ship" {
			return weaver.None{}, errors.New("no courier")
		}
		return weaver.None{}, nil
	}))
	fmt.Println(must(client.Job(ctx, h.ID())).State)
	// Output:
	// reserve a desk
	// charge 25
	// ship
	// refund 25
	// release the desk
	// failed
}
