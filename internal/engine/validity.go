package engine

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// validityChecker ends the attempts whose leases could not be renewed in time, or whose worker's session did not
// answer in time. The store may soon give such a lease to another worker. It is a separate role because a hanging
// renewal must not delay the check.
type validityChecker struct {
	*env
	wake signal
	next atomic.Int64 // time of run's next check, as an offset from the origin
}

func newValidityChecker(e *env) *validityChecker {
	return &validityChecker{env: e, wake: newSignal()}
}

func (v *validityChecker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		// An attempt that starts after this point, and may be missed below, wakes run.
		v.next.Store(math.MaxInt64)
		next := time.Duration(-1)
		for _, a := range v.slots.all() {
			if a.held.Err() != nil {
				continue
			}
			valid := a.validFor()
			if valid <= 0 {
				a.end(ErrLeaseUncertain)
				continue
			}
			if next < 0 || valid < next {
				next = valid
			}
		}
		if next >= 0 {
			v.next.Store(v.offset(time.Now().Add(next)))
		}
		wait(ctx, next, v.wake)
	}
	return nil
}

// watch makes run check a starting attempt in time.
func (v *validityChecker) watch(a *Attempt) {
	if v.offset(time.Now().Add(a.validFor())) < v.next.Load() {
		v.wake.Set()
	}
}
