package calendar

import (
	"math/bits"
	"time"
)

// civil is a set of civil times, each a full minute. A civil time is in seconds: the Unix time at which clocks in UTC
// show it.
type civil struct {
	minutes   uint64 // bit n is minute n; the other sets are like it
	hours     uint64
	months    uint64
	days      monthDays
	weekdays  weekdays
	either    bool // a date matches days or weekdays, not both
	everyHour bool // hours has all 24
	both      bool // a time in a fold fires twice
}

// monthDays are days of a month.
type monthDays struct {
	days    uint64 // 1 to 31
	last    uint64 // bit n is n days before the last
	nearest uint64 // the day from Monday to Friday nearest to day n
	lastW   bool   // the last day from Monday to Friday
}

// weekdays are days of a week, 0 is Sunday.
type weekdays struct {
	all  uint64
	nth  [6]uint64 // by n, 1 to 5
	last uint64
}

const day = 24 * 60 * 60

// The years in which civil times are looked for. In some zones they reach beyond the years of earliest and latest.
const (
	firstYear = 0
	lastYear  = 10000
)

// dates returns the days of a month, bit n is day n.
func (c *civil) dates(m month) uint64 {
	if c.months>>m.month&1 == 0 {
		return 0
	}
	last := m.last()
	valid := uint64(1)<<(last+1) - 2
	d := c.days.days
	for set := c.days.last; set != 0; set &= set - 1 {
		if n := bits.TrailingZeros64(set); n < last {
			d |= 1 << (last - n)
		}
	}
	for set := c.days.nearest & valid; set != 0; set &= set - 1 {
		d |= 1 << m.nearest(bits.TrailingZeros64(set))
	}
	if c.days.lastW {
		d |= 1 << m.nearest(last)
	}
	var w uint64
	first := m.weekday(1)
	for n := 1; n <= last; n++ {
		weekday := (first + n - 1) % 7
		if (c.weekdays.all|c.weekdays.nth[(n+6)/7])>>weekday&1 != 0 || n+7 > last && c.weekdays.last>>weekday&1 != 0 {
			w |= 1 << n
		}
	}
	if c.either {
		return (d | w) & valid
	}
	return d & w & valid
}

// possible reports whether any date matches. In 28 years of one century every date falls on every weekday that it
// ever has.
func (c *civil) possible() bool {
	for m := (month{2001, time.January}); m.year < 2029; m = m.add(1) {
		if c.dates(m) != 0 {
			return true
		}
	}
	return false
}

// next returns the first time at or after t.
func (c *civil) next(t int64) (int64, bool) {
	t = floorDiv(t+59, 60) * 60
	today := floorDiv(t, day)
	m, n := dateOf(today)
	dates := c.dates(m) >> n << n
	if dates>>n&1 != 0 {
		if minute, ok := c.minuteFrom(int(t-today*day) / 60); ok {
			return today*day + int64(minute)*60, true
		}
		dates &^= 1 << n
	}
	for ; m.year <= lastYear; m = m.add(1) {
		if dates != 0 {
			minute, _ := c.minuteFrom(0)
			return m.day(bits.TrailingZeros64(dates))*day + int64(minute)*60, true
		}
		dates = c.dates(m.add(1))
	}
	return 0, false
}

// prev returns the last time at or before t.
func (c *civil) prev(t int64) (int64, bool) {
	today := floorDiv(t, day)
	m, n := dateOf(today)
	dates := c.dates(m) & (1<<(n+1) - 1)
	if dates>>n&1 != 0 {
		if minute, ok := c.minuteTo(int(t-today*day) / 60); ok {
			return today*day + int64(minute)*60, true
		}
		dates &^= 1 << n
	}
	for ; m.year >= firstYear; m = m.add(-1) {
		if dates != 0 {
			minute, _ := c.minuteTo(24*60 - 1)
			return m.day(bits.Len64(dates)-1)*day + int64(minute)*60, true
		}
		dates = c.dates(m.add(-1))
	}
	return 0, false
}

