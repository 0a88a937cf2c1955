package engine

import (
	"context"
	"math"
	"time"
)

// trustLoop ends the attempts whose leases could not be renewed in time (R5).
// It is a role of its own, because a renewal that hangs must not keep anybody
// from looking.
func (e *Engine) trustLoop(ctx context.Context) error {
	for ctx.Err() == nil {
		// Whoever starts from here on and may have been missed says so.
		e.trustLook.Store(math.MaxInt64)
		next := time.Duration(-1)
		for _, a := range e.attempts() {
			if a.ctx.Err() != nil {
				continue
			}
			left := a.trustedFor()
			if left <= 0 {
				a.end(ErrLeaseUncertain)
				continue
			}
			if next < 0 || left < next {
				next = left
			}
		}
		if next >= 0 {
			e.trustLook.Store(int64(time.Since(e.started) + next))
		}
		wait(ctx, next, e.trustKick)
	}
	return nil
}

// watch has trustLoop look in time at an attempt that starts.
func (e *Engine) watch(a *Attempt) {
	if a.trusted.Load() < e.trustLook.Load() {
		kick(e.trustKick)
	}
}
