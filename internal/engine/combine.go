package engine

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/store"
)

const (
	// combinedMax is the maximum size of one batched call. One transaction of a store can move this many ends, each
	// with the mark of an edge (rules.MaxMoves), without a chore.
	combinedMax = 500
	// splitAfter is the number of refused calls with an element before its batch is split.
	splitAfter = 3
)

// combiner batches the store writes of concurrent attempts: a single attempt writes directly, many attempts share one
// call. It writes records, and the ends that were refused in a batch (endings).
//
// SQLite also groups the calls of a process into commits, and both are needed. The group commit shares the fsync
// between calls of all kinds. The combiner makes one call of many records, which the store writes with multi-row
// statements instead of a savepoint and statements for each. Without it a one-step task cost a quarter more CPU time
// on SQLite (1,000 slots, 2 CPUs). With 20 slots there was no difference above the noise.
//
// If the store refuses a whole batch, every element gets the error and comes again with a higher try number. When an
// element was refused splitAfter times, the batch is written in halves, and refused halves are halved again. An
// element that the store cannot write is then refused alone and does not block other elements. A permanent refusal
// (store.ErrRefused) splits the batch at once. An error that means that the store cannot write at all splits nothing.
type combiner[Q, R any] struct {
	queue *batch.Queue[*call[Q, R]]
	run   func([]Q) ([]R, error)
	fail  func(error) R
}

// call is one element of a batch.
type call[Q, R any] struct {
	q       Q
	try     int // starts at 1
	r       R
	refused error // if set, r is not
}

// newCombiner returns a combiner whose batches are written by run, which answers every element in order or refuses
// all. fail returns the answer for an element whose run panicked.
func newCombiner[Q, R any](run func([]Q) ([]R, error), fail func(error) R) *combiner[Q, R] {
	c := &combiner[Q, R]{run: run, fail: fail}
	c.queue = batch.New(combinedMax, func(g *batch.Group[*call[Q, R]]) {
		ops := g.Take()
		calls := make([]*call[Q, R], len(ops))
		split := false
		for i, op := range ops {
			calls[i] = op.Do
			split = split || op.Do.try >= splitAfter
		}
		c.write(calls, split)
	})
	return c
}

// do writes q together with concurrent writes of other attempts. It returns an error if the store refused the call:
// the caller may repeat it with the next try number.
func (c *combiner[Q, R]) do(q Q, try int) (R, error) {
	own := &call[Q, R]{q: q, try: try}
	// Not the attempt's context: its result must not be lost with it.
	if err := c.queue.Do(context.Background(), &batch.Op[*call[Q, R]]{Do: own}); err != nil {
		return c.fail(err), nil
	}
	return own.r, own.refused
}

// write runs a batch once and, with split, its halves when it is refused.
func (c *combiner[Q, R]) write(calls []*call[Q, R], split bool) {
	qs := make([]Q, len(calls))
	for i, call := range calls {
		qs[i] = call.q
	}
	rs, err := c.run(qs)
	switch {
	case err == nil:
		for i, r := range rs {
			calls[i].r = r
		}
	case (split || store.Refused(err)) && len(calls) > 1 && mayBlameElement(err):
		half := len(calls) / 2
		c.write(calls[:half], split)
		c.write(calls[half:], split)
	default:
		for _, call := range calls {
			call.refused = err
		}
	}
}

// mayBlameElement reports whether one element may have caused the refusal of a call. The listed errors mean that the
// store cannot write at all: smaller calls would only be more calls.
func mayBlameElement(err error) bool {
	return !isTransient(err) && !errors.Is(err, store.ErrClosed) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}
