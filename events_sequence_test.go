package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

var counted = weaver.Define[string, string]("engine.sequence.run.v1", weaver.MaxAttempts(3))

// all returns the events so far.
func (r *recorder) all() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// The events of a task are numbered within the epoch of its lease.
func TestSequence(t *testing.T) {
	subtest(t, "each event has the next number of its lease", func(fx *fixture) {
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{counted.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := weaver.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			if weaver.Current(ctx).AttemptNo == 1 {
				return "", errors.New("once more")
			}
			return "", weaver.Emit(ctx, "rows", 1)
		})}})
		result(fx, enqueue(fx, counted, ""))
		synctest.Wait()
		var got []string
		for _, ev := range r.all() {
			h := ev.Head()
			number := fmt.Sprint(h.Sequence & (1<<24 - 1))
			if h.Sequence == event.LastSequence(h.Sequence>>24) {
				number = "last"
			}
			got = append(got, fmt.Sprint(ev.Type(), " ", h.Sequence>>24, ".", number))
		}
		want := []string{
			"task.started 1.1", "step.started 1.2", "step.completed 1.3", "task.retrying 1.last",
			"task.started 2.1", "stream.chunk 2.2", "task.succeeded 2.last",
		}
		if !slices.Equal(got, want) {
			fx.Errorf("events:\n got %q\nwant %q", got, want)
		}
	})
	subtest(t, "steps beside each other have numbers of their own", func(fx *fixture) {
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{counted.Handler(func(ctx context.Context, _ string) (string, error) {
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					_ = weaver.Do(ctx, fmt.Sprint("s", i), func(context.Context) error { return nil })
				})
			}
			wg.Wait()
			return "", nil
		})}})
		result(fx, enqueue(fx, counted, ""))
		synctest.Wait()
		seen := map[int64]string{}
		for _, ev := range r.all() {
			n := ev.Head().Sequence
			if seen[n] != "" {
				fx.Errorf("%s and %s have the number %d", seen[n], ev.Type(), n)
			}
			seen[n] = ev.Type()
		}
		equal(fx, "events", len(seen), 42)
		equal(fx, "the first", seen[1<<24+1], "task.started")
		equal(fx, "the last", seen[event.LastSequence(1)], "task.succeeded")
	})
}

// A lost lease produces an event in its holder, and in the process that took it.
func TestLostLeaseEvents(t *testing.T) {
	subtest(t, "of the holder", func(fx *fixture) {
		r, g := &recorder{}, newGate()
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{counted.Handler(func(ctx context.Context, _ string) (string, error) {
			g.in <- struct{}{}
			<-g.out
			return "late", nil
		})}})
		h := enqueue(fx, counted, "")
		<-g.in
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		g.open()
		synctest.Wait()
		events := r.all()
		lost, ok := events[len(events)-1].(event.TaskLeaseLost)
		if !ok || lost.TaskID != h.ID() || lost.State != "" || lost.Sequence != 1<<24+2 || len(events) != 2 {
			fx.Errorf("events %+v", events)
		}
	})
	subtest(t, "of the reaper", func(fx *fixture) {
		f := newFaults(fx)
		g := newGate()
		handler := counted.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "again", nil
			}
			g.in <- struct{}{}
			<-g.out
			return "late", nil
		})
		cut := fx.start(f.store, weaver.Config{Handlers: []weaver.Handler{handler}})
		h := enqueue(fx, counted, "")
		<-g.in
		f.cut()
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{handler}})
		equal(fx, "output", result(fx, h), "again")
		synctest.Wait()
		var lost []event.TaskLeaseLost
		for _, ev := range r.all() {
			if ev, ok := ev.(event.TaskLeaseLost); ok {
				lost = append(lost, ev)
			}
		}
		if len(lost) != 1 || lost[0].State != task.Ready || lost[0].TaskID != h.ID() || lost[0].TaskType != counted.Name() || lost[0].AttemptNo != 1 ||
			lost[0].Sequence != 1<<24+1<<23 || lost[0].Duration < store.DefaultLease {
			fx.Errorf("events of lost leases %+v", lost)
		}
		f.mend()
		g.open()
		_ = cut.stop()
	})
}

// A task released by a drain produces an event, also if its handler does not return.
func TestDrainEvents(t *testing.T) {
	for name, returns := range map[string]bool{"a handler that returns": true, "one that does not": false} {
		subtest(t, name, func(fx *fixture) {
			r, started, end := &recorder{}, make(chan struct{}), make(chan struct{})
			e := fx.start(fx.store, weaver.Config{Sink: r, DrainTimeout: time.Second, Handlers: []weaver.Handler{counted.Handler(func(ctx context.Context, _ string) (string, error) {
				close(started)
				if !returns {
					<-end
				}
				<-ctx.Done()
				return "", ctx.Err()
			})}})
			enqueue(fx, counted, "")
			<-started
			err := e.stop()
			equal(fx, "it returned", err == nil, returns)
			close(end)
			synctest.Wait()
			events := r.all()
			last, ok := events[len(events)-1].(event.TaskReleased)
			if !ok || last.Sequence != event.LastSequence(1) || last.Duration < time.Second || len(events) != 2 {
				fx.Errorf("events %+v", events)
			}
		})
	}
}

// The end and the block of a job each produce one event.
func TestJobSettled(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Sink: r, Decider: decide.Default{}, Handlers: []weaver.Handler{counted.Handler(func(ctx context.Context, in string) (string, error) {
			if _, ok, _ := weaver.UnblockInput[string](ctx); in == "block" && !ok {
				return "", weaver.Blocked("is it right?")
			}
			return "", nil
		})}})
		settled := func() (got []string) {
			synctest.Wait()
			for _, ev := range r.all() {
				if ev, ok := ev.(event.JobSettled); ok {
					got = append(got, fmt.Sprint(ev.Name, " ", ev.State, " ", ev.Counters.Succeeded, " of ", ev.Counters.Total, " after ", ev.Duration.Round(time.Second)))
				}
			}
			return got
		}
		j := weaver.NewJob("many")
		for i := range 30 {
			j.Add(fmt.Sprint(i), counted.With(""))
		}
		jobResult(fx, submit(fx, j))
		want := []string{"many succeeded 30 of 30 after 0s"}
		if got := settled(); !slices.Equal(got, want) {
			fx.Errorf("events %q, want %q", got, want)
		}
		j = weaver.NewJob("asks")
		a := j.Add("a", counted.With("block"))
		j.Add("b", counted.With(""), weaver.Needs(a))
		h := submit(fx, j)
		time.Sleep(time.Hour)
		synctest.Wait()
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{States: []weaver.State{weaver.StateBlocked}})
		fx.must(err)
		fx.must(fx.client.Unblock(fx.Context(), list[0].ID, "yes"))
		_, err = h.Wait(fx.Context(), weaver.WaitThroughBlocked())
		fx.must(err)
		want = append(want, "asks blocked 0 of 2 after 0s", "asks succeeded 2 of 2 after 1h0m0s")
		if got := settled(); !slices.Equal(got, want) {
			fx.Errorf("events %q, want %q", got, want)
		}
	})
}
