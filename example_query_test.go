package weaver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
)

// A query selects tasks in one line; an error gives the position of the mistake.
func ExampleParseQuery() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	must(Greet.Enqueue(ctx, client, "Ann", weaver.Label("team", "pay")))
	must(Greet.Enqueue(ctx, client, "Bob", weaver.Label("team", "pay")))

	q := must(ops.ParseQuery(`state:ready label.team=pay input=Bob created>-2h`, time.Now()))
	page := must(client.Search(ctx, q))
	for _, t := range page.Items {
		fmt.Println(t.State, string(t.Input))
	}
	_, err := ops.ParseQuery(`label.team=pay state:redy`, time.Now())
	fmt.Println(err)
	// Output:
	// ready "Bob"
	// invalid query: column 22: "redy": unknown state; did you mean ready? there are: pending, ready, running, succeeded, failed, cancelled, blocked
}
