package engine

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// waitsAndClaims is a store whose claims wait for work and whose answers are slow after the lease was granted.
type waitsAndClaims struct {
	*fixture
	waits, answers time.Duration
}

func (*waitsAndClaims) Capabilities() store.Capabilities { return store.CanWait | store.CanNotify }

func (s *waitsAndClaims) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if req.Wait == 0 {
		return s.fixture.Claim(ctx, ns, req)
	}
	began := time.Now()
	select {
	case <-time.After(s.waits):
	case <-ctx.Done():
		return store.ClaimResult{}, ctx.Err()
	}
	waited := time.Since(began)
	res, err := s.Store.Claim(ctx, ns, req)
	time.Sleep(s.answers)
	res.Waited = waited
	return res, err
}

// R5: a worker relies on a lease from just before the transaction that granted it. That is after the wait of the
// claim, and before the commit and the answer.
func TestLeasesOfClaimsThatWaitedCountFromTheirTransaction(t *testing.T) {
	inBubble(t, func(f *fixture) {
		valid := make(chan time.Duration, 1)
		cfg := f.config(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			a, err := From(ctx)
			if err == nil {
				valid <- a.validFor()
			}
			return json.RawMessage("1"), err
		})
		cfg.Store = &waitsAndClaims{f, 20 * time.Second, 4 * time.Second}
		stop := f.start(New(cfg))
		defer stop()
		synctest.Wait()
		f.enqueue(1)
		if got, want := <-valid, testTTL-testTTL/6-4*time.Second; got != want {
			t.Errorf("the lease is valid for %s when its handler begins, want %s", got, want)
		}
	})
}
