// Package batch is group commit without a goroutine of its own. Callers queue operations. One
// of them leads: it takes the waiting operations, has them committed together, and hands the
// lead to the next.
//
// Invariants:
//
//   - At most one group is being committed at any moment, and only its leader's goroutine
//     runs operations. Operations may therefore share one connection without locks.
//   - A caller gets its answer after the group's commit, never before.
//   - Urgent operations are taken first. Every other group with urgent operations is
//     light: in it they do not wait for heavy operations that are not urgent.
//   - A caller whose context ends gets its operation back if it was not taken.
//     Otherwise it gets ErrTaken, and the operation continues without it.
//   - A panic in a commit becomes the error of that group's operations, and the queue
//     continues.
//
// The package knows nothing about databases: the function given to New is the commit. It
// starts no goroutine, and no goroutine waits while holding its mutex, so it works inside a
// testing/synctest bubble.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

var (
	// ErrTaken means that the caller's context ended while its operation was being committed.
	// The outcome of the commit is unknown. It wraps the context's cause.
	ErrTaken = errors.New("gave up while the operation was being committed")
	// ErrClosed means that the queue is closed. Its text reaches users, for whom "queue" means
	// a queue of tasks.
	ErrClosed = errors.New("no more operations are taken")
)

// Op is one operation. It is used once. The caller must not change its data after Do, even
// when Do returned ErrTaken.
type Op[T any] struct {
	Do     T     // the work for the commit function
	Weight int   // its share of a group's weight; counted as at least 1
	Urgent bool  // takes precedence over operations that are not urgent
	Err    error // set by the commit function before Deliver

	exclusive func()        // replaces Do: runs with the lead, outside any group
	wake      chan struct{} // of a follower: done, or its turn to lead
	state     state
	leads     bool // the lead was handed to it
}

type state uint8

const (
	queued state = iota
	taken
	done
)

// Group is the work of one commit.
type Group[T any] struct {
	ctx  context.Context // the leader's context
	q    *Queue[T]
	ops  []*Op[T]
	took bool
}

// Context returns the leader's context. A commit function that is still waiting may return
// without Take when it ends. Then the leader gives its operation up, and the next caller
// leads.
func (g *Group[T]) Context() context.Context { return g.ctx }

// Take returns the group's operations in order. Call it once, as late as possible: operations
// that joined until then are in the group.
func (g *Group[T]) Take() []*Op[T] {
	g.took = true
	g.ops = g.q.take()
	return g.ops
}

// Deliver wakes the callers of the group. The commit function may call it when every Err is
// final, and continue with work that no caller waits for. Otherwise it runs when the function
// returns.
func (g *Group[T]) Deliver() {
	ops := g.ops
	g.ops = nil
	g.q.deliver(ops)
}

// Queue collects operations. Use New.
type Queue[T any] struct {
	commit func(*Group[T])
	max    int

	mu      sync.Mutex // held for a few instructions only
	urgent  []*Op[T]
	normal  []*Op[T]
	leading bool
	closed  bool
	light   bool // the last group left heavy operations to the next one
}

// lightest divides a group's weight for a light group: the quotient is the maximum weight of
// operations that are not urgent.
const lightest = 10

// New returns a queue whose groups are committed by commit and weigh at most maxWeight, unless
// a single operation is heavier.
func New[T any](maxWeight int, commit func(*Group[T])) *Queue[T] {
	return &Queue[T]{commit: commit, max: maxWeight}
}

// Do commits op and returns its error. It returns ErrClosed after Close, the context's cause
// if the operation was given up before it was taken, and ErrTaken if it was taken already.
func (q *Queue[T]) Do(ctx context.Context, op *Op[T]) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	return q.join(ctx, op)
}

// Exclusive runs fn while no group is being committed, in the order of the queue. Errors are
// those of Do.
func (q *Queue[T]) Exclusive(ctx context.Context, fn func()) error {
	return q.Do(ctx, &Op[T]{exclusive: fn})
}

// Urgent reports whether an urgent operation is waiting.
func (q *Queue[T]) Urgent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.urgent) > 0
}

// TryExclusive runs fn if no operation is being committed or waiting, and reports whether it
// did.
func (q *Queue[T]) TryExclusive(fn func()) bool {
	q.mu.Lock()
	if q.leading || q.closed {
		q.mu.Unlock()
		return false
	}
	q.leading = true
	q.mu.Unlock()
	defer q.handOver()
	fn()
	return true
}

// Close commits the waiting operations, then runs fn, and refuses all later operations. Only
// the first call has an effect.
func (q *Queue[T]) Close(fn func()) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return
	}
	q.closed = true
	_ = q.join(context.Background(), &Op[T]{exclusive: fn})
}

