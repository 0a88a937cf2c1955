package rules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
)

// StatLevel is one resolution of the statistics.
type StatLevel struct {
	Width time.Duration
	After time.Duration // age at which slots merge into the next level; 0: never
}

// StatLevels are the resolutions, the finest first.
var StatLevels = []StatLevel{
	{store.StatsSlot, store.StatsMinuteAfter},
	{time.Minute, store.StatsHourAfter},
	{time.Hour, 0},
}

// CheckStats returns an error for malformed rows before a write.
func CheckStats(rows []store.StatRow) error {
	if len(rows) > store.MaxStatsWrite {
		return fmt.Errorf("write statistics: %d rows, at most %d come in one call", len(rows), store.MaxStatsWrite)
	}
	for i := range rows {
		switch r := &rows[i]; {
		case !r.Slot.Equal(store.SlotOf(r.Slot, store.StatsSlot)):
			return fmt.Errorf("write statistics: row %d is of a slot at %v: want a multiple of %v", i, r.Slot, store.StatsSlot)
		case r.Count < 0:
			return fmt.Errorf("write statistics: row %d counts %d attempts", i, r.Count)
		}
	}
	return nil
}

// StatLate reports whether a slot is too old to be written any more.
func StatLate(slot, now time.Time) bool { return slot.Before(now.Add(-store.StatsLate)) }

// StatsDropBefore returns the instant before which slots are deleted; zero: no slot is.
func StatsDropBefore(keep time.Duration, now time.Time) time.Time {
	if keep = cmp.Or(keep, store.StatsKept); keep < 0 {
		return time.Time{}
	}
	return now.Add(-keep)
}

// MergeBefore returns the instant before which slots of a level merge into the next level. It
// is a slot boundary of the next level, so that no slot is cut in two.
func (l StatLevel) MergeBefore(into time.Duration, now time.Time) time.Time {
	return store.SlotOf(now.Add(-l.After), into)
}

// MergedStats sums rows into slots of a width, without their workers.
func MergedStats(rows []store.StatRow, width time.Duration) []store.StatRow {
	f := NewStatFold(store.StatsQuery{Step: width, By: []store.StatBy{store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind}})
	for i := range rows {
		f.Add(&rows[i])
	}
	return f.Rows()
}

// maxStatSteps is the maximum number of steps of one query.
const maxStatSteps = 20_000

// CheckStatsQuery returns an error for a malformed query.
func CheckStatsQuery(q *store.StatsQuery) error {
	switch {
	case q.From.IsZero() || q.To.IsZero() || !q.From.Before(q.To):
		return fmt.Errorf("%w: from %v to %v: want a beginning before the end", store.ErrStatsQuery, q.From, q.To)
	case q.Step < 0 || q.Step%store.StatsSlot != 0:
		return fmt.Errorf("%w: the step is %v: want a multiple of %v, or 0 for one sum", store.ErrStatsQuery, q.Step, store.StatsSlot)
	case q.Step > 0 && q.To.Sub(q.From)/q.Step >= maxStatSteps:
		return fmt.Errorf("%w: more than %d steps of %v from %v to %v: want a longer step or a shorter span", store.ErrStatsQuery, maxStatSteps, q.Step, q.From, q.To)
	}
	for _, by := range q.By {
		switch by {
		case store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind, store.ByWorker:
		default:
			return fmt.Errorf("%w: by %q: want %s, %s, %s, %s or %s", store.ErrStatsQuery, by, store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind, store.ByWorker)
		}
	}
	return nil
}

// StatFold groups and sums rows for a query.
type StatFold struct {
	q    store.StatsQuery
	rows map[store.StatKey]*store.StatRow
}

// NewStatFold returns an empty fold.
func NewStatFold(q store.StatsQuery) *StatFold {
	return &StatFold{q, make(map[store.StatKey]*store.StatRow)}
}

// Add adds a row, unless the query asks for another type or queue.
func (f *StatFold) Add(r *store.StatRow) {
	if f.q.Type != "" && r.Type != f.q.Type || f.q.Queue != "" && r.Queue != f.q.Queue {
		return
	}
	key := store.StatKey{Slot: f.q.From.UTC()}
	if f.q.Step > 0 {
		key.Slot = store.SlotOf(r.Slot, f.q.Step)
	}
	for _, by := range f.q.By {
		switch by {
		case store.ByType:
			key.Type = r.Type
		case store.ByQueue:
			key.Queue = r.Queue
		case store.ByOutcome:
			key.Outcome = r.Outcome
		case store.ByErrorKind:
			key.ErrorKind = r.ErrorKind
		case store.ByWorker:
			key.Worker = r.Worker
		}
	}
	sum := f.rows[key]
	if sum == nil {
		sum = &store.StatRow{StatKey: key}
		f.rows[key] = sum
	}
	sum.Add(r)
}

// Rows returns the sums, sorted by key.
func (f *StatFold) Rows() []store.StatRow {
	list := make([]store.StatRow, 0, len(f.rows))
	for _, r := range f.rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b store.StatRow) int { return a.Compare(&b.StatKey) })
	return list
}
