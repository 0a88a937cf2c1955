package sqlite_test

import (
	"errors"
	"testing"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
)

// looksDead is a worker that looks dead until a transaction confirms it.
type looksDead struct {
	id      store.WorkerID
	confirm func() ([]store.WorkerID, error)
}

func (d looksDead) IDs() []store.WorkerID                          { return []store.WorkerID{d.id} }
func (d looksDead) Confirm(*sqlstore.Tx) ([]store.WorkerID, error) { return d.confirm() }
func (d looksDead) Forget([]store.WorkerID)                        {}
func (d looksDead) Close()                                         {}

// A death that is not confirmed in the transaction of the reap takes no leases.
func TestReapConfirmsDeaths(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, memory(t))
	f.join("w")
	f.enqueue(1)
	f.claim("w", 1)
	var dead []store.WorkerID
	var failure error
	reap := func() (int, error) {
		got, err := f.db.ReapWith(t.Context(), fixNS, store.ReapRequest{Worker: "r", TTL: fixTTL, CrashBudget: 3},
			looksDead{"w", func() ([]store.WorkerID, error) { return dead, failure }})
		return len(got.Reaped), err
	}
	if n, err := reap(); n != 0 || err != nil {
		t.Errorf("reaped %d leases of a worker that came back, %v", n, err)
	}
	dead, failure = []store.WorkerID{"w"}, errors.New("the test's failure")
	if n, err := reap(); n != 0 || !errors.Is(err, failure) {
		t.Errorf("reaped %d leases without an answer, %v", n, err)
	}
	failure = nil
	if n, err := reap(); n != 1 || err != nil {
		t.Errorf("reaped %d leases of a dead worker, %v", n, err)
	}
}
