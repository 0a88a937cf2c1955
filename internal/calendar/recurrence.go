package calendar

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math/bits"
	"time"
)

// The seconds of Unix time in which anything fires: the years 1 to 9999, which RFC 3339 can write.
const (
	earliest = -62135596800
	latest   = 253402300799
)

// rule finds fires, in seconds of Unix time between earliest and latest.
type rule interface {
	next(t int64) (int64, bool) // the first fire at or after t
	prev(t int64) (int64, bool) // the last fire at or before t
	count(from, to int64) int64 // the number of fires in [from, to)
}

// Recurrence is a compiled [Spec]. It may be used by several goroutines at once.
type Recurrence struct {
	spec        Spec
	rule        rule
	loc         *time.Location
	first, last int64 // bounds of the fires, inclusive
}

// Spec returns the spec with its defaults and in canonical form, so that equal rules have equal JSON: single spaces
// in Cron, times in UTC.
func (r *Recurrence) Spec() Spec { return r.spec }

// Location returns the time zone of Cron, or UTC.
func (r *Recurrence) Location() *time.Location { return r.loc }

// Next returns the first fire after an instant, in UTC. It returns false if there is none.
func (r *Recurrence) Next(after time.Time) (time.Time, bool) {
	return instant(r.next(max(after.Unix(), earliest-1) + 1))
}

// Latest returns the last fire at or before an instant, in UTC. It returns false if there is none. Its work does not
// depend on how many fires were missed: a caller that catches up compares the result with the last fire that it has.
func (r *Recurrence) Latest(at time.Time) (time.Time, bool) {
	t := min(at.Unix(), r.last, latest)
	if t < r.first {
		return time.Time{}, false
	}
	t, ok := r.rule.prev(t)
	return instant(t, ok && t >= r.first)
}

// Count returns the number of fires from an instant on and before another. Its work depends on the number of months
// between them, not on the number of fires.
func (r *Recurrence) Count(from, to time.Time) int64 {
	f, t := max(ceil(from), r.first), min(ceil(to), r.last+1)
	if f >= t {
		return 0
	}
	return r.rule.count(f, t)
}

// Fires returns the fires from an instant on and before another, in order. Each step computes one.
func (r *Recurrence) Fires(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		end := ceil(to)
		for t, ok := r.next(ceil(from)); ok && t < end; t, ok = r.next(t + 1) {
			if !yield(time.Unix(t, 0).UTC()) {
				return
			}
		}
	}
}

// Delay returns by how much the fire of a schedule at a nominal instant is delayed. It is at least 0 and at most
// Jitter, whole milliseconds, and always the same for a name and an instant. It is shorter than the time to the next
// fire, so that delayed fires keep their order.
func (r *Recurrence) Delay(schedule string, nominal time.Time) time.Duration {
	most := time.Duration(r.spec.Jitter)
	if next, ok := r.Next(nominal); ok {
		most = min(most, next.Sub(nominal)-time.Millisecond)
	}
	if most < time.Millisecond {
		return 0
	}
	text := binary.BigEndian.AppendUint64([]byte(schedule), uint64(nominal.Unix()))
	sum := sha256.Sum256(text)
	ms, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(most/time.Millisecond)+1)
	return time.Duration(ms) * time.Millisecond
}

// next returns the first fire at or after t.
func (r *Recurrence) next(t int64) (int64, bool) {
	t = max(t, r.first)
	if t > r.last {
		return 0, false
	}
	t, ok := r.rule.next(t)
	return t, ok && t <= r.last
}

// instant converts the result of a search.
func instant(t int64, ok bool) (time.Time, bool) {
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(t, 0).UTC(), true
}

// ceil returns the first whole second at or after t.
func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// every fires at anchor + k·period for every integer k. Both are in seconds.
type every struct{ anchor, period int64 }

func (e every) next(t int64) (int64, bool) {
	next := e.anchor - floorDiv(e.anchor-t, e.period)*e.period
	return next, next <= latest
}

func (e every) prev(t int64) (int64, bool) {
	prev := e.anchor + floorDiv(t-e.anchor, e.period)*e.period
	return prev, prev >= earliest
}

func (e every) count(from, to int64) int64 {
	return floorDiv(to-1-e.anchor, e.period) - floorDiv(from-1-e.anchor, e.period)
}

// floorDiv divides and rounds down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