// join queues op and waits until it is done. The caller holds q.mu; join releases it.
func (q *Queue[T]) join(ctx context.Context, op *Op[T]) error {
	if op.Urgent {
		q.urgent = append(q.urgent, op)
	} else {
		q.normal = append(q.normal, op)
	}
	if !q.leading {
		q.leading = true
		q.mu.Unlock()
		return q.lead(ctx, op)
	}
	op.wake = make(chan struct{}, 1) // of the caller's own bubble
	q.mu.Unlock()
	select {
	case <-op.wake:
	case <-ctx.Done():
		if given, err := q.giveUp(ctx, op); given {
			return err
		}
	}
	q.mu.Lock()
	lead := op.state == queued
	q.mu.Unlock()
	if lead {
		return q.lead(ctx, op)
	}
	return op.Err
}

// giveUp takes op out of the queue, or returns why it is too late. It returns false if the
// operation was done in the meantime.
func (q *Queue[T]) giveUp(ctx context.Context, op *Op[T]) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch op.state {
	case done:
		return false, nil
	case taken:
		return true, fmt.Errorf("%w: %w", ErrTaken, context.Cause(ctx))
	}
	q.remove(op)
	if op.leads {
		q.next() // the lead must not be lost with this caller
	}
	return true, context.Cause(ctx)
}

// remove takes op out of the queue. The mutex is held.
func (q *Queue[T]) remove(op *Op[T]) {
	same := func(o *Op[T]) bool { return o == op }
	q.urgent = slices.DeleteFunc(q.urgent, same)
	q.normal = slices.DeleteFunc(q.normal, same)
}

// lead commits groups until op is done, or is given up before a group took it. Then it hands
// the lead over.
func (q *Queue[T]) lead(ctx context.Context, op *Op[T]) error {
	defer q.handOver()
	for {
		q.round(ctx)
		q.mu.Lock()
		finished, given := op.state == done, op.state == queued && ctx.Err() != nil
		if given {
			q.remove(op)
		}
		q.mu.Unlock()
		switch {
		case finished:
			return op.Err
		case given:
			return context.Cause(ctx)
		}
	}
}

// round commits one group, or runs the exclusive function at the head.
func (q *Queue[T]) round(ctx context.Context) {
	g := &Group[T]{q: q, ctx: ctx}
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("panic while committing: %v\n%s", p, debug.Stack())
			if !g.took && len(g.ops) == 0 {
				g.Take() // otherwise the same operations would panic again
			}
			for _, op := range g.ops {
				op.Err = err
			}
		}
		g.Deliver()
	}()
	q.mu.Lock()
	head := q.head()
	if head != nil && head.exclusive != nil {
		q.pop()
		head.state = taken
		q.mu.Unlock()
		g.ops = []*Op[T]{head}
		head.exclusive()
		return
	}
	q.mu.Unlock()
	q.commit(g)
	if !g.took && ctx.Err() == nil {
		for _, op := range g.Take() {
			op.Err = errors.New("the commit function took nothing")
		}
	}
}

func (q *Queue[T]) head() *Op[T] {
	switch {
	case len(q.urgent) > 0:
		return q.urgent[0]
	case len(q.normal) > 0:
		return q.normal[0]
	}
	return nil
}

func (q *Queue[T]) pop() {
	if len(q.urgent) > 0 {
		q.urgent = slices.Delete(q.urgent, 0, 1)
		return
	}
	q.normal = slices.Delete(q.normal, 0, 1)
}

// take moves the head of the queue into a group.
func (q *Queue[T]) take() []*Op[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	weight := 0
	full := func(op *Op[T]) bool {
		w := max(1, op.Weight)
		if op.exclusive != nil || weight > 0 && weight+w > q.max {
			return true
		}
		weight += w
		op.state = taken
		return false
	}
	u := 0
	for u < len(q.urgent) && !full(q.urgent[u]) {
		u++
	}
	n := 0
	light := u > 0 && !q.light
	q.light = false
	if u == len(q.urgent) { // an exclusive operation among them stops the group
		most := q.max
		if light {
			most = weight + max(1, q.max/lightest)
		}
		for n < len(q.normal) {
			if q.light = light && weight+max(1, q.normal[n].Weight) > most; q.light || full(q.normal[n]) {
				break
			}
			n++
		}
	}
	ops := make([]*Op[T], 0, u+n)
	ops = append(append(ops, q.urgent[:u]...), q.normal[:n]...)
	q.urgent = slices.Delete(q.urgent, 0, u)
	q.normal = slices.Delete(q.normal, 0, n)
	return ops
}

func (q *Queue[T]) deliver(ops []*Op[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, op := range ops {
		op.state = done
		if op.wake != nil {
			op.wake <- struct{}{} // buffered: one answer, or one lead before it
		}
	}
}

func (q *Queue[T]) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next()
}

// next hands the lead to the head of the queue, if there is one. The caller holds q.mu and has
// the lead.
func (q *Queue[T]) next() {
	head := q.head()
	if head == nil {
		q.leading = false
		return
	}
	head.leads = true
	head.wake <- struct{}{}
}
