package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// endings writes the ends of attempts, those that wait in one call, without a goroutine for
// each: the goroutine of an attempt leaves its end here and is over. The one that finds
// nobody writing writes what there is, until nothing waits, so that an attempt alone pays no
// hand-over. An end that the store refuses goes its own way, on a goroutine of its own
// (completer.finish).
type endings struct {
	*completer
	attempts *group.Group   // of the goroutines
	over     func(*Attempt) // gives the attempt's slot back

	mu      sync.Mutex
	waiting []*endingBatch // the first ones are full
	spare   []*endingBatch // empty
	leading bool           // a goroutine writes
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

	res  []store.FinishResult
	err  error // the store refused all of them
	next int   // the first one that is not announced yet
}

// maxSpare is how many batches are kept to be filled again.
const maxSpare = 3

// add writes the end of an attempt whose handler has returned, or leaves it to the goroutine
// that writes others. Then the attempt is over.
func (e *endings) add(a *Attempt, fin store.Finish) {
	kept := fin
	if e.Values.keepFinish(e.work, &kept) != nil {
		e.alone(a, fin, nil)
		return
	}
	e.mu.Lock()
	b := e.filling()
	b.ends, b.fins = append(b.ends, ending{a, fin}), append(b.fins, kept)
	lead := !e.leading
	e.leading = true
	e.mu.Unlock()
	if lead {
		e.lead(nil)
	}
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

// alone writes an end on this goroutine. refused is why the store did not take it with others.
func (e *endings) alone(a *Attempt, fin store.Finish, refused error) {
	res, again := e.finishKept(a, &fin, refused)
	e.say(a, &fin, res, again)
}

// say tells listeners and the log how an attempt ended; then it is over.
func (e *endings) say(a *Attempt, fin *store.Finish, res store.FinishResult, again bool) {
	defer e.over(a)
	e.ended(a, fin, res, again)
}

func (e *endings) spawn(fn func()) {
	e.attempts.Go("attempt", func(context.Context) error {
		fn()
		return nil
	})
}

// lead announces a batch that was written, if there is one, and writes what waits until
// nothing does. After a panic of the store another goroutine goes on.
func (e *endings) lead(b *endingBatch) {
	led := false
	defer func() {
		if !led {
			e.spawn(func() { e.lead(b) })
		}
	}()
	for {
		e.announce(b)
		if b = e.take(); b == nil {
			break
		}
		b.err = errNoAnswer // should the call panic, or end the goroutine
		b.res, b.err = e.write(b.fins)
		if b.err == nil && len(b.res) != len(b.fins) {
			b.err = errNoAnswer
		}
	}
	led = true
}

var errNoAnswer = errors.New("the store gave no answer for each end of an attempt")

// take returns the first batch that waits; nil: there is none, and the caller leads no more.
func (e *endings) take() *endingBatch {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.leading = false
		return nil
	}
	b := e.waiting[0]
	e.waiting = slices.Delete(e.waiting, 0, 1)
	return b
}

// announce says of the ends that were written how they ended, and that they are over. What
// may take long, a listener or the log, is left to goroutines of their own.
func (e *endings) announce(b *endingBatch) {
	if b == nil {
		return
	}
	for b.next < len(b.ends) {
		a, fin := b.ends[b.next].a, &b.ends[b.next].fin
		var res store.FinishResult
		if b.err == nil {
			res = b.res[b.next]
		}
		b.next++
		switch {
		case b.err != nil || errors.Is(res.Err, store.ErrBlobGone):
			fin, refused := *fin, b.err
			e.spawn(func() { e.alone(a, fin, refused) })
		case res.State != task.Succeeded || e.listens():
			fin := *fin
			e.spawn(func() { e.say(a, &fin, res, false) })
		default:
			e.say(a, fin, res, false)
		}
	}
	if b.err != nil {
		return // who knows who still has its list
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
