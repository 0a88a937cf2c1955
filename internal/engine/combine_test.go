package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// batches is a call that doubles numbers and records its arguments.
type batches struct {
	mu     sync.Mutex
	seen   [][]int
	gate   chan struct{}     // each call waits for one; nil: calls do not wait
	refuse func([]int) error // nil: refuses nothing
}

func (b *batches) run(qs []int) ([]string, error) {
	b.mu.Lock()
	b.seen = append(b.seen, slices.Clone(qs))
	b.mu.Unlock()
	if b.gate != nil {
		<-b.gate
	}
	if b.refuse != nil {
		if err := b.refuse(qs); err != nil {
			return nil, err
		}
	}
	rs := make([]string, len(qs))
	for i, q := range qs {
		if q < 0 {
			panic(fmt.Sprint("bad ", q))
		}
		rs[i] = fmt.Sprint(2 * q)
	}
	return rs, nil
}

func newDoubler(b *batches) *combiner[int, string] {
	return newCombiner(b.run, func(err error) string { return "error: " + err.Error() })
}

// must is do for a first try, which must not be refused.
func must(t *testing.T, c *combiner[int, string], q int) string {
	t.Helper()
	r, err := c.do(q, 1)
	if err != nil {
		t.Errorf("do(%d): %v", q, err)
	}
	return r
}

func TestCombinerServesASingleCallerAtOnce(t *testing.T) {
	b := &batches{}
	c := newDoubler(b)
	for i := range 3 {
		if got := must(t, c, i); got != fmt.Sprint(2*i) {
			t.Errorf("do(%d) = %s", i, got)
		}
	}
	if len(b.seen) != 3 {
		t.Errorf("%d calls, want one each: %v", len(b.seen), b.seen)
	}
}

func TestCombinerCombinesManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batches{gate: make(chan struct{})}
		c := newDoubler(b)
		const n = 50
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if got := must(t, c, i); got != fmt.Sprint(2*i) {
					t.Errorf("do(%d) = %s: the answer to another call", i, got)
				}
			})
			synctest.Wait() // so that the order of arrival is known
		}
		b.gate <- struct{}{} // the first, which came alone
		b.gate <- struct{}{} // the elements that came meanwhile, written by one of them
		wg.Wait()
		want := []int{}
		for i := range n {
			want = append(want, i)
		}
		if len(b.seen) != 2 || !slices.Equal(slices.Concat(b.seen...), want) {
			t.Errorf("calls %v, want [0] and the others in their order", b.seen)
		}
	})
}

func TestCombinerBoundsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batches{gate: make(chan struct{})}
		c := newDoubler(b)
		var wg sync.WaitGroup
		for i := range 1 + combinedMax + 5 {
			wg.Go(func() { must(t, c, i) })
		}
		synctest.Wait()
		close(b.gate)
		wg.Wait()
		var sizes []int
		for _, qs := range b.seen {
			sizes = append(sizes, len(qs))
		}
		if !slices.Equal(sizes, []int{1, combinedMax, 5}) {
			t.Errorf("batches of %v", sizes)
		}
	})
}

func TestCombinerSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batches{gate: make(chan struct{})}
		c := newDoubler(b)
		answers := map[int]string{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, q := range []int{1, -2, 3} { // the second and third share a call
			wg.Go(func() {
				r := must(t, c, q)
				mu.Lock()
				defer mu.Unlock()
				answers[q] = r
			})
			synctest.Wait()
		}
		close(b.gate)
		wg.Wait()
		if answers[1] != "2" {
			t.Errorf("the call before the panic answered %q", answers[1])
		}
		for _, q := range []int{-2, 3} {
			if !strings.Contains(answers[q], "bad -2") {
				t.Errorf("do(%d) in the call that panicked answered %q", q, answers[q])
			}
		}
		if got := must(t, c, 4); got != "8" {
			t.Errorf("after the panic: %q", got)
		}
	})
}

// crowd writes every q in one call, with the given try number, and returns the refused ones.
func crowd(c *combiner[int, string], b *batches, try int, qs ...int) (refused []int) {
	b.gate = make(chan struct{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.do(100, 1) }) // occupies the queue while the others come
	synctest.Wait()
	for _, q := range qs {
		wg.Go(func() {
			r, err := c.do(q, try)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused = append(refused, q)
			} else if r != fmt.Sprint(2*q) {
				refused = append(refused, -q)
			}
		})
		synctest.Wait()
	}
	close(b.gate)
	wg.Wait()
	slices.Sort(refused)
	return refused
}

func TestCombinerSplitsABatchRefusedThreeTimes(t *testing.T) {
	bad := errors.New("a bad row")
	for _, c := range []struct {
		name    string
		try     int
		err     error
		refused []int
		seen    string
	}{
		{"the second time", 2, bad, []int{0, 1, 2, 3, 4, 5, 6}, "[[0 1 2 3 4 5 6]]"},
		{"the third time", 3, bad, []int{4}, "[[0 1 2 3 4 5 6] [0 1 2] [3 4 5 6] [3 4] [3] [4] [5 6]]"},
		{"the store cannot write", 3, fmt.Errorf("write: %w", store.ErrBusy), []int{0, 1, 2, 3, 4, 5, 6}, "[[0 1 2 3 4 5 6]]"},
		{"the store is closed", 3, store.ErrClosed, []int{0, 1, 2, 3, 4, 5, 6}, "[[0 1 2 3 4 5 6]]"},
		{"no answer in time", 3, context.DeadlineExceeded, []int{0, 1, 2, 3, 4, 5, 6}, "[[0 1 2 3 4 5 6]]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &batches{refuse: func(qs []int) error {
					if slices.Contains(qs, 4) {
						return c.err
					}
					return nil
				}}
				d := newDoubler(b)
				refused := crowd(d, b, c.try, 0, 1, 2, 3, 4, 5, 6)
				if !slices.Equal(refused, c.refused) {
					t.Errorf("refused %v, want %v", refused, c.refused)
				}
				if got := fmt.Sprint(b.seen[1:]); got != c.seen {
					t.Errorf("calls %s, want %s", got, c.seen)
				}
			})
		})
	}
}

func TestStepPause(t *testing.T) {
	for _, c := range []struct {
		base time.Duration
		try  int
		want time.Duration
	}{
		{100 * time.Millisecond, 1, 100 * time.Millisecond},
		{100 * time.Millisecond, 4, 800 * time.Millisecond},
		{0, 50, 0},
		{time.Hour, 5, 16 * time.Hour},
		{3 * time.Hour, 100, 24 * time.Hour}, // would overflow
	} {
		if got := stepPause(c.base, c.try); got != c.want {
			t.Errorf("stepPause(%s, %d) = %s, want %s", c.base, c.try, got, c.want)
		}
	}
}

// Errors of a store and the resulting kinds of the handler's error.
func TestKindOf(t *testing.T) {
	for want, err := range map[string]error{
		"handler_error":    errors.New("no"),
		"panic":            fmt.Errorf("wrapped: %w", &task.PanicError{Value: "boom"}),
		"timeout":          errors.Join(ErrTimeout, errors.New("no")),
		"validation_error": &task.StepError{Step: "s", Kind: "validation_error", Message: "no"},
		"decode_error":     fmt.Errorf("wrapped: %w", &KindError{Kind: "decode_error", Err: errors.New("no")}),
	} {
		if got := kindOf(err); string(got) != want {
			t.Errorf("kindOf(%v) = %s, want %s", err, got, want)
		}
	}
}
