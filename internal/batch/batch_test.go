package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver/internal/batch"
)

// log is a queue that logs its commits: the names of each group's operations.
type log struct {
	*testing.T
	q      *batch.Queue[string]
	groups [][]string
	busy   bool // during a commit; the lead protects these fields
	before func()
}

func newLog(t *testing.T, max int) *log {
	l := &log{T: t}
	l.q = batch.New(max, func(g *batch.Group[string]) {
		if l.busy {
			t.Error("two groups are committed at once")
		}
		l.busy = true
		defer func() { l.busy = false }()
		if l.before != nil {
			l.before()
		}
		var names []string
		for _, op := range g.Take() {
			names = append(names, op.Do)
			if strings.HasPrefix(op.Do, "fail") {
				op.Err = errors.New(op.Do)
			}
			if op.Do == "panic" {
				panic("boom")
			}
		}
		l.groups = append(l.groups, names)
	})
	return l
}

// holding runs queue while another goroutine has the lead, and returns the groups that were
// committed after it handed the lead over.
func (l *log) holding(queue func(do func(op batch.Op[string]) chan error)) string {
	l.Helper()
	release := make(chan struct{})
	held := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.q.Exclusive(context.Background(), func() { close(held); <-release }); err != nil {
			l.Errorf("Exclusive: %v", err)
		}
	})
	<-held
	queue(func(op batch.Op[string]) chan error {
		done := make(chan error, 1)
		wg.Go(func() { done <- l.q.Do(context.Background(), &op) })
		synctest.Wait() // the operations join in this order
		return done
	})
	l.groups = nil
	close(release)
	wg.Wait()
	return fmt.Sprint(l.groups)
}

func op(name string) batch.Op[string] { return batch.Op[string]{Do: name} }

func TestOneByOne(t *testing.T) {
	t.Parallel()
	l := newLog(t, 10)
	for range 3 {
		if err := l.q.Do(t.Context(), &batch.Op[string]{Do: "a"}); err != nil {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(l.groups); got != "[[a] [a] [a]]" {
		t.Errorf("groups %s", got)
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 10)
		var failed, fine chan error
		got := l.holding(func(do func(batch.Op[string]) chan error) {
			fine = do(op("a"))
			failed = do(op("fail b"))
			do(op("c"))
		})
		if got != "[[a fail b c]]" {
			t.Errorf("groups %s", got)
		}
		if err := <-fine; err != nil {
			t.Error(err)
		}
		if err := <-failed; err == nil || err.Error() != "fail b" {
			t.Errorf("the one that failed got %v", err)
		}
	})
}

func TestUrgentFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 3)
		got := l.holding(func(do func(batch.Op[string]) chan error) {
			for _, name := range []string{"a", "b", "c"} {
				do(op(name))
			}
			do(batch.Op[string]{Do: "beat 1", Urgent: true})
			do(batch.Op[string]{Do: "beat 2", Urgent: true})
		})
		if got != "[[beat 1 beat 2 a] [b c]]" {
			t.Errorf("groups %s", got)
		}
	})
}

func TestWeight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 10)
		got := l.holding(func(do func(batch.Op[string]) chan error) {
			for i, weight := range []int{4, 6, 1, 50, 10, 0, 0} {
				do(batch.Op[string]{Do: fmt.Sprint(i), Weight: weight})
			}
		})
		if got != "[[0 1] [2] [3] [4] [5 6]]" {
			t.Errorf("groups %s", got)
		}
	})
}

func TestPanicHarmsOneGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 2)
		var answers []chan error
		l.holding(func(do func(batch.Op[string]) chan error) {
			for _, name := range []string{"a", "panic", "b"} {
				answers = append(answers, do(op(name)))
			}
		})
		for i, want := range []bool{false, false, true} {
			err := <-answers[i]
			if (err == nil) != want {
				t.Errorf("operation %d: %v", i, err)
			}
			if err != nil && !strings.Contains(err.Error(), "boom") {
				t.Errorf("the error %v does not contain the panic", err)
			}
		}
	})
}

func TestGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 10)
		cause := errors.New("cause")
		taken, goOn := make(chan struct{}), make(chan struct{})
		l.before = nil
		ctx := func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(t.Context()) }

		// In the queue.
		queued, giveUp := ctx()
		var queuedErr error
		got := l.holding(func(do func(batch.Op[string]) chan error) {
			do(op("a"))
			done := make(chan struct{})
			go func() {
				defer close(done)
				queuedErr = l.q.Do(queued, &batch.Op[string]{Do: "never"})
			}()
			synctest.Wait()
			giveUp(cause)
			<-done
			do(op("b"))
		})
		if got != "[[a b]]" || !errors.Is(queuedErr, cause) || errors.Is(queuedErr, batch.ErrTaken) {
			t.Errorf("groups %s, error %v", got, queuedErr)
		}

		// While another caller commits it.
		inside, giveUp := ctx()
		l.q = batch.New(10, func(g *batch.Group[string]) {
			g.Take()
			close(taken)
			<-goOn
		})
		var wg sync.WaitGroup
		var insideErr error
		hold := make(chan struct{})
		wg.Go(func() { _ = l.q.Exclusive(context.Background(), func() { <-hold }) })
		synctest.Wait()
		wg.Go(func() { _ = l.q.Do(context.Background(), &batch.Op[string]{Do: "leader"}) })
		synctest.Wait()
		wg.Go(func() { insideErr = l.q.Do(inside, &batch.Op[string]{Do: "follower"}) })
		synctest.Wait()
		close(hold)
		<-taken
		giveUp(cause)
		synctest.Wait()
		if !errors.Is(insideErr, batch.ErrTaken) || !errors.Is(insideErr, cause) {
			t.Errorf("error %v, want ErrTaken for the cause", insideErr)
		}
		close(goOn)
		wg.Wait()

		// Before it began.
		if err := l.q.Do(inside, &batch.Op[string]{Do: "late"}); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	})
}

// A caller that is handed the lead and gives up at that moment passes it on.
func TestLeadIsNeverLost(t *testing.T) {
	t.Parallel()
	l := newLog(t, 4)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+j)%3 == 0 {
					go cancel()
				}
				err := l.q.Do(ctx, &batch.Op[string]{Do: "x", Urgent: j%5 == 0})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if err := l.q.Do(t.Context(), &batch.Op[string]{Do: "last"}); err != nil {
		t.Error(err)
	}
}

func TestExclusive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 10)
		var order []string
		var wg sync.WaitGroup
		got := l.holding(func(do func(batch.Op[string]) chan error) {
			do(op("a"))
			wg.Go(func() {
				err := l.q.Exclusive(context.Background(), func() { order = append(order, fmt.Sprint(l.groups)) })
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			do(op("b"))
			if l.q.TryExclusive(func() { t.Error("ran beside another") }) {
				t.Error("TryExclusive did not see the other")
			}
		})
		wg.Wait()
		if got != "[[a] [b]]" || !slices.Equal(order, []string{"[[a]]"}) {
			t.Errorf("groups %s, at the exclusive one %v: it must stand between them", got, order)
		}
		if ran := false; !l.q.TryExclusive(func() { ran = true }) || !ran {
			t.Error("TryExclusive did not run")
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, 10)
		var closed string
		var wg sync.WaitGroup
		l.holding(func(do func(batch.Op[string]) chan error) {
			do(op("a"))
			wg.Go(func() { l.q.Close(func() { closed = fmt.Sprint(l.groups) }) })
			synctest.Wait()
			if err := l.q.Do(t.Context(), &batch.Op[string]{Do: "late"}); !errors.Is(err, batch.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
		wg.Wait()
		if closed != "[[a]]" {
			t.Errorf("closed when %s was committed, want [[a]]", closed)
		}
		l.q.Close(func() { t.Error("closed twice") })
		if l.q.TryExclusive(func() {}) {
			t.Error("TryExclusive runs on a closed queue")
		}
	})
}

func TestCommitMustTake(t *testing.T) {
	t.Parallel()
	q := batch.New(10, func(*batch.Group[int]) {})
	if err := q.Do(t.Context(), &batch.Op[int]{}); err == nil {
		t.Error("an operation that was not taken succeeded")
	}
}
