package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

// stats holds rows of statistics by the width of their slots.
type stats map[time.Duration]map[store.StatKey]store.StatRow

// put stores a copy of a row.
func (s stats) put(width time.Duration, r store.StatRow) {
	if s[width] == nil {
		s[width] = make(map[store.StatKey]store.StatRow)
	}
	r.Slot, r.Run, r.Wait = r.Slot.UTC(), r.Run.Clone(), r.Wait.Clone()
	s[width][r.StatKey] = r
}

// before returns the rows of slots of a width before an instant, by their keys.
func (s stats) before(width time.Duration, at time.Time) []store.StatRow {
	var list []store.StatRow
	for k, r := range s[width] {
		if k.Slot.Before(at) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b store.StatRow) int { return a.Compare(&b.StatKey) })
	return list
}

// WriteStats implements store.Observe.
func (s *Store) WriteStats(ctx context.Context, ns string, rows ...store.StatRow) error {
	if err := rules.CheckStats(rows); err != nil {
		return err
	}
	return s.do(ctx, ns, func(o *op) {
		for i := range rows {
			if !rules.StatLate(rows[i].Slot, o.now) {
				o.stats.put(store.StatsSlot, rows[i])
			}
		}
	})
}

// ReadStats implements store.Observe.
func (s *Store) ReadStats(ctx context.Context, ns string, q store.StatsQuery) (store.StatsPage, error) {
	if err := rules.CheckStatsQuery(&q); err != nil {
		return store.StatsPage{}, err
	}
	f := rules.NewStatFold(q)
	err := s.do(ctx, ns, func(o *op) {
		for _, level := range rules.StatLevels {
			for _, r := range o.stats.before(level.Width, q.To) {
				if !r.Slot.Before(q.From) {
					f.Add(&r)
				}
			}
		}
	})
	return store.StatsPage{Rows: f.Rows()}, err
}

// merge is the Collect of statistics.
func (s stats) merge(keep time.Duration, now time.Time) (got store.StatsMerged) {
	drop := rules.StatsDropBefore(keep, now)
	for _, level := range rules.StatLevels {
		for _, r := range s.before(level.Width, drop) {
			delete(s[level.Width], r.StatKey)
			got.Dropped++
		}
	}
	for i, level := range rules.StatLevels[:len(rules.StatLevels)-1] {
		into := rules.StatLevels[i+1].Width
		rows := s.before(level.Width, level.MergeBefore(into, now))
		for j := range rows {
			delete(s[level.Width], rows[j].StatKey)
		}
		got.Merged += len(rows)
		for _, sum := range rules.MergedStats(rows, into) {
			if old, ok := s[into][sum.StatKey]; ok {
				sum.Add(&old)
			}
			s.put(into, sum)
		}
	}
	return got
}
