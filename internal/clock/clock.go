// Package clock is the clock of a store: the machine's clock, made monotonic.
//
// An operator or time synchronization may set the machine's clock back. Tasks that were due
// before would then wait until the clock reaches that time again, and leases would not end. A
// [Clock] therefore continues from its last time, slower than the machine's clock until that
// has caught up. The store keeps the last time and restores it with [Clock.Raise], so that
// this holds across restarts and between processes.
//
// A clock that is ahead of the machine's by more than [MaxLead] has another cause: the
// machine's clock was once wrong, perhaps by years. Tasks planned for a fixed time would then
// start at once for as long. The clock therefore takes the machine's time again, the only case
// in which it goes back.
//
// Safety does not depend on clocks (docs/leases.md): they decide only when.
package clock

import (
	"sync"
	"time"
)

const (
	// slowdown is the part by which a Clock runs slower while it is ahead of the machine's. It
	// makes up an hour in eight. It never runs faster: a lease may last longer than its holder
	// believes, never shorter.
	slowdown = 8
	// reportFrom is the minimum difference that is reported.
	reportFrom = time.Minute
	// MaxLead is the maximum lead of a Clock over the machine's clock.
	MaxLead = 24 * time.Hour
)

// plausible is a date before the release of this program. A machine whose clock shows an
// earlier time has no battery and has not reached a time server yet. Its clock is wrong, so
// the lead is unlimited.
var plausible = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Clock is the clock of a store. The zero value is ready for use and follows the machine's
// clock. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	asked time.Time     // the machine's clock at the last reading, with its monotonic part
	shown time.Time     // the result of the last reading, to the nanosecond
	jump  Jump          // the last jump forward
	back  Jump          // the last return to the machine's time
	shift time.Duration // added to the machine's clock; set by tests
}

// Jump is a forward step of the machine's clock: it was set, or the machine slept.
type Jump struct {
	To time.Time // the time after the jump
	By time.Duration
}

// Now returns the time, in UTC and whole microseconds. It never returns less than before,
// except after a lead of more than MaxLead.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.now()
	return now.Truncate(time.Microsecond)
}

// now returns the time and the machine's time. The mutex is held.
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

// wrong reports whether a time is too far ahead of the machine's, and records that. The mutex
// is held.
func (c *Clock) wrong(at, machine time.Time) bool {
	by := at.Sub(machine)
	if by <= MaxLead || machine.Before(plausible) {
		return false
	}
	c.back = Jump{To: machine, By: by}
	return true
}

// Accept sets the clock to the machine's time, even backwards.
func (c *Clock) Accept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, machine := c.now()
	c.shown = machine
}

// Raise sets the clock to t if that is later than its time, and not too far ahead of the
// machine's.
func (c *Clock) Raise(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, machine := c.now(); t.After(now) && !c.wrong(t, machine) {
		c.shown = t.UTC().Round(0)
	}
}

// Ahead returns the lead over the machine's clock, which was set back. It returns 0 for a lead
// of less than a minute.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, machine := c.now()
	if by := now.Sub(machine); by >= reportFrom {
		return by
	}
	return 0
}

// Jumped returns the last jump forward of more than a minute, or the zero value.
func (c *Clock) Jumped() Jump {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now()
	return c.jump
}

// WentBack returns the last return to the machine's time, because the lead exceeded MaxLead, or
// the zero value.
func (c *Clock) WentBack() Jump {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now()
	return c.back
}

// Shift makes the machine's clock, as this clock reads it, jump by d now, or before the first
// reading. It is for tests.
func (c *Clock) Shift(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() {
		c.now()
	}
	c.shift += d
}
