package view

import (
	"time"

	"github.com/goweaver/weaver"
)

// Tick is called every second while the process runs: a longer time between two
// calls is one in which it did not, because it was stopped or its machine slept.
func (m *Monitor) Tick(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.model.sleeps.tick(now)
}

// sleeps is the last long time in which the process did not run.
type sleeps struct {
	last     time.Time // when it ran for the last time; zero: nothing is known
	from, to time.Time
}

// tick notes that the process runs. A time that is shorter than a lease is no
// sleep that matters. It is that of the clock on the wall: the monotonic one may
// stand still while a machine sleeps.
func (s *sleeps) tick(now time.Time) {
	now = now.Round(0)
	if !s.last.IsZero() && now.Sub(s.last) >= weaver.DefaultLease {
		s.from, s.to = s.last, now
	}
	s.last = now
}

// since is how long the process slept after an instant; 0: it did not, or that is
// not known.
func (s *sleeps) since(at, now time.Time) time.Duration {
	if s.last.IsZero() || at.IsZero() {
		return 0
	}
	s.tick(now) // an event may come before the next call of Tick
	if s.from.Before(at.Round(0)) {
		return 0
	}
	return s.to.Sub(s.from)
}
