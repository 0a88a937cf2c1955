package seal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
)

// sealed is the store below, with values sealed on the way in and opened on the way out. Calls
// without values go to the store below unchanged.
type sealed struct {
	store.Store
	s *Sealer
}

// Parts returns the store below a sealed one, and its sealer. ok is false for other stores.
func Parts(s store.Store) (below store.Store, sealer *Sealer, ok bool) {
	c, ok := s.(*sealed)
	if !ok {
		return nil, nil, false
	}
	return c.Store, c.s, true
}

// Store returns a store that keeps its values sealed in the store below.
func Store(below store.Store, s *Sealer) store.Store { return &sealed{below, s} }

// Capabilities implements store.Core. RewriteValues and Scan return stored forms: call them on
// the store below.
func (c *sealed) Capabilities() store.Capabilities {
	return c.Store.Capabilities() &^ (store.CanRewriteValues | store.CanScan)
}

// StepTx implements store.Flow. It does not copy the record's step: fn may still write its
// cost.
func (c *sealed) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if rec.Step == nil {
		return c.Store.StepTx(ctx, ns, rec, limit, fn) // it returns the error
	}
	place := StepOf(rec.Lease.Task, rec.Step)
	res, err := c.Store.StepTx(ctx, ns, rec, limit, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		value, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		return c.s.Seal(place, value)
	})
	res.Step.Value = c.s.Open(place, res.Step.Value)
	return res, err
}
