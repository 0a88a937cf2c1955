// Command worker handles some types of the test.
package main

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/vet/testdata/tasks"
)

func run(ctx context.Context, n int) (int, error) {
	return weaver.Call(ctx, "call", tasks.Called, n)
}

func main() {
	set := tasks.Both()
	local := weaver.Define[int, int]("vet.test.local.v1")
	_ = weaver.Config{Handlers: []weaver.Handler{tasks.Handled.Handler(run), set.In.Handler(run), local.Handler(run), weaver.Define[int, int]("vet.test.inline.v1").Handler(run)}}
}
