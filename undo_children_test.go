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
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	trip = weaver.Define[[]string, string]("engine.undo.trip.v1", weaver.NoRetry())
	book = weaver.Define[string, string]("engine.undo.book.v1", weaver.NoRetry())
)

// bookings are the children of trips: each books in one step, which its undo cancels.
type bookings struct{ shopping }

// handler books in two steps, of which the second has no effect.
func (b *bookings) handler() weaver.Handler {
	return book.Handler(func(ctx context.Context, what string) (string, error) {
		ref, err := b.book(ctx, what)
		if err != nil {
			return "", err
		}
		if err := weaver.Sleep(ctx, "settle", time.Minute); err != nil {
			return "", err
		}
		if _, err := weaver.Step(ctx, "label", func(context.Context) (string, error) { return "label", nil }); err != nil {
			return "", err
		}
		if strings.HasPrefix(what, "sold out") {
			return "", errors.New(what)
		}
		return ref, nil
	})
}

func (b *bookings) book(ctx context.Context, what string) (string, error) {
	me := weaver.Current(ctx).TaskID
	return weaver.Step(ctx, "book", func(context.Context) (string, error) {
		return "ref " + what, b.call("book " + what)
	}, weaver.UndoRetry(b.limit), weaver.Undo(func(ctx context.Context, u weaver.Undoing[string]) error {
		cur := weaver.Current(ctx)
		if u.Key != cur.StepKey("book") || cur.TaskID != me || !cur.Undoing || !strings.HasPrefix(u.Key, me.String()) {
			return weaver.Permanent(fmt.Errorf("wrong key %s of %v", u.Key, cur.TaskID))
		}
		return b.call(fmt.Sprintf("undo %s (%s)", u.Out, u.Key[len(me.String()):]))
	}))
}

// trip books all of its places at once, then runs the rest.
func (b *bookings) trip(then func(ctx context.Context) error) weaver.Handler {
	return trip.Handler(func(ctx context.Context, places []string) (string, error) {
		if _, err := b.book(ctx, "seat"); err != nil {
			return "", err
		}
		refs, err := weaver.CallAll(ctx, "places", book, places, weaver.UndoChildren())
		if err != nil {
			return "", err
		}
		if _, err := weaver.Call(ctx, "last", book, "museum", weaver.UndoChildren()); err != nil {
			return "", err
		}
		return strings.Join(refs, ", "), then(ctx)
	})
}

