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
// A clock that is ahead of the machine's by more than [MaxLead] was not set back: it was
// wrong once, years ahead perhaps, and what is planned for a fixed time would start at
// once for as long. It takes the machine's time again, the one case in which it goes back.
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
	// MaxLead is the time by which a Clock may be ahead of the machine's.
	MaxLead = 24 * time.Hour
)

// plausible is older than this program. A machine whose clock shows an earlier time has
// no battery and has not met a time server yet: then it is the machine that is wrong, and
// the lead has no bound.
var plausible = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Clock shows the time of a store. The zero value is ready for use and follows
// the machine's clock. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	asked time.Time     // the machine's clock when this one was last asked, with its monotonic reading
	shown time.Time     // what it showed then, to the nanosecond
	jump  Jump          // the last one forward
	back  Jump          // the last one back to the machine's time
	shift time.Duration // of the machine's clock; set by tests
}

// Jump is a step that the machine's clock made forward: it was set, or the
// machine slept.
type Jump struct {
	To time.Time // what it showed after it
	By time.Duration
}

// Now returns the time, in UTC and whole microseconds. It never returns less
// than it returned before, but after a lead of more than MaxLead.
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
		if own := c.shown.Add(passed - passed/slowdown); own.After(machine) && !c.wrong(own, machine) {
			now = own
		}
	}
	c.asked, c.shown = asked, now
	return now, machine
}

// wrong reports whether a time is too far ahead of the machine's to be followed, and
// notes that. The mutex is held.
func (c *Clock) wrong(at, machine time.Time) bool {
	by := at.Sub(machine)
	if by <= MaxLead || machine.Before(plausible) {
		return false
	}
	c.back = Jump{To: machine, By: by}
	return true
}

// Accept has the clock show the machine's time, also if that is earlier than what it
// showed.
func (c *Clock) Accept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, machine := c.now()
	c.shown = machine
}

// Raise has the clock go on from t if that is later than what it shows, and not too far
// ahead of the machine's.
func (c *Clock) Raise(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, machine := c.now(); t.After(now) && !c.wrong(t, machine) {
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

// WentBack returns when the clock last took the machine's time again, because it would
// have been ahead by more than MaxLead, and by how much; the zero value if it never did.
func (c *Clock) WentBack() Jump {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now()
	return c.back
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
