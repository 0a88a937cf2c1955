package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver/internal/batch"
)

// Operations that join while a function runs with the lead are committed afterwards.
func TestJoinedDuringTryExclusive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := batch.New(10, func(g *batch.Group[string]) { g.Take() })
		joined := make(chan error, 1)
		ran := q.TryExclusive(func() {
			go func() { joined <- q.Do(t.Context(), &batch.Op[string]{Do: "joined"}) }()
			synctest.Wait() // it is in the queue
			if len(joined) != 0 {
				t.Error("a group was committed beside the function")
			}
		})
		if err := <-joined; err != nil || !ran {
			t.Errorf("Do = %v, TryExclusive ran: %v", err, ran)
		}
	})
}

// Lighter operations that are not urgent must not overtake an urgent operation that does not
// fit.
func TestUrgentIsNotOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var groups [][]string
		hold := make(chan struct{})
		q := batch.New(4, func(g *batch.Group[string]) {
			var names []string
			for _, o := range g.Take() {
				names = append(names, o.Do)
			}
			groups = append(groups, names)
			if names[0] == "hold" {
				<-hold
			}
		})
		var wg sync.WaitGroup
		for _, o := range []*batch.Op[string]{
			{Do: "hold"}, {Do: "light"}, {Do: "beat", Urgent: true, Weight: 3}, {Do: "heavy beat", Urgent: true, Weight: 2},
		} {
			wg.Go(func() {
				if err := q.Do(t.Context(), o); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(hold)
		wg.Wait()
		want := [][]string{{"hold"}, {"beat"}, {"heavy beat", "light"}}
		if !slices.EqualFunc(groups, want, slices.Equal[[]string]) {
			t.Errorf("committed %q, want %q", groups, want)
		}
	})
}

// An urgent operation waits for a heavy one that is being committed, but not for heavy ones
// that are waiting. Heavy operations are nevertheless in every other group.
func TestUrgentDoesNotWaitForHeavyOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var groups [][]string
		var q *batch.Queue[string]
		var wg sync.WaitGroup
		do := func(o *batch.Op[string]) {
			wg.Go(func() {
				if err := q.Do(t.Context(), o); err != nil {
					t.Error(err)
				}
			})
		}
		hold := make(chan struct{})
		q = batch.New(20, func(g *batch.Group[string]) {
			var names []string
			for _, o := range g.Take() {
				names = append(names, o.Do)
			}
			if groups = append(groups, names); len(groups) == 1 {
				<-hold
			}
			if len(groups) < 5 { // one arrives during each commit
				do(&batch.Op[string]{Do: "beat", Urgent: true, Weight: 3})
				synctest.Wait()
			}
		})
		for _, o := range []*batch.Op[string]{{Do: "hold"}, {Do: "light"}, {Do: "heavy 1", Weight: 15}, {Do: "heavy 2", Weight: 15}} {
			do(o)
			synctest.Wait()
		}
		close(hold)
		wg.Wait()
		want := [][]string{{"hold"}, {"beat", "light"}, {"beat", "heavy 1"}, {"beat"}, {"beat", "heavy 2"}}
		if !slices.EqualFunc(groups, want, slices.Equal[[]string]) {
			t.Errorf("committed %q, want %q", groups, want)
		}
	})
}

// A commit function may deliver the answers and continue with work that no caller waits for.
func TestAnswersMayComeEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tidy := make(chan struct{})
		tidied := false
		q := batch.New(10, func(g *batch.Group[string]) {
			g.Take()
			g.Deliver()
			<-tidy
			tidied = true
		})
		start := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { _ = q.Exclusive(t.Context(), func() { <-start }) })
		synctest.Wait()
		wg.Go(func() { _ = q.Do(t.Context(), &batch.Op[string]{Do: "leads"}) })
		synctest.Wait()
		follower := make(chan error, 1)
		wg.Go(func() { follower <- q.Do(t.Context(), &batch.Op[string]{Do: "follows"}) })
		synctest.Wait()
		close(start)
		if err := <-follower; err != nil || tidied {
			t.Errorf("the follower got %v, after the tidying: %v", err, tidied)
		}
		close(tidy)
		wg.Wait()
	})
}

// Many concurrent callers, some of which give up. An operation is done once, or its caller
// knows that it was not done. There are never two groups at a time.
func TestStorm(t *testing.T) {
	t.Parallel()
	const callers, rounds = 16, 200
	errGone := errors.New("gone")
	var busy, mu sync.Mutex
	done, never := make(map[int]int), make(map[int]bool)
	q := batch.New(7, func(g *batch.Group[int]) {
		if !busy.TryLock() {
			t.Error("two groups at the same time")
			return
		}
		defer busy.Unlock()
		for _, o := range g.Take() {
			done[o.Do]++
		}
	})
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for r := range rounds {
				n := c*rounds + r
				ctx, cancel := context.WithCancelCause(t.Context())
				if n%5 == 0 {
					go cancel(errGone)
				}
				err := q.Do(ctx, &batch.Op[int]{Do: n, Weight: n % 4, Urgent: n%7 == 0})
				switch {
				case err == nil, errors.Is(err, batch.ErrTaken):
				case errors.Is(err, errGone):
					mu.Lock()
					never[n] = true
					mu.Unlock()
				default:
					t.Errorf("operation %d: %v", n, err)
				}
				cancel(nil)
			}
		})
	}
	wg.Wait()
	q.Close(func() {}) // waits for operations that were given up during their commit
	for n := range callers * rounds {
		if want := map[bool]int{true: 0, false: 1}[never[n]]; done[n] != want {
			t.Errorf("operation %d was done %d times, want %d", n, done[n], want)
		}
	}
}
