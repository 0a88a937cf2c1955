package weaver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// What the roles of an engine owe each other, from its first look at the store
// to the end of its drain.
func TestRolesOfAnEngine(t *testing.T) {
	typ := weaver.Define[string, string]("engine.roles.run.v1", weaver.NoRetry())
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	scene(t, "do not begin on a store that is not for them", func(w *world) {
		s := newFaults(w)
		s.fail("Ready", fmt.Errorf("look at the schema: %w", store.ErrNewerSchema))
		h := enqueue(w, typ, "x")
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		wantError(w, w.newEngine(s.store, weaver.Config{Handlers: []weaver.Handler{echo}}).Run(ctx), store.ErrNewerSchema, "look at the schema")
		equal(w, "workers that joined", s.count("Join"), 0)
		w.wantState(h.ID(), weaver.StateReady)
	})

	// The claim commits, and its answer is on its way when Run's context ends.
	scene(t, "take what was claimed when the drain began", func(w *world) {
		s := newFaults(w)
		s.hooks.Claim = func(ctx context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			got, err := next()
			if err != nil || len(got.Tasks) == 0 {
				return got, err
			}
			select {
			case <-time.After(2 * time.Second):
				return got, nil
			case <-ctx.Done():
				return store.ClaimResult{}, context.Cause(ctx)
			}
		}
		e := w.start(s.store, weaver.Config{Handlers: []weaver.Handler{echo}})
		h := enqueue(w, typ, "x")
		time.Sleep(time.Second)
		w.wantState(h.ID(), weaver.StateRunning)
		w.must(e.stop())
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "look up in time what they claimed, though a look hangs", func(w *world) {
		s := newFaults(w)
		calls := 0
		s.hooks.Claim = func(ctx context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			switch calls++; calls {
			case 1:
				_, _ = next()
				return store.ClaimResult{}, store.ErrUnavailable
			case 2:
				<-ctx.Done()
				return store.ClaimResult{}, context.Cause(ctx)
			}
			return next()
		}
		h := enqueue(w, typ, "x")
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{echo}})
		time.Sleep(weaver.DefaultLease * 2 / 3)
		w.wantState(h.ID(), weaver.StateSucceeded)
		equal(w, "attempts", w.get(h.ID()).AttemptNo, 1)
	})

	// In memory an idle engine renews nothing, and after the restore it is idle.
	scene(t, "are not held to have crashed after a restore", func(w *world) {
		w.runConfig(w.store, weaver.Config{CrashBudget: 1, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return in, nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		})}})
		h := enqueue(w, typ, "x")
		synctest.Wait()
		_, err := w.store.Operate(w.Context(), weaver.DefaultNamespace, store.Restored{})
		w.must(err)
		time.Sleep(2 * weaver.DefaultLease)
		w.wantState(h.ID(), weaver.StateSucceeded) // one crash would have been the end
		equal(w, "the first attempt", w.history(h.ID()).Attempts[0].Outcome, task.OutcomeLeaseLost)
	})

	// An engine that runs until nothing is left would otherwise find nothing
	// due, and be gone before its reaper has looked.
	scene(t, "take over what a dead process left before they find nothing to do", func(w *world) {
		path := filepath.Join(w.TempDir(), "weaver.db")
		w = newWorld(w.T, openFile(w, path))
		h := enqueue(w, typ, "x")
		other, err := sqlite.Open(w.Context(), path)
		w.must(err)
		dead := store.WorkerID("dead")
		w.must(other.Join(w.Context(), weaver.DefaultNamespace, store.WorkerInfo{ID: dead, Name: "dead", TTL: weaver.DefaultLease}))
		got, err := other.Claim(w.Context(), weaver.DefaultNamespace, store.ClaimRequest{
			Worker: dead, Name: "dead", LeaseID: task.NewLeaseID(), TTL: weaver.DefaultLease, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
		})
		w.must(err)
		equal(w, "tasks claimed by the dead", len(got.Tasks), 1)
		w.must(other.Close()) // as if its process had ended: it did not leave
		s := newFaults(w)
		s.hooks.Reap = func(_ context.Context, _ store.ReapRequest, next func() (store.ReapResult, error)) (store.ReapResult, error) {
			time.Sleep(time.Second) // it takes its time
			return next()
		}
		w.must(w.newEngine(s.store, weaver.Config{Handlers: []weaver.Handler{echo}}).RunUntilIdle(w.Context()))
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	// Without its heartbeat an engine must not go on claiming, and whoever
	// runs it must hear why.
	scene(t, "end together when one of them fails", func(w *world) {
		s := newFaults(w)
		s.hooks.Heartbeat = func(context.Context, store.HeartbeatRequest, func() ([]store.Beat, error)) ([]store.Beat, error) {
			panic("a bug of the store")
		}
		e := w.start(s.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }),
		}})
		h := enqueue(w, typ, "x")
		select {
		case <-e.ended:
		case <-time.After(10 * weaver.DefaultLease):
			w.Error("Run goes on without a heartbeat")
		}
		wantError(w, e.stop(), nil, "heartbeat", "a bug of the store")
		w.wantState(h.ID(), weaver.StateReady)
	})
}

