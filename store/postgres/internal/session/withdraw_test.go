package session

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// A worker whose session cannot be restored for long works without one, and with one again
// when it becomes possible.
func TestWorksWithoutASession(t *testing.T) {
	keeping(t, func(t *testing.T, s *server, k *Keeper) {
		var said []int
		var reachable atomic.Bool
		k.cfg.Withdraw = func(_ context.Context, _ string, _ store.WorkerID, withdrawals int) error {
			if !reachable.Load() {
				return errCut
			}
			said = append(said, withdrawals)
			return nil
		}
		var promised []Promise
		note := k.cfg.Announce
		k.cfg.Announce = func(ctx context.Context, c Conn, ns string, id store.WorkerID, p Promise) error {
			promised = append(promised, p)
			return note(ctx, c, ns, id, p)
		}
		s.swallow(true)
		k.Leased(time.Hour)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if err := k.Ready(t.Context()); !errors.Is(err, ErrDown) || len(said) > 0 {
			t.Fatalf("after 15 s: %v, withdrawn %v", err, said)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		before := time.Now()
		if err := k.Ready(t.Context()); !errors.Is(err, ErrDown) || !errors.Is(err, errCut) {
			t.Fatalf("while the row cannot be written: %v", err)
		}
		if d, _ := k.silent(t, before); d < testGrace {
			t.Errorf("it is trusted before the row says it: %s", d)
		}
		reachable.Store(true)
		if err := k.Ready(t.Context()); err != nil || len(said) != 1 || said[0] != 2 {
			t.Fatalf("after 30 s: %v, withdrawn %v", err, said)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		d, trusted := k.silent(t, before)
		if _, later := k.silent(t, time.Now()); d != 0 || trusted || !later {
			t.Errorf("without a session: silent for %s, leases of before trusted %t, later ones %t", d, trusted, later)
		}
		if err := k.Ready(t.Context()); err != nil || len(said) != 1 {
			t.Errorf("withdrawn again: %v %v", err, said)
		}
		now := time.Now()
		s.swallow(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(promised) != 1 || promised[0] != (Promise{testGrace, 2}) {
			t.Errorf("promised %v", promised)
		}
		if _, trusted := k.silent(t, now); !trusted {
			t.Error("leases that were granted without a session are not trusted with it")
		}
		s.swallow(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if d, _ := k.silent(t, now); d < 4*time.Second {
			t.Errorf("a session that does not answer was silent for %s", d)
		}
	})
}

// A reaper whose look hangs has time left for expired leases.
func TestALookThatHangsLeavesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Observe(ObserverConfig{
			Dial: func(ctx context.Context) (Looker, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
			Own: func(string, store.WorkerID) bool { return false }, Found: func(string) {}, Log: slog.New(slog.DiscardHandler),
		})
		defer func() {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, limit := range []time.Duration{time.Second, 3 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			dead := o.Dead(ctx, testNS)
			if len(dead.IDs()) > 0 || ctx.Err() != nil {
				t.Errorf("after a look that hangs, of %s: %v", limit, ctx.Err())
			}
			dead.Close()
			cancel()
		}
	})
}
