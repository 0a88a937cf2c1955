package httpapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A name with many requests holds at most its share, and waits behind a name without a turn so far.
func TestShares_TakesTurnsByName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShares(3, 2)
		var order []string
		take := func(name string, n int64) func() {
			release, err := s.take(t.Context(), name, n)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first, second := take("a", 1), take("a", 1)
		for _, name := range []string{"a", "a", "b"} {
			go func() {
				release := take(name, 2)
				order = append(order, name)
				release()
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatalf("%v came in: b wants two of one", order)
		}
		first()
		synctest.Wait()
		if len(order) == 0 || order[0] != "b" {
			t.Errorf("%v came in, want b first", order)
		}
		second()
		second() // a second call has no effect
		synctest.Wait()
		if len(order) != 3 || s.held != 0 || len(s.byName) != 0 || len(s.waiting) != 0 {
			t.Errorf("%v came in; %d units are held by %d names, %d wait", order, s.held, len(s.byName), len(s.waiting))
		}
	})
}

func TestShares_GivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShares(1, 1)
		release, err := s.take(t.Context(), "a", 5) // all that exist
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() { _, err := s.take(ctx, "a", 1); ended <- err }()
		}
		synctest.Wait()
		if _, err := s.take(ctx, "a", 1); !errors.Is(err, errCrowded) {
			t.Errorf("one too many: %v", err)
		}
		cancel()
		for range maxWaiting {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("a waiter ended with %v", err)
			}
		}
		release()
		if release, err = s.take(t.Context(), "b", 1); err != nil {
			t.Fatal(err)
		}
		release()
		if s.held != 0 || len(s.byName) != 0 {
			t.Errorf("%d units are held by %d names", s.held, len(s.byName))
		}
	})
}
