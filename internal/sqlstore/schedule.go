package sqlstore

import (
	"context"
	"math"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var scheduleColumns = sqlstmt.Columns[store.Schedule]{
	sqlstmt.Col("name", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.Name = r.Text(i) }),
	sqlstmt.Col("revision", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.Revision = r.Int(i) }),
	sqlstmt.Col("look_at", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.LookAt = r.Time(i) }),
	sqlstmt.Col("rule", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.Rule = r.Bytes(i) }),
	sqlstmt.Col("work", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.Work = r.Bytes(i) }),
	sqlstmt.Col("state", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.State = r.Bytes(i) }),
	sqlstmt.Col("created_at", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.CreatedAt = r.Time(i) }),
	sqlstmt.Col("updated_at", func(s *store.Schedule, r *sqlstmt.Row, i int) { s.UpdatedAt = r.Time(i) }),
}

// fireRow is a record with the name of its schedule.
type fireRow struct {
	store.ScheduleFire
	schedule string
}

var fireColumns = sqlstmt.Columns[fireRow]{
	sqlstmt.Col("schedule", func(f *fireRow, r *sqlstmt.Row, i int) { f.schedule = r.Text(i) }),
	sqlstmt.Col("at", func(f *fireRow, r *sqlstmt.Row, i int) { f.At = r.Time(i) }),
	sqlstmt.Col("until_at", func(f *fireRow, r *sqlstmt.Row, i int) { f.Until = r.Time(i) }),
	sqlstmt.Col("times", func(f *fireRow, r *sqlstmt.Row, i int) { f.Count = int(r.Int(i)) }),
	sqlstmt.Col("kind", func(f *fireRow, r *sqlstmt.Row, i int) { f.Kind = store.FireKind(r.Name(i)) }),
	sqlstmt.Col("reason", func(f *fireRow, r *sqlstmt.Row, i int) { f.Reason = r.Text(i) }),
	sqlstmt.Col("actor", func(f *fireRow, r *sqlstmt.Row, i int) { f.By = r.Text(i) }),
	sqlstmt.Col("run_task", func(f *fireRow, r *sqlstmt.Row, i int) { f.Task = r.ID(i) }),
	sqlstmt.Col("run_job", func(f *fireRow, r *sqlstmt.Row, i int) { f.Job = r.ID(i) }),
	sqlstmt.Col("recorded_at", func(f *fireRow, r *sqlstmt.Row, i int) { f.RecordedAt = r.Time(i) }),
}

var (
	sqlSchedule  = `SELECT ` + scheduleColumns.List() + ` FROM weaver_schedules WHERE namespace = ?1 AND name = ?2`
	sqlSchedules = `SELECT ` + scheduleColumns.List() + ` FROM weaver_schedules WHERE namespace = ?1 AND name > ?2 ORDER BY name LIMIT ?3`
	sqlDue       = `
SELECT ` + scheduleColumns.List() + ` FROM weaver_schedules WHERE namespace = ?1 AND look_at IS NOT NULL ORDER BY look_at, name LIMIT ?2`
	sqlFires = `
SELECT ` + fireColumns.List() + ` FROM weaver_schedule_fires WHERE namespace = ?1 AND schedule = ?2 AND at >= ?3 AND at < ?4 ORDER BY at DESC LIMIT ?5`
	sqlSnapSchedules = `SELECT ` + scheduleColumns.List() + ` FROM weaver_schedules WHERE namespace = ?1 ORDER BY name`
	sqlSnapFires     = `SELECT ` + fireColumns.List() + ` FROM weaver_schedule_fires WHERE namespace = ?1 ORDER BY schedule, at`
)

