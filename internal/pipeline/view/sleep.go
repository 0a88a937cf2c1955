package view

import (
	"time"

	"github.com/goweaver/weaver/store"
)

// Tick must be called every second while the process runs. A longer interval means
// that the process was stopped or its machine slept.
func (m *Monitor) Tick(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.model.sleeps.tick(now)
}

// sleeps records the last long interval in which the process did not run.
type sleeps struct {
	last     time.Time // last tick; zero: unknown
	from, to time.Time
}

// tick records that the process runs. An interval shorter than a lease does not
// matter. It uses the wall clock: the monotonic clock may stop while a machine
// sleeps.
func (s *sleeps) tick(now time.Time) {
	now = now.Round(0)
	if !s.last.IsZero() && now.Sub(s.last) >= store.DefaultLease {
		s.from, s.to = s.last, now
	}
	s.last = now
}

// since returns the time that the process slept after an instant, or 0 if it did
// not or that is unknown.
func (s *sleeps) since(at, now time.Time) time.Duration {
	if s.last.IsZero() || at.IsZero() {
		return 0
	}
	s.tick(now) // an event may precede the next Tick
	if s.from.Before(at.Round(0)) {
		return 0
	}
	return s.to.Sub(s.from)
}
