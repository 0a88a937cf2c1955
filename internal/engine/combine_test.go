package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/task"
)

// batches is a call that doubles numbers, and remembers what it was given.
type batches struct {
	mu     sync.Mutex
	seen   [][]int
	gate   chan struct{}     // each call waits for one; nil: none does
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

// must is do of a first try that is not refused.
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
		b.gate <- struct{}{} // all that came meanwhile, led by one of them
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

// What a store may say and what the handler's error becomes.
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