const (
	sqlRevision = `SELECT revision FROM weaver_schedules WHERE namespace = ?1 AND name = ?2 /*lock*/`
	sqlFiredAt  = `SELECT at, kind FROM weaver_schedule_fires WHERE namespace = ?1 AND schedule = ?2 AND at >= ?3 AND at <= ?4`
	sqlNewRow   = `INSERT INTO weaver_schedules (namespace, name, revision, look_at, rule, work, state, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?3, ?3) ON CONFLICT DO NOTHING`
	sqlMoveOn   = `
UPDATE weaver_schedules SET revision = revision + 1, look_at = ?3, updated_at = ?4, rule = coalesce(?5, rule), work = coalesce(?6, work), state = coalesce(?7, state)
WHERE namespace = ?1 AND name = ?2`
	sqlRecordFire = `
INSERT INTO weaver_schedule_fires (namespace, schedule, at, until_at, times, kind, reason, actor, run_task, run_job, recorded_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (namespace, schedule, at) DO UPDATE SET until_at = excluded.until_at, times = excluded.times, kind = excluded.kind, reason = excluded.reason,
  actor = excluded.actor, run_task = excluded.run_task, run_job = excluded.run_job, recorded_at = excluded.recorded_at`
	sqlPruneFires = `
DELETE FROM weaver_schedule_fires WHERE namespace = ?1 AND schedule = ?2 AND at < ?3 AND at IN (
  SELECT at FROM weaver_schedule_fires WHERE namespace = ?1 AND schedule = ?2 ORDER BY at LIMIT ?4)`
	sqlDropFires    = `DELETE FROM weaver_schedule_fires WHERE namespace = ?1 AND schedule = ?2`
	sqlDropSchedule = `DELETE FROM weaver_schedules WHERE namespace = ?1 AND name = ?2`
)

// writeSchedule applies a store.WriteSchedule. The lock of the row orders the writes of a schedule.
func (o *operation) writeSchedule(cmd store.WriteSchedule, got *store.CommandResult) (err error) {
	t := o.tx
	st := t.stmt(sqlRevision).Text(1, t.ns).Text(2, cmd.Name)
	var revision int64
	if st.One() {
		revision = st.ColInt(0)
	}
	if err := st.Done(); err != nil {
		return err
	}
	if got.Err = rules.CheckScheduleWrite(&cmd, revision, t.at); got.Err != nil {
		return nil
	}
	if got.Err, err = t.firable(&cmd); err != nil || got.Err != nil {
		return err
	}
	if revision == 0 {
		// The revision of a schedule that is deleted and created again differs from all before.
		n, err := t.stmt(sqlNewRow).Text(1, t.ns).Text(2, cmd.Name).Int(3, t.mic).Time(4, cmd.LookAt).Bytes(5, cmd.Rule).Bytes(6, cmd.Work).Bytes(7, cmd.State).Exec()
		if err != nil {
			return err
		}
		if n == 0 {
			got.Err = rules.CheckScheduleWrite(&cmd, t.mic, t.at) // created by another transaction meanwhile
			return nil
		}
	}
	t.fx.Notice.Schedule = true
	if cmd.Verb != "" {
		if err := o.note(cmd.Audit, cmd.Verb, rules.ScheduleTarget(cmd.Name)); err != nil {
			return err
		}
	}
	if cmd.Delete {
		if err := t.stmt(sqlDropFires).Text(1, t.ns).Text(2, cmd.Name).Run(); err != nil {
			return err
		}
		return t.stmt(sqlDropSchedule).Text(1, t.ns).Text(2, cmd.Name).Run()
	}
	if err := t.fire(&cmd, got); err != nil {
		return err
	}
	if !cmd.Prune.IsZero() {
		if err := t.stmt(sqlPruneFires).Text(1, t.ns).Text(2, cmd.Name).Time(3, cmd.Prune).Int(4, store.MaxScheduleFires).Run(); err != nil {
			return err
		}
	}
	if revision == 0 {
		return nil
	}
	return t.stmt(sqlMoveOn).Text(1, t.ns).Text(2, cmd.Name).Time(3, cmd.LookAt).Int(4, t.mic).Bytes(5, cmd.Rule).Bytes(6, cmd.Work).Bytes(7, cmd.State).Run()
}