// undoTasks lists the undo tasks in order of creation.
func undoTasks(fx *fixture) (list []task.Task) {
	fx.Helper()
	page, _, err := fx.client.List(fx.Context(), weaver.Filter{Limit: 100})
	if err != nil {
		fx.Fatal(err)
	}
	for _, t := range page {
		if !t.UndoOf.IsZero() {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(x, y task.Task) int { return x.ID.Compare(y.ID) })
	return list
}

var booked = []string{"book seat", "book hotel", "book car", "book museum"}

var allUndone = []string{"undo ref museum (:book)", "undo ref car (:book)", "undo ref hotel (:book)", "undo ref seat (:book)"}

var places = []string{"hotel", "car"}

// If a task ends without success, for any reason, its succeeded children are undone in reverse order,
// each in its own task.
func TestUndoChildren(t *testing.T) {
	wait := func(ctx context.Context) error { return weaver.Sleep(ctx, "nap", time.Hour) }
	cancel := func(opts ...weaver.OperateOption) func(fx *fixture, id weaver.TaskID) {
		return func(fx *fixture, id weaver.TaskID) { fx.must(fx.client.Cancel(fx.Context(), id, opts...)) }
	}
	for how, end := range map[string]struct {
		opts  []weaver.EnqueueOption
		then  func(ctx context.Context) error
		ask   func(fx *fixture, id weaver.TaskID) // ten minutes after the start
		state weaver.State
		kind  task.ErrorKind
	}{
		"a failure":         {nil, func(context.Context) error { return errors.New("no passport") }, nil, weaver.StateFailed, task.KindHandler},
		"a panic":           {nil, func(context.Context) error { panic("nil map") }, nil, weaver.StateFailed, task.KindPanic},
		"a cancel":          {nil, wait, cancel(), weaver.StateCancelled, task.KindCancelled},
		"a forced cancel":   {nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, cancel(weaver.Force()), weaver.StateCancelled, task.KindCancelled},
		"a deadline":        {[]weaver.EnqueueOption{weaver.ExpireAfter(30 * time.Minute)}, wait, nil, weaver.StateCancelled, task.KindDeadline},
		"a cancel, blocked": {nil, func(context.Context) error { return weaver.Blocked("and now?") }, cancel(), weaver.StateCancelled, task.KindCancelled},
	} {
		subtest(t, "after "+how, func(fx *fixture) {
			stores := []store.Store{fx.store}
			if how == "a failure" || how == "a cancel" {
				stores = append(stores, polled(openStore(fx)))
			}
			for _, s := range stores {
				fx, b := newFixture(fx.T, s), new(bookings)
				e := fx.start(s, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{b.handler(), b.trip(end.then)}})
				h := enqueue(fx, trip, places, end.opts...)
				if end.ask != nil {
					time.Sleep(10 * time.Minute)
					end.ask(fx, h.ID())
				}
				got := failure(fx, h)
				equal(fx, "state and kind", fmt.Sprint(got.State, " ", got.Kind), fmt.Sprint(end.state, " ", end.kind))
				b.sawSorted(fx, booked, allUndone)
				b.undid(fx, h.ID(), "last[0]", "places[1]", "places[0]")
				fx.must(e.stop())
			}
		})
	}

	subtest(t, "not after a success, and not without UndoChildren", func(fx *fixture) {
		b := new(bookings)
		fx.run(b.handler(), b.trip(func(context.Context) error { return nil }))
		equal(fx, "output", result(fx, enqueue(fx, trip, places)), "ref hotel, ref car")
		equal(fx, "undo tasks", len(undoTasks(fx)), 0)
		plain := weaver.Define[string, string]("engine.undo.plain.v1", weaver.NoRetry())
		fx.run(b.handler(), plain.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, err := weaver.Call(ctx, "room", book, "room"); err != nil {
				return "", err
			}
			return "", errors.New("no passport")
		}))
		h := enqueue(fx, plain, "")
		fails(fx, h)
		equal(fx, "undo tasks", len(undoTasks(fx)), 0)
		equal(fx, "steps to undo", fx.get(fx.history(h.ID()).Needs[0].ID).UndoOpen, 1)
	})

	subtest(t, "a child that has nothing to undo is left alone, and one that failed", func(fx *fixture) {
		b, cleaned := new(bookings), 0
		simple := weaver.Define[string, string]("engine.undo.simple.v1", weaver.CleanupWhenCancelled())
		fx.run(b.handler(), simple.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "cleans" {
				return in, weaver.Cleanup(ctx, "sweep", func(context.Context) error { cleaned++; return nil })
			}
			return in, nil
		}), trip.Handler(func(ctx context.Context, places []string) (string, error) {
			_, err := weaver.CallAll(ctx, "simple", simple, []string{"cleans", "nothing"}, weaver.UndoChildren())
			if err == nil {
				_, err = weaver.CallAll(ctx, "places", book, places, weaver.UndoChildren())
			}
			return "", err
		}))
		h := enqueue(fx, trip, []string{"hotel", "sold out"})
		equal(fx, "kind", failure(fx, h).Kind, task.KindHandler)
		b.sawSorted(fx, []string{"book hotel", "book sold out"}, []string{"undo ref sold out (:book)", "undo ref hotel (:book)"})
		equal(fx, "cleanups", cleaned, 1)
		b.undid(fx, h.ID(), "places[0]")
	})

	subtest(t, "a cancel while children run undoes those that succeeded", func(fx *fixture) {
		b := new(bookings)
		slow := weaver.Define[string, string]("engine.undo.slow.v1", weaver.NoRetry())
		fx.run(b.handler(), slow.Handler(func(ctx context.Context, what string) (string, error) {
			if _, err := b.book(ctx, what); err != nil {
				return "", err
			}
			if what == "quick" {
				return "", nil
			}
			return "", weaver.Sleep(ctx, "nap", time.Hour)
		}), trip.Handler(func(ctx context.Context, _ []string) (string, error) {
			_, err := weaver.CallAll(ctx, "slow", slow, []string{"quick", "slow"}, weaver.UndoChildren())
			return "", err
		}))
		h := enqueue(fx, trip, nil)
		time.Sleep(time.Minute)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		b.sawSorted(fx, []string{"book quick", "book slow"}, []string{"undo ref slow (:book)", "undo ref quick (:book)"})
		b.undid(fx, h.ID(), "slow[0]")
	})

	subtest(t, "what children called in their turn is undone with them", func(fx *fixture) {
		b := new(bookings)
		middle := weaver.Define[string, string]("engine.undo.middle.v1", weaver.NoRetry())
		fx.run(b.handler(), middle.Handler(func(ctx context.Context, what string) (string, error) {
			if _, err := b.book(ctx, what+" 1"); err != nil {
				return "", err
			}
			out, err := weaver.Call(ctx, "below", book, what+" 2", weaver.UndoChildren())
			return out, err
		}), trip.Handler(func(ctx context.Context, _ []string) (string, error) {
			if _, err := weaver.Call(ctx, "middle", middle, "tour", weaver.UndoChildren()); err != nil {
				return "", err
			}
			return "", errors.New("no passport")
		}))
		h := enqueue(fx, trip, nil)
		fails(fx, h)
		b.saw(fx, "book tour 1", "book tour 2", "undo ref tour 2 (:book)", "undo ref tour 1 (:book)")
		tasks := undoTasks(fx)
		equal(fx, "undo tasks", len(tasks), 2)
		equal(fx, "the lower one is made by the upper", tasks[1].ParentID, tasks[0].ID)
		fx.wantOutcomes(tasks[0].ID, task.OutcomeSuspended, task.OutcomeUndone)
	})
}