// Other processes that write to the same file are heard of soon, whatever the
// poll and the heartbeat: all that a notice says of them is that there was one.
func TestOtherProcessesAreHeard(t *testing.T) {
	typ := weaver.Define[string, string]("engine.heard.run.v1", weaver.NoRetry())
	// pair plays with two handles on one file, each like a process of its own.
	pair := func(name string, play func(w, other *world)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "weaver.db")
				play(newWorld(t, openFile(t, path)), newWorld(t, openFile(t, path)))
			})
		})
	}
	deaf := func(ended *time.Time) weaver.Handler {
		return typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			*ended = time.Now()
			return "", ctx.Err()
		})
	}

	pair("when they cancel, also just after a heartbeat", func(w, other *world) {
		var ended time.Time
		w.runConfig(w.store, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{deaf(&ended)}})
		h := enqueue(w, typ, "")
		// The first heartbeat comes after a third of the lease, the next one
		// would after another third.
		time.Sleep(weaver.DefaultLease/3 + time.Second/2)
		w.wantState(h.ID(), weaver.StateRunning)
		asked := time.Now()
		other.must(other.client.Cancel(other.Context(), h.ID()))
		fails(w, h)
		if took := ended.Sub(asked); took < 0 || took > 1100*time.Millisecond {
			w.Errorf("the handler heard of its cancel after %s, want a second or less", took)
		}
	})

	pair("when they cancel long after a heartbeat, at once", func(w, other *world) {
		var ended time.Time
		w.runConfig(w.store, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{deaf(&ended)}})
		h := enqueue(w, typ, "")
		time.Sleep(weaver.DefaultLease/3 + 5*time.Second)
		asked := time.Now()
		other.must(other.client.Cancel(other.Context(), h.ID()))
		fails(w, h)
		if took := ended.Sub(asked); took < 0 || took > time.Second/2 {
			w.Errorf("the handler heard of its cancel after %s, want at once", took)
		}
	})

	pair("without making anybody beat all the time", func(w, other *world) {
		var ended time.Time
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{deaf(&ended)}})
		h := enqueue(w, typ, "")
		synctest.Wait()
		before := f.count("Heartbeat")
		nobody := weaver.Define[string, string]("engine.heard.nobody.v1")
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			enqueue(other, nobody, "")
		}
		if n := f.count("Heartbeat") - before; n > 11 {
			w.Errorf("%d heartbeats in 10 s of another process's work, want one a second at most", n)
		}
		w.must(w.client.Cancel(w.Context(), h.ID()))
		fails(w, h)
	})

	pair("when they enqueue", func(w, other *world) {
		w.runConfig(w.store, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		}})
		time.Sleep(time.Minute)
		asked := time.Now()
		h := enqueue(other, typ, "x")
		result(w, h)
		if took := time.Since(asked); took > time.Second {
			w.Errorf("the task ran after %s, want at once", took)
		}
	})

	// In memory the reaper sleeps until something that it knows of can expire.
	scene(t, "and so is who enqueues in a transaction of his own, by the reaper", func(w *world) {
		w.run()
		time.Sleep(time.Minute)
		tx, err := w.store.(*sqlite.DB).DB().BeginTx(w.Context(), nil)
		w.must(err)
		h, err := typ.Enqueue(w.Context(), w.client.InTx(sqlite.Tx(tx)), "x", weaver.ExpireAfter(time.Minute))
		w.must(err)
		w.must(tx.Commit())
		time.Sleep(time.Minute + time.Second)
		w.wantState(h.ID(), weaver.StateCancelled)
	})
}
