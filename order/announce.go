package order

import (
	"context"
	"time"
)

// announceEvery is the interval at which a worker compares its announcement with its breaker.
const announceEvery = 5 * time.Second

// announce keeps the announced state of the breaker current: at once when sends are paused, else
// every 5 s if it changed. A failed call is made again.
func (w *Worker) announce(ctx context.Context) {
	timer := time.NewTicker(announceEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.news:
		}
		if w.brk.state(w.cfg.Adapter.Name(), time.Now()) == w.said {
			continue
		}
		call, cancel := context.WithTimeout(ctx, announceEvery)
		_ = w.join(call)
		cancel()
	}
}

// signal wakes the reader of a channel with room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
