package engine

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/store"
)

const (
	// combinedMax bounds one batched call: as many ends, each with the mark of
	// an edge, are what one transaction of a store moves at most
	// (rules.MaxMoves), and leave nothing to a chore.
	combinedMax = 500
	// splitAfter is how often a call with an element may be refused as a whole
	// before the batch is split.
	splitAfter = 3
)

// combiner lets the attempts of a process share one batched call to the
// store: an attempt alone pays no hand-over, many attempts pay one call. It writes
// what they record, and the ends that were refused in a batch of their own (endings).
//
// SQLite commits the calls of a process in groups too, and both are needed.
// The group commit shares the fsync between calls of all kinds. The combiner
// makes one call of many records, which the store then writes with
// statements of many rows instead of a savepoint and statements for each.
// Without it a one-step task cost a quarter more CPU time on SQLite (1,000
// slots, 2 CPUs). With 20 slots there was no difference above the noise.
//
// A batch that the store refuses as a whole is answered with the error, and
// its elements come again with a higher number of the try. When one of them
// was refused splitAfter times, the batch is written in halves, and halves
// that are refused in halves again, so that an element that the store cannot
// write is refused alone and keeps no other element waiting. What the store
// refuses for good (store.ErrRefused) splits the batch at once. An error that
// says that the store cannot write at all splits nothing.
type combiner[Q, R any] struct {
	queue *batch.Queue[*call[Q, R]]
	run   func([]Q) ([]R, error)
	fail  func(error) R
}

// call is one element of a batch.
type call[Q, R any] struct {
	q       Q
	try     int // the first is 1
	r       R
	refused error // then r is not set
}

// newCombiner returns a combiner whose batches are written by run, which
// answers every element in order, or refuses all; fail is the answer to an
// element whose run panicked.
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

// do writes q together with what other attempts write now. An error says that
// the store refused the call: the caller may do it again, as the next try.
func (c *combiner[Q, R]) do(q Q, try int) (R, error) {
	own := &call[Q, R]{q: q, try: try}
	// Not the attempt's context: what it reports must not be lost with it.
	if err := c.queue.Do(context.Background(), &batch.Op[*call[Q, R]]{Do: own}); err != nil {
		return c.fail(err), nil
	}
	return own.r, own.refused
}

// write runs a batch once, and with split its halves when it is refused.
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

// mayBlameElement reports whether a call may have been refused because of one
// of its elements. The errors listed say that the store cannot write at all:
// smaller calls would only be more calls.
func mayBlameElement(err error) bool {
	return !isTransient(err) && !errors.Is(err, store.ErrClosed) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}
