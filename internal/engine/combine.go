package engine

import (
	"context"

	"github.com/goweaver/weaver/internal/batch"
)

// combinedMax bounds one batched call.
const combinedMax = 1000

// combiner lets the attempts of a process share one batched call to the
// store: an attempt alone pays no hand-over, a crowd pays one call for all.
type combiner[Q, R any] struct {
	queue *batch.Queue[*call[Q, R]]
	fail  func(error) R
}

type call[Q, R any] struct {
	q Q
	r R
}

// newCombiner returns a combiner whose batches are run by run, which answers
// every request in order; fail is the answer to a request whose run panicked.
func newCombiner[Q, R any](run func([]Q) []R, fail func(error) R) *combiner[Q, R] {
	return &combiner[Q, R]{
		fail: fail,
		queue: batch.New(combinedMax, func(g *batch.Group[*call[Q, R]]) {
			ops := g.Take()
			qs := make([]Q, len(ops))
			for i, op := range ops {
				qs[i] = op.Do.q
			}
			for i, r := range run(qs) {
				ops[i].Do.r = r
			}
		}),
	}
}

func (c *combiner[Q, R]) do(q Q) R {
	shared := &call[Q, R]{q: q}
	// Not the attempt's context: what it reports must not be lost with it.
	if err := c.queue.Do(context.Background(), &batch.Op[*call[Q, R]]{Do: shared}); err != nil {
		return c.fail(err)
	}
	return shared.r
}
