package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/clock"
)

func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		begun := time.Now()
		want := func(when string, want time.Duration) {
			t.Helper()
			if got := c.Now().Sub(begun); got != want {
				t.Errorf("%s the clock shows %v, want %v", when, got, want)
			}
		}
		want("at first", 0)
		time.Sleep(time.Second)
		want("after a second", time.Second)

		c.Shift(-time.Hour)
		want("when the machine's clock was set back", time.Second)
		time.Sleep(8 * time.Minute)
		want("eight minutes later", 7*time.Minute+time.Second)
		if got := c.Ahead(); got != 59*time.Minute {
			t.Errorf("it is ahead by %v, want 59m", got)
		}
		time.Sleep(8*time.Hour - 8*time.Minute)
		want("eight hours later, when the machine's has caught up,", 7*time.Hour+time.Second)
		if got := c.Ahead(); got != 0 {
			t.Errorf("it is still ahead by %v", got)
		}
		time.Sleep(time.Hour)
		want("an hour after that", 8*time.Hour+time.Second)
		if got := c.Jumped(); got != (clock.Jump{}) {
			t.Errorf("it jumped: %v", got)
		}

		c.Shift(time.Hour + 2*time.Minute)
		want("when the machine's clock was set forward", 9*time.Hour+2*time.Minute+time.Second)
		if got, want := c.Jumped(), (clock.Jump{To: c.Now(), By: time.Hour + 2*time.Minute}); got != want {
			t.Errorf("the jump is %v, want %v", got, want)
		}
	})
}

func TestRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		begun := time.Now()
		c.Raise(begun.Add(-time.Hour))
		if got := c.Now(); !got.Equal(begun) {
			t.Errorf("raised to the past the clock shows %v, want %v", got, begun)
		}
		c.Raise(begun.Add(time.Hour))
		time.Sleep(time.Second)
		if got, want := c.Now(), begun.Add(time.Hour+time.Second*7/8); !got.Equal(want) {
			t.Errorf("raised by an hour, a second ago, the clock shows %v, want %v", got, want)
		}
		if got := c.Jumped(); got != (clock.Jump{}) {
			t.Errorf("the machine's clock did not jump: %v", got)
		}
	})
}

// Frequent readings do not stop the clock.
func TestNowAskedOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		c.Raise(time.Now().Add(time.Hour))
		begun := c.Now()
		for range 1000 {
			time.Sleep(80 * time.Nanosecond)
			c.Now()
		}
		if got, want := c.Now().Sub(begun), 70*time.Microsecond; got != want {
			t.Errorf("after 80 µs it went on by %v, want %v", got, want)
		}
	})
}

// A lead of more than a day over a plausible machine clock does not come from a clock that was
// set back.
func TestLeadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		c.Shift(30 * 365 * 24 * time.Hour) // of the bubble, which begins in 2000
		begun := c.Now()
		want := func(when string, want time.Duration) {
			t.Helper()
			if got := c.Now().Sub(begun); got != want {
				t.Errorf("%s the clock shows %v, want %v", when, got, want)
			}
		}
		c.Raise(begun.Add(25 * time.Hour))
		want("raised by more than a day", 0)
		c.Raise(begun.Add(23 * time.Hour))
		want("raised by less", 23*time.Hour)
		c.Accept()
		want("when the machine's time was accepted", 0)
		c.Shift(10 * 365 * 24 * time.Hour)
		want("set forward by years", 10*365*24*time.Hour)
		c.Shift(-10 * 365 * 24 * time.Hour)
		want("set right again", 0)
		if got := c.WentBack(); got.By != 10*365*24*time.Hour {
			t.Errorf("it went back by %v", got.By)
		}
		c.Shift(-56 * 365 * 24 * time.Hour)
		want("on a machine that starts in 1974", 0)
	})
}