// firable returns the error of a write whose fires were recorded before, or whose runs cannot be
// stored.
func (t *Tx) firable(cmd *store.WriteSchedule) (refused, err error) {
	if len(cmd.Fires) == 0 {
		return nil, nil
	}
	recorded := make(map[time.Time]store.FireKind)
	st := t.stmt(sqlFiredAt).Text(1, t.ns).Text(2, cmd.Name).Time(3, cmd.Fires[0].At).Time(4, cmd.Fires[len(cmd.Fires)-1].At)
	for st.Next() {
		recorded[st.ColTime(0)] = store.FireKind(st.ColName(1))
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	for i := range cmd.Fires {
		f := &cmd.Fires[i]
		if refused := rules.CheckFire(cmd.Name, &f.ScheduleFire, recorded[f.At.UTC()]); refused != nil {
			return refused, nil
		}
		if f.Run == nil {
			continue
		}
		if refused, err = t.usable(rules.TaskBlobs(f.Run.Tasks)); refused != nil || err != nil {
			return refused, err
		}
		if f.Run.Job != nil {
			if refused, err = t.lockBases(f.Run.Job); refused != nil || err != nil {
				return refused, err
			}
		}
	}
	return nil, nil
}

// fire stores the runs and the records of fires.
func (t *Tx) fire(cmd *store.WriteSchedule, got *store.CommandResult) error {
	for i := range cmd.Fires {
		f := cmd.Fires[i].ScheduleFire
		var run store.Enqueued
		if sub := cmd.Fires[i].Run; sub != nil {
			stored, err := t.enqueue(sub, task.ID{})
			if err != nil {
				return err
			}
			run = stored[0]
			f.Task, f.Job = rules.RunOf(sub, run)
			t.moved += len(sub.Tasks)
		}
		got.Runs = append(got.Runs, run)
		err := t.stmt(sqlRecordFire).Text(1, t.ns).Text(2, cmd.Name).Time(3, f.At).Time(4, f.Until).Int(5, int64(f.Count)).Text(6, string(f.Kind)).
			OrNull(7, f.Reason).OrNull(8, f.By).IDOrNull(9, &f.Task).IDOrNull(10, &f.Job).Int(11, t.mic).Run()
		if err != nil {
			return err
		}
	}
	return nil
}

// Schedules implements store.Observe.
func (s *Store) Schedules(ctx context.Context, ns string, f store.ScheduleFilter) (page store.SchedulePage, err error) {
	err = s.read(ctx, ns, func(v *View) (err error) {
		page, err = v.schedules(&f)
		return err
	})
	return page, err
}

func (v *View) schedules(f *store.ScheduleFilter) (page store.SchedulePage, err error) {
	limit := store.PageLimit(f.Limit)
	page.Next = -1
	switch {
	case f.Name != "":
		page.Schedules, err = scheduleColumns.All(v.stmt(sqlSchedule).Text(1, v.ns).Text(2, f.Name))
	case f.Due:
		page.Schedules, err = scheduleColumns.All(v.stmt(sqlDue).Text(1, v.ns).Int(2, int64(limit)+1))
	default:
		page.Schedules, err = scheduleColumns.All(v.stmt(sqlSchedules).Text(1, v.ns).Text(2, f.After).Int(3, int64(limit)))
	}
	if err != nil {
		return page, err
	}
	page.Now = v.now()
	if f.Due {
		n := 0
		for n < min(limit, len(page.Schedules)) && !page.Schedules[n].LookAt.After(page.Now) {
			n++
		}
		if n < len(page.Schedules) {
			page.Next = max(0, page.Schedules[n].LookAt.Sub(page.Now))
		}
		page.Schedules = page.Schedules[:n:n]
	}
	if !f.Fires || f.Name == "" {
		return page, nil
	}
	to := int64(math.MaxInt64)
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	st := v.stmt(sqlFires).Text(1, v.ns).Text(2, f.Name).Int(3, f.From.UnixMicro()).Int(4, to).Int(5, int64(limit))
	rows, err := fireColumns.All(st)
	for i := range rows {
		page.Fires = append(page.Fires, rows[i].ScheduleFire)
	}
	return page, err
}

func (v *View) snapSchedules(s *store.Snapshot) (err error) {
	if s.Schedules, err = scheduleColumns.All(v.stmt(sqlSnapSchedules).Text(1, v.ns)); err != nil {
		return err
	}
	rows, err := fireColumns.All(v.stmt(sqlSnapFires).Text(1, v.ns))
	for i := range rows {
		if s.Fires == nil {
			s.Fires = make(map[string][]store.ScheduleFire)
		}
		s.Fires[rows[i].schedule] = append(s.Fires[rows[i].schedule], rows[i].ScheduleFire)
	}
	return err
}
