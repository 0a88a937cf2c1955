// Package clock is the clock of a store: the machine's, made into one that
// never goes back.
//
// A machine's clock is set back by an operator or by time synchronization. What
// was due before would then wait until the clock gets there again, and leases
// would not end. A [Clock] therefore goes on from what it last showed, slower
// than the machine's until that has caught up. What it showed is kept by the
// store and given back with [Clock.Raise], so that this holds across restarts and
// between processes.
//
// Nothing about safety depends on it (docs/leases.md): clocks decide only when.
package clock

import (
	"sync"
	"time"
)

const (
	// slowdown is the part of the time by which a Clock that is ahead of the
	// machine's goes slower. An hour is made good within eight. Slower and not
	// faster: a lease may last longer than its holder believes, never shorter.
	slowdown = 8
	// reportFrom is the shortest difference that is reported.
	reportFrom = time.Minute
)

// Clock shows the time of a store. The zero value is ready for use and follows
// the machine's clock. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	asked time.Time     // the machine's clock when this one was last asked, with its monotonic reading
	shown time.Time     // what it showed then, to the nanosecond
	jump  Jump          // the last one forward
	shift time.Duration // of the machine's clock; set by tests
}

// Jump is a step that the machine's clock made forward: it was set, or the
// machine slept.
type Jump struct {
	To time.Time // what it showed after it
	By time.Duration
}

// Now returns the time, in UTC and whole microseconds. It never returns less
// than it returned before.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.now()
	return now.Truncate(time.Microsecond)
}

// now returns the time and the machine's. The mutex is held.
func (c *Clock) now() (now, machine time.Time) {
	asked := time.Now()
	machine = asked.UTC().Round(0).Add(c.shift)
	now = machine
	if !c.asked.IsZero() {
		passed := asked.Sub(c.asked) // on the monotonic clock, which is never set
		if by := machine.Sub(c.shown.Add(passed)); by > reportFrom {
			c.jump = Jump{To: machine, By: by}
		}
		if own := c.shown.Add(passed - passed/slowdown); own.After(machine) {
			now = own
		}
	}
	c.asked, c.shown = asked, now
	return now, machine
}

// Raise has the clock go on from t if that is later than what it shows.
func (c *Clock) Raise(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, _ := c.now(); t.After(now) {
		c.shown = t.UTC().Round(0)
	}
}

// Ahead returns how far the clock is ahead of the machine's, which was set back;
// 0 when that is less than a minute.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, machine := c.now()
	if by := now.Sub(machine); by >= reportFrom {
		return by
	}
	return 0
}

// Jumped returns the last jump forward of more than a minute, the zero value if
// there was none.
func (c *Clock) Jumped() Jump {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now()
	return c.jump
}

// Shift makes the machine's clock, as this one reads it, jump by d: just now, or
// before this clock was asked for the first time. It is for tests.
func (c *Clock) Shift(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() {
		c.now()
	}
	c.shift += d
}
