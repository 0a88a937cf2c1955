package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// statColumns are the columns of a row of statistics. An unreadable histogram is empty; the
// row still counts.
var statColumns = sqlstmt.Columns[store.StatRow]{
	sqlstmt.Col("slot", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.Slot = r.Time(i) }),
	sqlstmt.Col("worker", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.Worker = store.WorkerID(r.Name(i)) }),
	sqlstmt.Col("task_type", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.Type = r.Name(i) }),
	sqlstmt.Col("queue", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.Queue = r.Name(i) }),
	sqlstmt.Col("outcome", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.Outcome = task.Outcome(r.Name(i)) }),
	sqlstmt.Col("error_kind", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.ErrorKind = task.ErrorKind(r.Name(i)) }),
	sqlstmt.Col("attempts", func(s *store.StatRow, r *sqlstmt.Row, i int) { s.Count = r.Int(i) }),
	sqlstmt.Col("run_times", func(s *store.StatRow, r *sqlstmt.Row, i int) { _ = s.Run.UnmarshalBinary(r.Raw(i)) }),
	sqlstmt.Col("wait_times", func(s *store.StatRow, r *sqlstmt.Row, i int) { _ = s.Wait.UnmarshalBinary(r.Raw(i)) }),
}

var (
	sqlPutStats = `
INSERT INTO weaver_stats (namespace, width, slot, worker, task_type, queue, outcome, error_kind, attempts, run_times, wait_times)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (namespace, width, slot, worker, task_type, queue, outcome, error_kind) DO UPDATE SET
  attempts = excluded.attempts, run_times = excluded.run_times, wait_times = excluded.wait_times`

	sqlStats = `
SELECT ` + statColumns.List() + ` FROM weaver_stats
WHERE namespace = ?1 AND width = ?2 AND slot >= ?3 AND slot < ?4 ORDER BY slot LIMIT ?5`

	sqlOldStats = `
SELECT ` + statColumns.List() + ` FROM weaver_stats
WHERE namespace = ?1 AND width = ?2 AND slot < ?3 ORDER BY slot LIMIT ?4`

	sqlStatsOfSlots = `
SELECT ` + statColumns.List() + ` FROM weaver_stats WHERE namespace = ?1 AND width = ?2 AND slot >= ?3 AND slot <= ?4`

	sqlDeleteStats = `
DELETE FROM weaver_stats
WHERE namespace = ?1 AND width = ?2 AND slot = ?3 AND worker = ?4 AND task_type = ?5 AND queue = ?6 AND outcome = ?7 AND error_kind = ?8`
)

