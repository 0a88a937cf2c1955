package schema_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/memstore"
)

// A program without the Go types of a task checks an input and enqueues it, using the description announced by a
// worker.
func Example() {
	ctx := context.Background()
	type order struct {
		ID     int64  `json:"id"`
		Amount string `json:"amount"`
	}
	define := weaver.Define[order, weaver.None]("acme.shop.pack.v1", weaver.Queue("packing"))
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		panic(err)
	}
	if err := schema.Announce(ctx, client, define); err != nil { // a worker: schema.Plugin()
		panic(err)
	}

	types, err := client.Types(ctx, "acme.shop.pack.v1")
	if err != nil {
		panic(err)
	}
	inputs, err := schema.Compile(types[0].Input)
	if err != nil {
		panic(err)
	}
	fmt.Println(inputs.Validate(json.RawMessage(`{"id":"seven"}`)))
	input := json.RawMessage(`{"id":7,"amount":"9.50"}`)
	fmt.Println(inputs.Validate(input), schema.DraftOf(types[0], input).Queue())
	// Output:
	// /id: it is a string, want an integer
	// <nil> packing
}
