package batch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/batch"
)

// late is a context that ends once ready is closed, and only when a goroutine waits for its
// end. Everything until then happens at the same moment for the waiter.
type late struct {
	context.Context
	ready <-chan struct{}
	asked chan struct{}
}

func newLate(ready <-chan struct{}) *late {
	return &late{context.Background(), ready, make(chan struct{}, 1)}
}

// Done implements context.Context.
func (l *late) Done() <-chan struct{} {
	l.asked <- struct{}{}
	<-l.ready
	ended := make(chan struct{})
	close(ended)
	return ended
}

var errLate = errors.New("too late")

// Err implements context.Context. It is nil before ready is closed, so that the operation
// begins.
func (l *late) Err() error {
	select {
	case <-l.ready:
		return errLate
	default:
		return nil
	}
}

// A caller that gives up at the moment of its answer gets its answer.
func TestGivingUpTooLate(t *testing.T) {
	t.Parallel()
	for i := range 60 { // select chooses at random between the answer and the end
		name, want := "a", "<nil>"
		if i%2 == 1 {
			name, want = "fails", "fails"
		}
		synctest.Test(t, func(t *testing.T) {
			l := newLog(t, 10)
			ready := make(chan struct{})
			ctx := newLate(ready)
			answer := make(chan error, 1)
			l.q.TryExclusive(func() {
				go func() { answer <- l.q.Do(ctx, &batch.Op[string]{Do: name}) }()
				<-ctx.asked
				// Another operation behind it, which is committed when both are in the queue.
				go func() {
					if err := l.q.Do(context.Background(), &batch.Op[string]{Do: "b", Urgent: true}); err != nil {
						t.Errorf("b: %v", err)
					}
					close(ready) // a is done as well
				}()
				synctest.Wait()
			})
			if err := <-answer; fmt.Sprint(err) != want {
				t.Fatalf("an operation that was done answered %v, want %s", err, want)
			}
		})
	}
}

// The lead passes on when the caller that receives it gives up.
func TestLeadPassesOnWhenGivenUp(t *testing.T) {
	t.Parallel()
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			l := newLog(t, 10)
			ready := make(chan struct{})
			ctx := newLate(ready)
			answer := make(chan error, 1)
			l.q.TryExclusive(func() {
				go func() { answer <- l.q.Do(ctx, &batch.Op[string]{Do: "a"}) }()
				<-ctx.asked
			})
			close(ready) // a has the lead
			if err := <-answer; err != nil && !errors.Is(err, errLate) {
				t.Fatalf("a: %v", err)
			}
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := l.q.Do(limit, &batch.Op[string]{Do: "b"}); err != nil {
				t.Fatalf("after the lead was given up: %v", err)
			}
		})
	}
}

// A commit that panics before Take fails the waiting operations, once.
func TestPanicBeforeTake(t *testing.T) {
	t.Parallel()
	l := newLog(t, 10)
	panics := 0
	l.before = func() {
		if panics++; panics == 1 {
			panic("boom")
		}
	}
	err := l.q.Do(t.Context(), &batch.Op[string]{Do: "a"})
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the operation answered %v, want the panic", err)
	}
	if err := l.q.Do(t.Context(), &batch.Op[string]{Do: "b"}); err != nil {
		t.Errorf("the next one answered %v", err)
	}
	if panics != 2 {
		t.Errorf("the commit function ran %d times, want 2", panics)
	}
}