// undid compares the tasks that undid children of a task, in order.
func (b *bookings) undid(fx *fixture, id weaver.TaskID, nodes ...string) {
	fx.Helper()
	tasks := undoTasks(fx)
	if len(tasks) != len(nodes) {
		fx.Fatalf("%d undo tasks, want %d", len(tasks), len(nodes))
	}
	for i := range tasks {
		u := &tasks[i]
		child := fx.get(u.UndoOf)
		equal(fx, "the child", child.Node, nodes[i])
		equal(fx, "the child's state", child.State, weaver.StateSucceeded)
		equal(fx, "what it has to undo", child.UndoOpen, 0)
		equal(fx, "the state", u.State, weaver.StateSucceeded)
		equal(fx, "the type", u.Type, child.Type)
		equal(fx, "the parent", u.ParentID, id)
		fx.wantOutcomes(u.ID, task.OutcomeUndone)
		if steps := fx.history(u.ID).Steps; len(steps) != 1 || steps[0].Kind != task.KindUndo {
			fx.Errorf("its history has the steps %+v", steps)
		}
	}
	if info := fx.get(id); info.UndoOpen != 0 || info.Undo != nil {
		fx.Errorf("the caller ended with %d steps to undo, phase %+v", info.UndoOpen, info.Undo)
	}
}

// A failed undo of a child is retried by its own task, while the caller waits.
func TestUndoChildren_Retries(t *testing.T) {
	fail := func(context.Context) error { return errors.New("no passport") }
	subtest(t, "until it works", func(fx *fixture) {
		b := &bookings{shopping{fails: map[string]int{"undo ref": 5}}}
		fx.run(b.handler(), b.trip(fail))
		h := enqueue(fx, trip, places)
		equal(fx, "kind", failure(fx, h).Kind, task.KindHandler)
		tasks := undoTasks(fx)
		equal(fx, "undo tasks", len(tasks), 3)
		equal(fx, "outcomes of the first", len(fx.outcomes(tasks[0].ID)), 6)
	})

	for _, retried := range []string{"the caller", "the undo task"} {
		subtest(t, "given up, and a retry of "+retried+" has both go on", func(fx *fixture) {
			b := &bookings{shopping{fails: map[string]int{"undo ref": -1}, limit: time.Minute}}
			e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{b.handler(), b.trip(fail)}})
			h := enqueue(fx, trip, places)
			got := failure(fx, h)
			equal(fx, "kind", got.Kind, task.KindUndoFailed)
			u := undoTasks(fx)[0]
			equal(fx, "the undo task", fmt.Sprint(u.State, u.Error.Kind), "failedundo_failed")
			for _, word := range []string{`step "last"`, u.ID.String(), u.UndoOf.String(), "undo ref 503", "no passport"} {
				if !strings.Contains(got.Message, word) {
					fx.Errorf("the message %q lacks %q", got.Message, word)
				}
			}
			wantError(fx, fx.client.Retry(fx.Context(), h.ID()), weaver.ErrState)
			b.mu.Lock()
			b.fails, b.seen = nil, nil
			b.mu.Unlock()
			time.Sleep(time.Minute)
			if retried == "the caller" {
				fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups()))
			} else {
				fx.must(fx.client.Retry(fx.Context(), u.ID, weaver.Cleanups()))
			}
			equal(fx, "kind", failure(fx, h).Kind, task.KindHandler)
			b.saw(fx, allUndone...)
			b.mu.Lock()
			b.fails = map[string]int{}
			b.mu.Unlock()
			fx.must(e.stop())
		})
	}

	subtest(t, "given up once more, and then left as it is", func(fx *fixture) {
		b := &bookings{shopping{fails: map[string]int{"undo ref": -1}, limit: time.Minute}}
		fx.run(b.handler(), b.trip(fail))
		h := enqueue(fx, trip, places)
		equal(fx, "kind", failure(fx, h).Kind, task.KindUndoFailed)
		time.Sleep(time.Minute)
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups()))
		equal(fx, "kind", failure(fx, h).Kind, task.KindUndoFailed)
		u := undoTasks(fx)
		equal(fx, "undo tasks", len(u), 1)
		b.mu.Lock()
		b.fails, b.seen = nil, nil
		b.mu.Unlock()
		wantError(fx, fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups(), weaver.SkipUndo("none"), weaver.Reason("by hand")), weaver.ErrState)
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups(), weaver.SkipUndo("last"), weaver.Reason("by hand")))
		equal(fx, "kind", failure(fx, h).Kind, task.KindHandler)
		b.saw(fx, allUndone[1:]...)
		equal(fx, "the child's step stands", fx.get(u[0].UndoOf).UndoOpen, 1)
	})
}

