package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// endings writes the ends of attempts in batches (ADR 0047). The goroutine of an attempt adds
// the end to a batch and returns. If no goroutine leads, that is, writes batches, it leads
// itself: it writes one batch, so that an attempt alone needs no other goroutine, and starts
// one that leads if more ends have come meanwhile. An end that the store refuses is tried
// again by itself, on a goroutine of its own (completer.finish).
type endings struct {
	*completer
	attempts *group.Group   // all goroutines
	over     func(*Attempt) // gives the attempt's slot back

	mu      sync.Mutex
	waiting []*endingBatch // the first ones are full
	spare   []*endingBatch // empty
	leading bool           // a goroutine leads
}

// ending is how an attempt ended.
type ending struct {
	a   *Attempt
	fin store.Finish // with the values themselves, for listeners
}

// endingBatch are ends that are written in one call.
type endingBatch struct {
	ends []ending
	fins []store.Finish // of ends, as they are stored

	written bool
	res     []store.FinishResult
	err     error // the store refused all of them
	next    int   // the first one that is not announced yet
}

// maxSpare is how many batches are kept to be filled again.
const maxSpare = 3

// put adds the end of an attempt whose handler has returned. If no goroutine leads it returns
// a batch, with which the caller does.
func (e *endings) put(a *Attempt, fin store.Finish) *endingBatch {
	kept := fin
	if e.Values.keepFinish(e.work, &kept) != nil {
		e.alone(a, fin, nil)
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.filling()
	b.ends, b.fins = append(b.ends, ending{a, fin}), append(b.fins, kept)
	if e.leading {
		return nil
	}
	e.leading = true
	return e.next()
}

// filling returns the batch to which the next end is added. It is called with e.mu held.
func (e *endings) filling() *endingBatch {
	if n := len(e.waiting); n > 0 && len(e.waiting[n-1].ends) < combinedMax {
		return e.waiting[n-1]
	}
	b := new(endingBatch)
	if n := len(e.spare); n > 0 {
		b, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	e.waiting = append(e.waiting, b)
	return b
}

// alone writes one end by itself. refused is why the store refused its batch; nil: it was in none.
func (e *endings) alone(a *Attempt, fin store.Finish, refused error) {
	defer e.over(a)
	res, again := e.finishKept(a, &fin, refused)
	e.announceOne(a, &fin, res, again)
}

// announceOne emits and logs how an attempt ended. Then it is over.
func (e *endings) announceOne(a *Attempt, fin *store.Finish, res store.FinishResult, again bool) {
	defer e.over(a)
	e.ended(a, fin, res, again)
}

func (e *endings) spawn(fn func()) {
	e.attempts.Go("attempt", func(context.Context) error {
		fn()
		return nil
	})
}

// lead writes a batch, if it is not nil, and those that wait, until none does. The goroutine of
// a handler writes only one, and then starts another goroutine that leads. So does one that a
// panic of the store ends.
func (e *endings) lead(b *endingBatch, handler bool) {
	led := false
	defer func() {
		p := recover()
		if !led {
			e.spawn(func() { e.lead(b, false) })
		}
		if p != nil {
			e.Log.Error("a panic while the results of attempts were written", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	for b != nil {
		e.answer(b)
		e.announce(b)
		if b = e.take(); b != nil && handler {
			return
		}
	}
	led = true
}

// answer writes a batch, once.
func (e *endings) answer(b *endingBatch) {
	if b.written {
		return
	}
	b.written, b.err = true, errNoAnswer // should the call not return
	if b.res, b.err = e.write(b.fins); b.err == nil && len(b.res) != len(b.fins) {
		b.err = errNoAnswer
		e.Log.Error("write the results of attempts", "attempts", len(b.fins), "error", b.err)
	}
}

var errNoAnswer = errors.New("the store did not answer for every attempt of the call; each is written again by itself")

// take returns the first batch that waits; nil: there is none, and the caller leads no more.
func (e *endings) take() *endingBatch {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.leading = false
		return nil
	}
	return e.next()
}

// next takes the first batch that waits out of the queue. It is called with e.mu held.
func (e *endings) next() *endingBatch {
	b := e.waiting[0]
	e.waiting = slices.Delete(e.waiting, 0, 1)
	return b
}

// announce announces each end of a batch that was written. Listeners and logs may take long:
// they are called on goroutines of their own.
func (e *endings) announce(b *endingBatch) {
	for b.next < len(b.ends) {
		a, fin := b.ends[b.next].a, &b.ends[b.next].fin
		var res store.FinishResult
		if b.err == nil {
			res = b.res[b.next]
		}
		b.next++
		switch {
		case b.err != nil || errors.Is(res.Err, store.ErrBlobGone) || store.Refused(res.Err):
			fin, refused := *fin, b.err
			e.spawn(func() { e.alone(a, fin, refused) })
		case res.State != task.Succeeded || e.listens():
			fin := *fin
			e.spawn(func() { e.announceOne(a, &fin, res, false) })
		default:
			e.announceOne(a, fin, res, false)
		}
	}
	if b.err != nil {
		return // the store may still use the list
	}
	clear(b.ends)
	clear(b.fins)
	*b = endingBatch{ends: b.ends[:0], fins: b.fins[:0]}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.spare) < maxSpare {
		e.spare = append(e.spare, b)
	}
}
