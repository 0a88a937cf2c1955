package engine

import "time"

const (
	// skewTolerance is the difference between the clocks of this machine and of the store from which it is logged.
	skewTolerance = time.Minute
	// skewEvery is the interval at which it is logged.
	skewEvery = time.Hour
)

// compareClocks logs if the store's clock, read by a call that began at before, differs from this machine's. logged is
// the time of the last line, and compareClocks returns it.
func (e *env) compareClocks(store, before, logged time.Time) time.Time {
	now := time.Now()
	ahead := time.Duration(0) // of this machine
	switch {
	case store.IsZero() || !logged.IsZero() && now.Sub(logged) < skewEvery:
		return logged
	case before.Sub(store) > skewTolerance:
		ahead = before.Sub(store)
	case store.Sub(now) > skewTolerance:
		ahead = now.Sub(store)
	default:
		return logged
	}
	e.Log.Warn("this machine's clock differs from the store's: set it. Leases and delays go by the store's clock; times that programs here set, and the times of new IDs, by this machine's", "ahead", ahead.Round(time.Second).String())
	return now
}