// A retry of the caller repeats undone calls.
func TestUndoChildren_RetryMakesNewChildren(t *testing.T) {
	for _, how := range []string{"all succeeded", "one failed"} {
		subtest(t, how, func(fx *fixture) {
			b, again := new(bookings), false
			e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{b.handler(), trip.Handler(func(ctx context.Context, places []string) (string, error) {
				refs, err := weaver.CallAll(ctx, "places", book, places, weaver.UndoChildren())
				if err == nil && !again {
					err = errors.New("no passport")
				}
				return strings.Join(refs, ", "), err
			})}})
			in := places
			if how == "one failed" {
				in = []string{"hotel", "sold out", "car"}
			}
			h := enqueue(fx, trip, in)
			fails(fx, h)
			first := childrenNamed(fx, h.ID(), "places[")
			b.mu.Lock()
			again, b.seen = true, nil
			b.mu.Unlock()
			fx.must(fx.client.Retry(fx.Context(), h.ID()))
			if how == "one failed" {
				fails(fx, h)
				b.sawSorted(fx, []string{"book hotel", "book sold out", "book car"}, []string{"undo ref sold out (:book)", "undo ref car (:book)", "undo ref hotel (:book)"})
			} else {
				equal(fx, "output", result(fx, h), "ref hotel, ref car")
				b.sawSorted(fx, []string{"book hotel", "book car"}, nil)
			}
			equal(fx, "first children", len(first), len(in))
			equal(fx, "children of the second round", len(childrenNamed(fx, h.ID(), "places#1[")), len(in))
			for _, c := range first {
				equal(fx, "an old child", fx.get(c.ID).UpdatedAt, c.UpdatedAt)
			}
			fx.must(e.stop())
		})
	}
}

// childrenNamed lists the children of a task by name prefix.
func childrenNamed(fx *fixture, id weaver.TaskID, prefix string) (list []task.Task) {
	fx.Helper()
	page, _, err := fx.client.List(fx.Context(), weaver.Filter{Parent: id, Limit: 100})
	fx.must(err)
	for _, t := range page {
		if strings.HasPrefix(t.Node, prefix) && t.UndoOf.IsZero() {
			list = append(list, t)
		}
	}
	return list
}

