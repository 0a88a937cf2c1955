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

// endings writes the ends of attempts in batches (ADR 0047). The goroutine of an attempt adds its end to a batch and
// returns. If no goroutine is the leader, which writes batches, it becomes the leader. It then writes one batch, so
// that a single attempt needs no other goroutine, and starts a new leader if more ends arrived meanwhile. An end that
// the store refuses is retried separately, in a goroutine of its own (completer.finish).
type endings struct {
	*completer
	attempts *group.Group   // all goroutines
	over     func(*Attempt) // frees the attempt's slot

	mu      sync.Mutex
	waiting []*endingBatch // all but the last are full
	spare   []*endingBatch // empty
	leading bool           // there is a leader
}

// ending is the end of an attempt.
type ending struct {
	a   *Attempt
	fin store.Finish // with the values themselves, for listeners
}

// endingBatch holds the ends written by one call.
type endingBatch struct {
	ends []ending
	fins []store.Finish // of ends, as stored

	written bool
	res     []store.FinishResult
	err     error // the store refused the whole batch
	next    int   // the first end that is not announced yet
}

// maxSpare is the number of batches kept for reuse.
const maxSpare = 3

// put adds the end of an attempt whose handler has returned. If there is no leader it returns a batch, and the caller
// becomes the leader with it.
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

// filling returns the batch for the next end. The caller holds e.mu.
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

// alone writes one end separately. refused is the error for its batch; nil: it was in no batch.
func (e *endings) alone(a *Attempt, fin store.Finish, refused error) {
	defer e.over(a)
	res, again := e.finishKept(a, &fin, refused)
	e.announceOne(a, &fin, res, again)
}

// announceOne emits and logs the end of an attempt. The attempt is then over.
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

// lead writes a batch, if not nil, and then the waiting ones until there are no more. The goroutine of a handler
// writes only one and then starts another leader. A leader ended by a panic of the store also starts another one.
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

// answer writes a batch once.
func (e *endings) answer(b *endingBatch) {
	if b.written {
		return
	}
	b.written, b.err = true, errNoAnswer // in case the call does not return
	if b.res, b.err = e.write(b.fins); b.err == nil && len(b.res) != len(b.fins) {
		b.err = errNoAnswer
		e.Log.Error("write the results of attempts", "attempts", len(b.fins), "error", b.err)
	}
}

var errNoAnswer = errors.New("the store did not answer for every attempt of the call; each is written again by itself")

// take returns the first waiting batch. If there is no batch it returns nil, and the caller is no longer the leader.
func (e *endings) take() *endingBatch {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.leading = false
		return nil
	}
	return e.next()
}

// next dequeues the first waiting batch. The caller holds e.mu.
func (e *endings) next() *endingBatch {
	b := e.waiting[0]
	e.waiting = slices.Delete(e.waiting, 0, 1)
	return b
}

// announce announces each end of a written batch. Listeners and logs may be slow, so they are called in separate
// goroutines.
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