// count returns the number of times in [from, to).
func (c *civil) count(from, to int64) int64 {
	if from >= to {
		return 0
	}
	return c.countBelow(from, to) + c.countDays(floorDiv(from, day), floorDiv(to, day))
}

// countBelow returns what the times of day of from and to contribute: the times before to on its day, less those
// before from on its day.
func (c *civil) countBelow(from, to int64) int64 {
	var n int64
	for _, end := range []struct{ at, sign int64 }{{to, 1}, {from, -1}} {
		today := floorDiv(end.at, day)
		if m, d := dateOf(today); c.dates(m)>>d&1 != 0 {
			n += end.sign * c.minutesBefore(int(end.at-today*day+59)/60)
		}
	}
	return n
}

// countDays returns the number of times on the days [from, to).
func (c *civil) countDays(from, to int64) int64 {
	m, first := dateOf(from)
	end, n := dateOf(to)
	var days int
	for ; m != end; m = m.add(1) {
		days += bits.OnesCount64(c.dates(m) >> first)
		first = 0
	}
	days += bits.OnesCount64(c.dates(m) & (1<<n - 1) >> first)
	return int64(days) * c.minutesBefore(24*60)
}

// minuteFrom returns the first minute of the day at or after one.
func (c *civil) minuteFrom(minute int) (int, bool) {
	h := minute / 60
	if c.hours>>h&1 != 0 {
		if set := c.minutes >> (minute % 60); set != 0 {
			return minute + bits.TrailingZeros64(set), true
		}
	}
	set := c.hours >> (h + 1)
	return (h+1+bits.TrailingZeros64(set))*60 + bits.TrailingZeros64(c.minutes), set != 0
}

// minuteTo returns the last minute of the day at or before one.
func (c *civil) minuteTo(minute int) (int, bool) {
	h := minute / 60
	if c.hours>>h&1 != 0 {
		if set := c.minutes & (2<<(minute%60) - 1); set != 0 {
			return h*60 + bits.Len64(set) - 1, true
		}
	}
	set := c.hours & (1<<h - 1)
	return (bits.Len64(set)-1)*60 + bits.Len64(c.minutes) - 1, set != 0
}

// minutesBefore returns the number of times of a day before a minute of it.
func (c *civil) minutesBefore(minute int) int64 {
	h := minute / 60
	n := bits.OnesCount64(c.hours&(1<<h-1)) * bits.OnesCount64(c.minutes)
	if c.hours>>h&1 != 0 {
		n += bits.OnesCount64(c.minutes & (1<<(minute%60) - 1))
	}
	return int64(n)
}

// month is a month of a year.
type month struct {
	year  int
	month time.Month
}

// dateOf returns the month and the day of the month of a number of days since 1970-01-01.
func dateOf(n int64) (month, int) {
	y, m, d := time.Unix(n*day, 0).UTC().Date()
	return month{y, m}, d
}

// add returns the month n months later, -1 ≤ n ≤ 1.
func (m month) add(n int) month {
	m.month += time.Month(n)
	switch m.month {
	case 0:
		return month{m.year - 1, time.December}
	case 13:
		return month{m.year + 1, time.January}
	}
	return m
}

// day returns the number of days from 1970-01-01 to a day of the month.
func (m month) day(n int) int64 {
	return time.Date(m.year, m.month, n, 0, 0, 0, 0, time.UTC).Unix() / day
}

// last returns the last day of the month.
func (m month) last() int { return int(m.add(1).day(1) - m.day(1)) }

// weekday returns the weekday of a day of the month. 1970-01-01 was a Thursday.
func (m month) weekday(n int) int { return int(((m.day(n)+4)%7 + 7) % 7) }

// nearest returns the day from Monday to Friday of this month that is nearest to a day of it.
func (m month) nearest(n int) int {
	switch w := time.Weekday(m.weekday(n)); {
	case w == time.Saturday && n == 1:
		return 3
	case w == time.Saturday:
		return n - 1
	case w == time.Sunday && n == m.last():
		return n - 2
	case w == time.Sunday:
		return n + 1
	}
	return n
}
