package httpapi

import (
	"context"
	"errors"
	"sync"
)

// maxWaiting is the number of requests of one name that may wait for a share.
const maxWaiting = 500

// errCrowded means that too many requests of one name already wait.
var errCrowded = errors.New("too many wait already")

// shares is a weighted semaphore whose holders have names. Among the waiters, the name with the
// oldest last turn is first, so that one name with many requests does not delay the others.
type shares struct {
	all, each int64 // units in the process, and of one name; each is at most all

	mu      sync.Mutex
	held    int64
	byName  map[string]*share
	waiting []*waiter // in order of arrival
	turns   int64
}

// share counts the units that one name holds.
type share struct {
	held, last int64 // last: the number of its last turn
	users      int   // holders and waiters
	holders    int
}

type waiter struct {
	name  string
	n     int64
	ready chan struct{} // closed when it holds its units
}

func newShares(all, each int64) *shares {
	return &shares{all: all, each: min(each, all), byName: make(map[string]*share)}
}

// take waits until the name may hold n more units. It holds them until release is called; further
// calls of release have no effect. A larger n than one name may hold counts as that maximum. The
// error is the context's.
func (s *shares) take(ctx context.Context, name string, n int64) (release func(), err error) {
	w := &waiter{name: name, n: min(n, s.each), ready: make(chan struct{})}
	s.mu.Lock()
	of := s.byName[name]
	if of == nil {
		of = new(share)
		s.byName[name] = of
	}
	if of.users-of.holders >= maxWaiting {
		s.mu.Unlock()
		return nil, errCrowded
	}
	of.users++
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.ready: // even if ctx has ended
		return sync.OnceFunc(func() { s.leave(w, true) }), nil
	default:
	}
	select {
	case <-w.ready:
		return sync.OnceFunc(func() { s.leave(w, true) }), nil
	case <-ctx.Done():
		s.leave(w, false)
		return nil, context.Cause(ctx)
	}
}

// leave returns a waiter's units, also if they were granted after it gave up.
func (s *shares) leave(w *waiter, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.byName[w.name]
	if !held {
		select {
		case <-w.ready:
			held = true
		default:
			s.drop(w)
		}
	}
	if held {
		s.held -= w.n
		of.held -= w.n
		of.holders--
	}
	if of.users--; of.users == 0 {
		delete(s.byName, w.name)
	}
	s.grant()
}

func (s *shares) drop(w *waiter) {
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return
		}
	}
}

// grant admits waiters. It waits for one that does not fit yet, so that smaller ones do not pass it
// indefinitely.
func (s *shares) grant() {
	for {
		var next *waiter
		for _, w := range s.waiting {
			if of := s.byName[w.name]; of.held+w.n <= s.each && (next == nil || of.last < s.byName[next.name].last) {
				next = w
			}
		}
		if next == nil || s.held+next.n > s.all {
			return
		}
		s.drop(next)
		of := s.byName[next.name]
		s.turns++
		of.last = s.turns
		of.held += next.n
		of.holders++
		s.held += next.n
		close(next.ready)
	}
}
