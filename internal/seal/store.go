package seal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sealed is a store above another one, which has values sealed and opened on the way.
// What has no values goes straight to the store below.
type sealed struct {
	store.Store
	s *Sealer
}

// Store returns a store that keeps its values in the one below, sealed. It has the
// optional interfaces of that one which an engine or client asks for, and events in
// any case: from a store without them there are none.
func Store(below store.Store, s *Sealer) store.Store {
	c := &sealed{below, s}
	n, notifies := below.(store.Notifier)
	x, steps := below.(store.StepTxer)
	w, waits := below.(store.WaitingClaimer)
	type (
		notifier       = store.Notifier
		stepTxer       = sealedStepTxer
		waitingClaimer = sealedClaimer
	)
	tx, claimer := stepTxer{x, s}, waitingClaimer{w, s}
	switch {
	case notifies && steps && waits:
		return struct {
			*sealed
			notifier
			stepTxer
			waitingClaimer
		}{c, n, tx, claimer}
	case notifies && steps:
		return struct {
			*sealed
			notifier
			stepTxer
		}{c, n, tx}
	case notifies && waits:
		return struct {
			*sealed
			notifier
			waitingClaimer
		}{c, n, claimer}
	case steps && waits:
		return struct {
			*sealed
			stepTxer
			waitingClaimer
		}{c, tx, claimer}
	case notifies:
		return struct {
			*sealed
			notifier
		}{c, n}
	case steps:
		return struct {
			*sealed
			stepTxer
		}{c, tx}
	case waits:
		return struct {
			*sealed
			waitingClaimer
		}{c, claimer}
	}
	return c
}

// Transient implements store.TransientErrors, for any store below.
func (c *sealed) Transient(err error) bool { return store.Transient(c.Store, err) }

// Warnings implements store.Warner: there are none when the store below does not.
func (c *sealed) Warnings(ctx context.Context) []store.Warning {
	if w, ok := c.Store.(store.Warner); ok {
		return w.Warnings(ctx)
	}
	return nil
}

// Session implements store.SessionKeeper: there is none when the store below keeps none.
func (c *sealed) Session(ns string, id store.WorkerID) (store.Session, bool) {
	return store.SessionOf(c.Store, ns, id)
}

// Stats is what keeps the statistics of the store below, which have no values.
func (c *sealed) Stats() (store.StatsKeeper, bool) { return store.StatsOf(c.Store) }

// Await implements store.Awaiter: the store below may not do it.
func (c *sealed) Await(ns string, ids func() []task.ID, fn func(store.Notice)) (stop func(), ok bool) {
	if a, is := c.Store.(store.Awaiter); is {
		return a.Await(ns, ids, fn)
	}
	return nil, false
}

// Wake implements store.Waker, for any store below.
func (c *sealed) Wake(ns string) {
	if w, ok := c.Store.(store.Waker); ok {
		w.Wake(ns)
	}
}

// sealedStepTxer implements store.StepTxer.
type sealedStepTxer struct {
	x store.StepTxer
	s *Sealer
}

// StepTx implements store.StepTxer. The step of the record is not copied: fn may still
// write what it cost.
func (x sealedStepTxer) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if rec.Step == nil {
		return x.x.StepTx(ctx, ns, rec, limit, fn) // which says what is wrong
	}
	place := StepOf(rec.Lease.Task, rec.Step)
	res, err := x.x.StepTx(ctx, ns, rec, limit, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		value, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		return x.s.Seal(place, value)
	})
	res.Step.Value = x.s.Open(place, res.Step.Value)
	return res, err
}

// sealedClaimer implements store.WaitingClaimer.
type sealedClaimer struct {
	w store.WaitingClaimer
	s *Sealer
}

// ClaimOrWait implements store.WaitingClaimer.
func (c sealedClaimer) ClaimOrWait(ctx context.Context, ns string, req store.ClaimRequest, wait time.Duration, wake <-chan struct{}) (store.ClaimResult, error) {
	got, err := c.w.ClaimOrWait(ctx, ns, req, wait, wake)
	c.s.openClaimed(got.Tasks)
	return got, err
}
