package weaver_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// Writes of other processes to the same file are noticed soon, whatever the poll and the heartbeat:
// their notice only sets External.
func TestExternalWritesAreNoticed(t *testing.T) {
	typ := weaver.Define[string, string]("engine.notify.run.v1", weaver.NoRetry())
	// pair runs fn with two handles on one file, each like a separate process.
	pair := func(name string, fn func(fx, other *fixture)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "weaver.db")
				fn(newFixture(t, openFile(t, path)), newFixture(t, openFile(t, path)))
			})
		})
	}
	untilEnded := func(ended *time.Time) weaver.Handler {
		return typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			*ended = time.Now()
			return "", ctx.Err()
		})
	}

	pair("a cancel just after a heartbeat", func(fx, other *fixture) {
		var ended time.Time
		fx.runConfig(fx.store, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{untilEnded(&ended)}})
		h := enqueue(fx, typ, "")
		// The first heartbeat comes after a third of the lease, the next one
		// would after another third.
		time.Sleep(store.DefaultLease/3 + time.Second/2)
		fx.wantState(h.ID(), weaver.StateRunning)
		asked := time.Now()
		other.must(other.client.Cancel(other.Context(), h.ID()))
		fails(fx, h)
		if took := ended.Sub(asked); took < 0 || took > 1100*time.Millisecond {
			fx.Errorf("the handler's context ended %s after the cancel, want a second or less", took)
		}
	})

	pair("a cancel long after a heartbeat, at once", func(fx, other *fixture) {
		var ended time.Time
		fx.runConfig(fx.store, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{untilEnded(&ended)}})
		h := enqueue(fx, typ, "")
		time.Sleep(store.DefaultLease/3 + 5*time.Second)
		asked := time.Now()
		other.must(other.client.Cancel(other.Context(), h.ID()))
		fails(fx, h)
		if took := ended.Sub(asked); took < 0 || took > time.Second/2 {
			fx.Errorf("the handler's context ended %s after the cancel, want at once", took)
		}
	})

	pair("without a heartbeat for every write", func(fx, other *fixture) {
		var ended time.Time
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{untilEnded(&ended)}})
		h := enqueue(fx, typ, "")
		synctest.Wait()
		before := f.count("Heartbeat")
		unhandled := weaver.Define[string, string]("engine.notify.unhandled.v1")
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			enqueue(other, unhandled, "")
		}
		if n := f.count("Heartbeat") - before; n > 11 {
			fx.Errorf("%d heartbeats in 10 s of another process's work, want one a second at most", n)
		}
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
	})

	pair("an enqueue", func(fx, other *fixture) {
		fx.runConfig(fx.store, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		}})
		time.Sleep(time.Minute)
		asked := time.Now()
		h := enqueue(other, typ, "x")
		result(fx, h)
		if took := time.Since(asked); took > time.Second {
			fx.Errorf("the task ran after %s, want at once", took)
		}
	})

	// In memory the reaper sleeps until the next known deadline or expiry.
	sqlSubtest(t, "an enqueue in the caller's transaction, by the reaper", func(fx *fixture) {
		fx.run()
		time.Sleep(time.Minute)
		tx, err := fx.store.(*sqlite.DB).DB().BeginTx(fx.Context(), nil)
		fx.must(err)
		h, err := typ.Enqueue(fx.Context(), fx.client.InTx(sqlite.Tx(tx)), "x", weaver.ExpireAfter(time.Minute))
		fx.must(err)
		fx.must(tx.Commit())
		time.Sleep(time.Minute + time.Second)
		fx.wantState(h.ID(), weaver.StateCancelled)
	})
}