// The plans of a caller, of a child and of its undo task show their states.
func TestUndoChildren_Plan(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		b := &bookings{shopping{fails: map[string]int{"undo ref": -1}, limit: time.Minute}}
		fx.run(b.handler(), trip.Handler(func(ctx context.Context, _ []string) (string, error) {
			if _, err := weaver.Call(ctx, "room", book, "room", weaver.UndoChildren()); err != nil {
				return "", err
			}
			return "", weaver.Sleep(ctx, "nap", time.Hour)
		}))
		h := enqueue(fx, trip, nil)
		plan := func(what string, id weaver.TaskID, state weaver.State, want ...string) {
			fx.Helper()
			p, err := fx.client.UndoPlan(fx.Context(), id)
			fx.must(err)
			var got []string
			for _, e := range p.Effects {
				got = append(got, fmt.Sprintf("%s %s %s", e.Step, e.Effect, e.Undo))
			}
			if !slices.Equal(got, want) || p.TaskID != id || p.State != state {
				fx.Errorf("%s: %s %s has %q, want %q", what, p.TaskID, p.State, got, want)
			}
		}
		time.Sleep(10 * time.Minute)
		child := fx.history(h.ID()).Needs[0].ID
		plan("the caller", h.ID(), weaver.StatePending, "room confirmed declared")
		plan("the child", child, weaver.StateSucceeded, "label confirmed none", "book confirmed kept")
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		u := undoTasks(fx)[0]
		plan("the caller", h.ID(), weaver.StateFailed, "room confirmed given_up")
		plan("the undo task", u.ID, weaver.StateFailed, "book confirmed given_up", "label confirmed none")
		_, err := fx.client.Rerun(fx.Context(), u.ID)
		wantError(fx, err, weaver.ErrState, "undoes task "+child.String())
		wantError(fx, fx.client.Retry(fx.Context(), u.ID), weaver.ErrState)
		wantError(fx, fx.client.Delete(fx.Context(), u.ID), weaver.ErrState)
		b.mu.Lock()
		b.fails = nil
		b.mu.Unlock()
		time.Sleep(time.Minute)
		fx.must(fx.client.Retry(fx.Context(), u.ID, weaver.Cleanups()))
		fails(fx, h)
		plan("the caller", h.ID(), weaver.StateCancelled, "room confirmed undone")
		plan("the child", child, weaver.StateSucceeded, "label confirmed none", "book confirmed undone")
		plan("the undo task", u.ID, weaver.StateSucceeded, "label confirmed none", "book confirmed undone")
	})
}

// A handler's reads on its way to its steps also work in an undo phase, including from a bucket.
func TestUndoChildren_LongValues(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		long, undone := strings.Repeat("x", 100_000), ""
		far := weaver.Define[string, string]("engine.undo.far.v1", weaver.NoRetry())
		fx.runConfig(fx.store, weaver.Config{Bucket: blob.NewMemory(), Handlers: []weaver.Handler{
			far.Handler(func(ctx context.Context, in string) (string, error) {
				return weaver.Step(ctx, "book", func(context.Context) (string, error) { return in, nil },
					weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error { undone += u.Out; return nil }))
			}),
			trip.Handler(func(ctx context.Context, _ []string) (string, error) {
				out, err := weaver.Call(ctx, "first", far, long, weaver.UndoChildren())
				if err == nil {
					_, err = weaver.Call(ctx, "second", far, out[1:], weaver.UndoChildren())
				}
				if err == nil {
					err = weaver.Do(ctx, "last", func(context.Context) error { return errors.New("no passport") })
				}
				return "", err
			}),
		}})
		equal(fx, "kind", failure(fx, enqueue(fx, trip, nil)).Kind, task.KindHandler)
		equal(fx, "undone", len(undone), 2*len(long)-1)
	})
}

func TestUndoChildren_Misuse(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		_, err := book.Enqueue(fx.Context(), fx.client, "room", weaver.UndoChildren())
		wantError(fx, err, weaver.ErrInvalidOption, "UndoChildren", "only Call and CallAll")
		var race, start error
		fx.run(trip.Handler(func(ctx context.Context, _ []string) (string, error) {
			if weaver.Current(ctx).AttemptNo == 1 {
				_, start = weaver.Start(ctx, "room", book, "room", weaver.UndoChildren())
			}
			return "", start
		}), book.Handler(func(ctx context.Context, _ string) (string, error) {
			race = weaver.Decompose(weaver.JoinComplete, book.With("room", weaver.UndoChildren()))
			return "", race
		}))
		fails(fx, enqueue(fx, trip, nil))
		wantError(fx, start, weaver.ErrInvalidOption, "only Call and CallAll")
		if te := failure(fx, enqueue(fx, book, "")); !strings.Contains(te.Message, "only Call and CallAll") {
			fx.Errorf("Decompose: %v", te)
		}
	})
}

// sawSorted compares the calls at the partners: first those of concurrent children, in any order, then
// the others in order.
func (b *bookings) sawSorted(fx *fixture, first, then []string) {
	fx.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(first), len(b.seen))
	head := slices.Sorted(slices.Values(b.seen[:n]))
	if !slices.Equal(head, slices.Sorted(slices.Values(first))) || !slices.Equal(b.seen[n:], then) {
		fx.Errorf("the partners saw\n\t%s\nwant\n\t%s\n\t%s", strings.Join(b.seen, "\n\t"), strings.Join(first, "\n\t"), strings.Join(then, "\n\t"))
	}
}
