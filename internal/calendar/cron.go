package calendar

import (
	"math"
	"sort"
	"time"
)

// cron fires when the clocks of a zone show one of the civil times. It goes through the periods in which the zone has
// one offset: inside of each, civil time and Unix time differ by a constant.
type cron struct {
	civil civil
	loc   *time.Location
}

// period is a time in which a zone has one offset, [start, end) in seconds of Unix time.
type period struct {
	start, end  int64
	off, before int64 // offset of the period and of the one before, in seconds east of UTC
}

// Ends of periods that have none. They may be added to any offset.
const (
	always  = math.MinInt64 / 2
	forever = math.MaxInt64 / 2
)

// periodAt returns the period of an instant, or a part of it that ends in no change. ZoneBounds errs where the database
// has a rule instead of a list of changes: the end is too early on the last day of a leap year, and the start is too
// early in the year of the last listed change.
func periodAt(loc *time.Location, t int64) period {
	at := time.Unix(t, 0).In(loc)
	start, end := at.ZoneBounds()
	off := offset(at)
	p := period{start: always, end: forever, off: off, before: off}
	if !start.IsZero() {
		p.start = start.Unix()
		if offset(start) != off {
			n := sort.Search(int(t-p.start), func(n int) bool { return offset(start.Add(time.Duration(n)*time.Second)) == off })
			p.start += int64(n)
		}
		p.before = offset(time.Unix(p.start-1, 0).In(loc))
	}
	if !end.IsZero() {
		p.end = end.Unix()
		if p.end <= t {
			p.end = time.Date(at.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		}
	}
	return p
}

func offset(t time.Time) int64 {
	_, off := t.Zone()
	return int64(off)
}

// lowest returns the first civil time that may fire in a period.
func (c cron) lowest(p period) int64 {
	if !c.civil.both && p.before > p.off { // a fold, whose times fired in the period before
		return p.start + p.before
	}
	return p.start + p.off
}

// caughtUp reports whether a period begins with a fire for the gap before it.
func (c cron) caughtUp(p period) bool {
	if c.civil.everyHour || p.before >= p.off {
		return false
	}
	t, ok := c.civil.next(p.start + p.before)
	return ok && t < p.start+p.off
}

func (c cron) next(t int64) (int64, bool) {
	for t <= latest {
		p := periodAt(c.loc, t)
		if t <= p.start && c.caughtUp(p) {
			return p.start, true
		}
		if at, ok := c.civil.next(max(t+p.off, c.lowest(p))); ok && at-p.off < p.end {
			return at - p.off, at-p.off <= latest
		}
		t = p.end
	}
	return 0, false
}

func (c cron) prev(t int64) (int64, bool) {
	for t >= earliest {
		p := periodAt(c.loc, t)
		if at, ok := c.civil.prev(t + p.off); ok && at >= c.lowest(p) {
			return at - p.off, at-p.off >= earliest
		}
		if c.caughtUp(p) {
			return p.start, true
		}
		t = p.start - 1
	}
	return 0, false
}

func (c cron) count(from, to int64) int64 {
	var n int64
	for t := from; t < to; {
		p := periodAt(c.loc, t)
		end := min(p.end, to)
		n += c.civil.count(max(t+p.off, c.lowest(p)), end+p.off)
		// The fire for a gap may coincide with one that is counted already.
		if t <= p.start && c.caughtUp(p) && c.civil.count(p.start+p.off, p.start+p.off+1) == 0 {
			n++
		}
		t = end
	}
	return n
}
