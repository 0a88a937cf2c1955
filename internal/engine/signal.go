package engine

import (
	"context"
	"time"
)

// signal wakes one role. Several Sets before the role wakes count as one, so a woken role checks everything that it
// is responsible for.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// Set wakes the role; a role that is awake does not sleep next time. Set never blocks.
func (s signal) Set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// C returns the channel that receives once after Set.
func (s signal) C() <-chan struct{} { return s }

// wait sleeps for d (d < 0: without limit) until the signal, which may be nil, or the end of the context.
func wait(ctx context.Context, d time.Duration, s signal) {
	var timeout <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
	case <-s.C():
	case <-timeout:
	}
}
