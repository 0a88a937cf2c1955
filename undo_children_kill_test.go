package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// A worker dies before each of its store calls, and after each call with a lost answer. Each child is
// undone by one task, in order, whichever worker continues.
func TestUndoChildren_Killed(t *testing.T) {
	open := map[string]func(fx *fixture) store.Store{
		"memory": func(*fixture) store.Store { return memstore.New() },
		"sqlite": func(fx *fixture) store.Store { return openMemory(fx) },
	}
	if testing.Short() || underRace {
		delete(open, "sqlite")
	}
	for name, open := range open {
		subtest(t, name, func(fx *fixture) {
			calls := undoChildrenKilledAt(newFixture(fx.T, open(fx)), 0, false)
			for at := 1; at <= calls && !fx.Failed(); at++ {
				for _, stored := range []bool{false, true} {
					undoChildrenKilledAt(newFixture(fx.T, open(fx)), at, stored)
				}
			}
			if calls < 20 {
				fx.Errorf("it took %d calls", calls)
			}
		})
	}
}

// undoChildrenKilledAt undoes a trip whose first worker dies at a call of the store (0: it does not
// die), with that call stored or not. It returns the number of calls of that worker.
func undoChildrenKilledAt(fx *fixture, at int, stored bool) int {
	fx.Helper()
	b := new(bookings)
	cfg := weaver.Config{Lease: 6 * time.Second, DrainTimeout: time.Millisecond, Handlers: []weaver.Handler{
		b.handler(), b.trip(func(context.Context) error { return errors.New("no passport") }),
	}}
	f, dead, n := newFaults(fx), make(chan struct{}), 0
	f.set(nil, nil)
	counts := func(method string) bool { return method == "Record" || method == "Finish" || method == "Operate" }
	cut := errors.New("the test cut the connection")
	f.set(func(method string) error { // under the lock of the faults
		switch {
		case method == "Ready":
			return nil
		case at > 0 && n >= at:
			return fmt.Errorf("%s: %w: %w", method, store.ErrUnavailable, cut)
		case !counts(method):
			return nil
		}
		if n++; n != at {
			return nil
		}
		close(dead)
		if stored {
			return nil
		}
		return fmt.Errorf("%s: %w: %w", method, store.ErrUnavailable, cut)
	}, func(method string) error {
		if at > 0 && n >= at && method != "Ready" {
			return fmt.Errorf("%s: %w: %w", method, store.ErrUnavailable, cut)
		}
		return nil
	})
	h := enqueue(fx, trip, places)
	e := fx.start(f.store, cfg)
	if at > 0 {
		select {
		case <-dead:
		case <-time.After(24 * time.Hour): // fewer calls this time: some were batched
		}
		time.Sleep(time.Second)
		_ = e.stop()
		e = fx.start(fx.store, cfg)
	}
	what := fmt.Sprintf("killed at call %d (stored: %v)", at, stored)
	if got := failure(fx, h); got.Kind != task.KindHandler {
		fx.Errorf("%s: it ended with %v", what, got)
	}
	b.mu.Lock()
	var undos []string
	for _, s := range b.seen {
		if strings.HasPrefix(s, "undo") && (len(undos) == 0 || undos[len(undos)-1] != s) {
			undos = append(undos, s)
		}
	}
	repeats := len(b.seen) - len(booked) - len(allUndone)
	b.mu.Unlock()
	if !slices.Equal(undos, allUndone) || repeats > 2 {
		fx.Errorf("%s: undone were, with %d repeats: %q", what, repeats, undos)
	}
	tasks := undoTasks(fx)
	if len(tasks) != 3 {
		fx.Errorf("%s: %d undo tasks", what, len(tasks))
	}
	snap, err := fx.store.Snapshot(fx.Context(), fx.client.Namespace())
	fx.must(err)
	for _, v := range store.Check(snap) {
		fx.Errorf("%s: %v", what, v)
	}
	fx.must(e.stop())
	return n
}
