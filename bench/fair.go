package main

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Claims among many tenants that take turns, in µs per claim, compared with claims of as many tasks that take none.

var fairType = weaver.Define[int, weaver.None]("bench.noop.fair.v1", weaver.FairBy("tenant"))

const (
	fairKeys   = 10_000
	fairEach   = 3 // due tasks of a tenant
	fairRounds = 100
)

func (r *report) fair(ctx context.Context) error {
	return r.fairOn(ctx, "SQLite", func(ctx context.Context, f func(store.Store) error) error {
		return onStore(ctx, full, func(db *sqlite.DB) error { return f(db) })
	})
}

func (r *report) pgFair(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	return r.fairOn(ctx, "Postgres", s.weaver)
}

func (r *report) fairOn(ctx context.Context, name string, in place) error {
	for _, size := range []int{1, 10, 100} {
		f, err := r.measure(
			func() (float64, error) { return fairClaims(ctx, in, fairType, size) },
			func() (float64, error) { return fairClaims(ctx, in, noopType, size) },
		)
		if err != nil {
			return err
		}
		r.row(fmt.Sprintf("%s: µs to claim %d among %d tenants that take turns", name, size, fairKeys), f[0].String(), "no turns "+f[1].String(), ratio(f[0].median()/f[1].median()))
	}
	return nil
}

// fairClaims returns the mean duration of claims of size tasks of a type.
func fairClaims(ctx context.Context, in place, typ *weaver.Type[int, weaver.None], size int) (micros float64, err error) {
	err = in(ctx, func(db store.Store) error {
		const ns, worker = "default", "bench"
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			return err
		}
		for done := 0; done < fairKeys*fairEach; {
			var subs []weaver.Draft
			for range 10_000 {
				subs = append(subs, typ.With(done, weaver.Label("tenant", fmt.Sprint(done%fairKeys))))
				done++
			}
			if _, err := client.EnqueueTasks(ctx, subs...); err != nil {
				return err
			}
		}
		if err := db.Join(ctx, ns, store.WorkerInfo{ID: worker, Name: worker, TTL: time.Minute}); err != nil {
			return err
		}
		var took time.Duration
		for i := range fairRounds + 5 {
			req := store.ClaimRequest{
				Worker: worker, Name: worker, LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: size, Slots: size,
				Types: map[string]int{typ.Name(): 1},
			}
			begin := time.Now()
			got, err := db.Claim(ctx, ns, req)
			if err != nil {
				return err
			}
			if i >= 5 {
				took += time.Since(begin)
			}
			if len(got.Tasks) != size {
				return fmt.Errorf("a claim took %d tasks, want %d", len(got.Tasks), size)
			}
		}
		micros = float64(took.Microseconds()) / fairRounds
		return nil
	})
	return micros, err
}
