package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is the time after the first signal within which another one counts as the same: timeout(1) signals a
// process and then its group, so the process gets two.
const sameSignal = 500 * time.Millisecond

// interrupts are the signals to a verb that runs tasks. The first one requests a drain; one that arrives sameSignal
// later or more requests an immediate stop.
type interrupts struct {
	drain context.Context // ends with the first signal or with the verb's context
	now   context.Context // ends with the later signal or when the store is gone
}

// listen watches for signals until stop is called. It counts them itself: Main also ends the verb's context on the
// first one, and either of the two may receive a signal earlier.
func listen(ctx context.Context, run func(name string, fn func(context.Context) error)) (in interrupts, stop func()) {
	drain, startDrain := context.WithCancel(ctx)
	now, startNow := context.WithCancel(context.WithoutCancel(ctx))
	received := make(chan os.Signal, 2)
	signal.Notify(received, wanted()...)
	done := make(chan struct{})
	run("signals", func(context.Context) error {
		stop := context.AfterFunc(ctx, func() {
			if isStoreGone(ctx) {
				startNow()
			}
		})
		defer stop()
		var first time.Time
		for {
			select {
			case <-received:
			case <-done:
				return nil
			}
			switch {
			case first.IsZero():
				first = time.Now()
				startDrain()
			case time.Since(first) >= sameSignal:
				startNow()
				return nil
			}
		}
	})
	return interrupts{drain, now}, func() {
		signal.Stop(received)
		close(done)
		startDrain()
		startNow()
	}
}

// wanted returns the signals that request an end, except those that the process was started to ignore (nohup).
func wanted() []os.Signal {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}
