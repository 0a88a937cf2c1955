package memstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/goweaver/weaver/internal/faults/refusetest"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// A write that the store rejects permanently fails the task, on every write path of an
// engine.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	refusetest.Run(t, func(_ *testing.T, w refusetest.Write) store.Store {
		record := func(r store.Record) bool { return w.Record != nil && w.Record(&r) }
		finish := func(f store.Finish) bool { return w.Finish != nil && w.Finish(&f) }
		return storehook.New(memstore.New(), &storehook.Hooks{
			Enqueue: func(_ context.Context, sub storehook.Submission, next func() ([]store.Enqueued, error)) ([]store.Enqueued, error) {
				return unless(record(store.Record{Tasks: sub.Tasks}), next)
			},
			Record: func(_ context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
				return unless(slices.ContainsFunc(recs, record), next)
			},
			Finish: func(_ context.Context, fins []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
				return unless(slices.ContainsFunc(fins, finish), next)
			},
			StepTx: func(_ context.Context, call *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
				return unless(record(call.Record), next)
			},
		})
	}, func(ctx context.Context, name string) error { return refusetest.StepTx[*memstore.Tx](ctx, name, nil) }, nil)
}

// unless makes a call unless it is rejected.
func unless[R any](refused bool, next func() (R, error)) (none R, err error) {
	if refused {
		return none, fmt.Errorf("%w: %s", store.ErrRefused, refusetest.Said)
	}
	return next()
}
