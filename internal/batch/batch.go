// Package batch is group commit without a goroutine of its own: callers put
// operations into a queue, one of them leads, takes what waits, has it
// committed together, and hands the lead to the next.
//
// What always holds:
//
//   - At most one group is being committed at any moment, and only its
//     leader's goroutine runs operations. So operations may share one
//     connection without locks.
//   - A caller gets its answer after the group's commit, never before.
//   - Urgent operations are taken first, and every other group that has some is
//     light: it makes none of them wait for heavy operations that are not urgent.
//   - A caller whose context ends gets its operation back if it was not taken;
//     else it gets ErrTaken and the operation goes on without it.
//   - A panic in a commit becomes the error of that group's operations; the
//     queue goes on.
//
// It knows nothing about databases: what "commit" means is the function given
// to New. It starts no goroutine, and no goroutine waits while holding its
// mutex, so it works inside a testing/synctest bubble.
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
	// ErrTaken: the caller's context ended while its operation was being
	// committed; whether it was is not known. It wraps the context's cause.
	ErrTaken = errors.New("gave up while the operation was being committed")
	// ErrClosed: the queue takes no more operations. Its text reaches users, for
	// whom "queue" means a queue of tasks.
	ErrClosed = errors.New("no more operations are taken")
)

// Op is one operation. It is used once. What it is given must not be changed
// by the caller afterwards, even when Do returned ErrTaken.
type Op[T any] struct {
	Do     T     // what the commit function is to do
	Weight int   // how much of a group it fills; at least 1 counts
	Urgent bool  // goes before all that are not
	Err    error // set by the commit function before it delivers

	exclusive func()        // instead of Do: runs with the lead, outside any group
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

// Group is what one commit works on.
type Group[T any] struct {
	ctx  context.Context // the leader's
	q    *Queue[T]
	ops  []*Op[T]
	took bool
}

// Context returns the leader's context. A commit function that only waits may return
// without the group when it ends: then the leader gives its operation up, and the next
// caller leads.
func (g *Group[T]) Context() context.Context { return g.ctx }

// Take returns the group's operations, in the order in which to do them. It
// is called once, as late as possible: what joined until then is in.
func (g *Group[T]) Take() []*Op[T] {
	g.took = true
	g.ops = g.q.take()
	return g.ops
}

// Deliver wakes the callers of the group. The commit function may call it
// when every Err is final and go on with work that no caller has to wait for;
// otherwise it happens when the function returns.
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

// lightest is the part of a group's weight that operations beside urgent ones may
// have in a light group.
const lightest = 10

// New returns a queue whose groups are committed by commit and weigh at most
// maxWeight, unless a single operation does by itself.
func New[T any](maxWeight int, commit func(*Group[T])) *Queue[T] {
	return &Queue[T]{commit: commit, max: maxWeight}
}

// Do has op committed and returns its error. It returns ErrClosed after
// Close, the context's cause when the operation was given up before it
// was taken, and ErrTaken when it was taken already.
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

// Exclusive runs fn while no group is being committed, in the order of the
// queue. Errors are those of Do.
func (q *Queue[T]) Exclusive(ctx context.Context, fn func()) error {
	return q.Do(ctx, &Op[T]{exclusive: fn})
}

// Urgent reports whether an urgent operation waits.
func (q *Queue[T]) Urgent() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.urgent) > 0
}

// TryExclusive runs fn if nothing is being committed and nothing waits, and
// reports whether it did.
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

// Close lets the operations that wait be committed, then runs fn, and refuses
// all later ones. Only the first call does anything.
func (q *Queue[T]) Close(fn func()) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return
	}
	q.closed = true
	_ = q.join(context.Background(), &Op[T]{exclusive: fn})
}

// join puts op into the queue and sees it through. It is called with q.mu
// held and releases it.
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

// giveUp takes op out of the queue, or says why that is too late. It reports
// false when the operation was done in the meantime.
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
		q.next() // the lead must not leave with us
	}
	return true, context.Cause(ctx)
}

// remove takes op out of the queue. The mutex is held.
func (q *Queue[T]) remove(op *Op[T]) {
	same := func(o *Op[T]) bool { return o == op }
	q.urgent = slices.DeleteFunc(q.urgent, same)
	q.normal = slices.DeleteFunc(q.normal, same)
}

// lead commits groups until op is done, or is given up before a group took it, then hands
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
				g.Take() // or the same operations would lead to the same panic for ever
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
	if u == len(q.urgent) { // an exclusive one among them stops all
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

// next gives the lead to the head of the queue, if there is one. It is called
// with q.mu held by the goroutine that has the lead.
func (q *Queue[T]) next() {
	head := q.head()
	if head == nil {
		q.leading = false
		return
	}
	head.leads = true
	head.wake <- struct{}{}
}
