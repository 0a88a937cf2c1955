package weaver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
)

// A task whose work is done by other tasks, concurrently. It holds no worker meanwhile.
func ExampleCallAll() {
	ctx, db := context.Background(), memory()
	defer db.Close()
	client := must(weaver.NewClient(db, weaver.ClientConfig{}))
	double := weaver.Define[int, int]("example.number.double.v1", weaver.NoRetry())
	sum := weaver.Define[[]int, int]("example.number.sum.v1")
	h := must(sum.Enqueue(ctx, client, []int{1, 2, -3}))
	work(ctx, db,
		double.Handler(func(_ context.Context, n int) (int, error) {
			if n < 0 {
				return 0, errors.New("below zero")
			}
			return 2 * n, nil
		}),
		sum.Handler(func(ctx context.Context, ins []int) (total int, err error) {
			outs, err := weaver.CallAll(ctx, "double", double, ins)
			var failed *weaver.CallError
			if errors.As(err, &failed) {
				fmt.Println("input", failed.Index, failed.State, failed.Message)
			} else if err != nil {
				return 0, err
			}
			for _, out := range outs {
				total += out
			}
			return total, nil
		}))
	fmt.Println(h.Wait(ctx))
	// Output:
	// input 2 failed below zero
	// 6 <nil>
}