// WriteStats implements store.Observe.
func (s *Store) WriteStats(ctx context.Context, ns string, rows ...store.StatRow) error {
	if err := rules.CheckStats(rows); err != nil || len(rows) == 0 {
		return err
	}
	return s.write(ctx, ns, len(rows), func(t *Tx) error {
		for i := range rows {
			if rules.StatLate(rows[i].Slot, t.at) {
				continue
			}
			if err := t.putStats(store.StatsSlot, &rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *Tx) putStats(width time.Duration, r *store.StatRow) error {
	run, err := r.Run.MarshalBinary()
	if err != nil {
		return err
	}
	wait, err := r.Wait.MarshalBinary()
	if err != nil {
		return err
	}
	return t.bindStats(sqlPutStats, width, r).Int(9, r.Count).Blob(10, run).Blob(11, wait).Run()
}

// bindStats returns a statement whose first parameters are bound to the key of a row.
func (t *Tx) bindStats(sql string, width time.Duration, r *store.StatRow) *sqlstmt.Stmt {
	return t.stmt(sql).Text(1, t.ns).Duration(2, width).Time(3, r.Slot).Text(4, string(r.Worker)).Text(5, r.Type).
		Text(6, r.Queue).Text(7, string(r.Outcome)).Text(8, string(r.ErrorKind))
}

// ReadStats implements store.Observe. It reads the widest slots first, which are the
// oldest. When it stops, everything read is older than everything unread.
func (s *Store) ReadStats(ctx context.Context, ns string, q store.StatsQuery) (store.StatsPage, error) {
	if err := rules.CheckStatsQuery(&q); err != nil {
		return store.StatsPage{}, err
	}
	var page store.StatsPage
	err := s.read(ctx, ns, func(v *View) error {
		page = store.StatsPage{}
		fold := rules.NewStatFold(q)
		left := s.StatsLooks
		for i := len(rules.StatLevels) - 1; i >= 0 && page.Next.IsZero(); i-- {
			err := v.foldStats(&q, rules.StatLevels[i].Width, &left, fold, &page.Next)
			if err != nil {
				return err
			}
		}
		if page.Next.Equal(q.From) {
			return fmt.Errorf("%w: the slot at %v has more than %d rows, as many as one call reads: ask for slots that are over an hour old, which no longer name their workers", store.ErrStatsQuery, page.Next, s.StatsLooks)
		}
		page.Rows = fold.Rows()
		return nil
	})
	return page, err
}

// foldStats sums the rows of slots of a width. When left rows were read, it sets next to the
// first slot that is not completely read.
func (v *View) foldStats(q *store.StatsQuery, width time.Duration, left *int, fold *rules.StatFold, next *time.Time) error {
	st := v.stmt(sqlStats).Text(1, v.ns).Duration(2, width).Int(3, q.From.UnixMicro()).Int(4, q.To.UnixMicro()).
		Int(5, int64(*left)+1)
	var slot []store.StatRow // the rows of the last slot
	for st.Next() {
		var r store.StatRow
		statColumns.Scan(st.Row(), 0, &r)
		if len(slot) > 0 && !slot[0].Slot.Equal(r.Slot) {
			for i := range slot {
				fold.Add(&slot[i])
			}
			slot = slot[:0]
		}
		if *left == 0 {
			*next, slot = r.Slot, nil
			break
		}
		*left--
		slot = append(slot, r)
	}
	for i := range slot {
		fold.Add(&slot[i])
	}
	return st.Done()
}

// collectStats is the Collect of statistics. A reader looks first, so that the writer is
// asked only when something is old.
func (s *Store) collectStats(ctx context.Context, ns string, keep time.Duration) (store.CollectResult, error) {
	old := false
	err := s.read(ctx, ns, func(v *View) error {
		bite, err := v.oldStats(keep, 1)
		old = len(bite.rows) > 0
		return err
	})
	var got store.CollectResult
	if err != nil || !old {
		return got, err
	}
	err = s.write(ctx, ns, Heavy, func(t *Tx) (err error) {
		got, err = t.mergeStats(keep)
		return err
	})
	return got, err
}

// statBite is the work of one MergeStats.
type statBite struct {
	width time.Duration
	into  time.Duration // the width of the target slots; 0: the rows are deleted
	rows  []store.StatRow
}

// oldStats returns the next rows, at most limit, that are too old for the width of their
// slots: first rows to delete, then the finest slots.
func (v *View) oldStats(keep time.Duration, limit int) (bite statBite, err error) {
	now := v.now()
	old := func(width, into time.Duration, before time.Time) bool {
		bite = statBite{width: width, into: into}
		bite.rows, err = statColumns.All(v.stmt(sqlOldStats).Text(1, v.ns).Duration(2, width).Int(3, before.UnixMicro()).Int(4, int64(limit)))
		return err != nil || len(bite.rows) > 0
	}
	if drop := rules.StatsDropBefore(keep, now); !drop.IsZero() {
		for _, level := range rules.StatLevels {
			if old(level.Width, 0, drop) {
				return bite, err
			}
		}
	}
	for i, level := range rules.StatLevels[:len(rules.StatLevels)-1] {
		into := rules.StatLevels[i+1].Width
		if old(level.Width, into, level.MergeBefore(into, now)) {
			return bite, err
		}
	}
	return statBite{}, nil
}

func (t *Tx) mergeStats(keep time.Duration) (got store.CollectResult, err error) {
	bite, err := t.oldStats(keep, store.StatsBite)
	if err != nil || len(bite.rows) == 0 {
		return got, err
	}
	got.More = true
	for i := range bite.rows {
		n, err := t.bindStats(sqlDeleteStats, bite.width, &bite.rows[i]).Exec()
		if err != nil {
			return got, err
		}
		if n == 0 {
			return got, fmt.Errorf("merge statistics: a row of the slot at %v is gone", bite.rows[i].Slot)
		}
	}
	if bite.into == 0 {
		got.Stats.Dropped = len(bite.rows)
		return got, nil
	}
	got.Stats.Merged = len(bite.rows)
	sums := rules.MergedStats(bite.rows, bite.into)
	// A bite may have ended inside of a slot, so that a part of the slot exists.
	there, err := statColumns.All(t.stmt(sqlStatsOfSlots).Text(1, t.ns).Duration(2, bite.into).
		Time(3, sums[0].Slot).Time(4, sums[len(sums)-1].Slot))
	if err != nil {
		return got, err
	}
	known := make(map[store.StatKey]*store.StatRow, len(there))
	for i := range there {
		known[there[i].StatKey] = &there[i]
	}
	for i := range sums {
		if part := known[sums[i].StatKey]; part != nil {
			sums[i].Add(part)
		}
		if err := t.putStats(bite.into, &sums[i]); err != nil {
			return got, err
		}
	}
	return got, nil
}
