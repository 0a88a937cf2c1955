package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// schedule is a row with the records of its fires, oldest first.
type schedule struct {
	store.Schedule
	fires []store.ScheduleFire
}

// writeSchedule applies a store.WriteSchedule.
func (o *op) writeSchedule(cmd store.WriteSchedule) (res store.CommandResult) {
	var revision int64
	row := o.schedules[cmd.Name]
	if row != nil {
		revision = row.Revision
	}
	if res.Err = rules.CheckScheduleWrite(&cmd, revision, o.now); res.Err != nil {
		return res
	}
	if row == nil {
		row = &schedule{Schedule: store.Schedule{Name: cmd.Name, Revision: o.now.UnixMicro() - 1, CreatedAt: o.now}}
	}
	for i := range cmd.Fires {
		f := &cmd.Fires[i]
		var recorded store.FireKind
		if at, found := row.find(&f.ScheduleFire); found {
			recorded = row.fires[at].Kind
		}
		if res.Err = rules.CheckFire(cmd.Name, &f.ScheduleFire, recorded); res.Err != nil {
			return res
		}
		if f.Run != nil {
			if res.Err = cmp.Or(o.usable(rules.TaskBlobs(f.Run.Tasks)), o.hasBases(f.Run.Job)); res.Err != nil {
				return res
			}
		}
	}
	o.notice.Schedule = true
	if cmd.Verb != "" {
		o.note(cmd.Audit, cmd.Verb, rules.ScheduleTarget(cmd.Name))
	}
	if cmd.Delete {
		delete(o.schedules, cmd.Name)
		return res
	}
	o.schedules[cmd.Name] = row
	for i := range cmd.Fires {
		f := cmd.Fires[i].ScheduleFire
		var run store.Enqueued
		if sub := cmd.Fires[i].Run; sub != nil {
			run = o.enqueue(*sub, task.ID{})[0]
			f.Task, f.Job = rules.RunOf(sub, run)
		}
		res.Runs = append(res.Runs, run)
		f.RecordedAt = o.now
		if at, found := row.find(&f); found {
			row.fires[at] = f
		} else {
			row.fires = slices.Insert(row.fires, at, f)
		}
	}
	kept := 0
	for kept < min(len(row.fires), store.MaxScheduleFires) && row.fires[kept].At.Before(cmd.Prune) {
		kept++
	}
	row.fires = slices.Delete(row.fires, 0, kept)
	row.Revision++
	row.LookAt, row.UpdatedAt = cmd.LookAt, o.now
	if cmd.Rule != nil {
		row.Rule = copyRaw(cmd.Rule)
	}
	if cmd.Work != nil {
		row.Work = copyRaw(cmd.Work)
	}
	if cmd.State != nil {
		row.State = copyRaw(cmd.State)
	}
	return res
}

// find returns the index of the record with the time of a fire, or the index at which to insert it.
func (s *schedule) find(f *store.ScheduleFire) (int, bool) {
	return slices.BinarySearchFunc(s.fires, f, func(a store.ScheduleFire, b *store.ScheduleFire) int { return a.At.Compare(b.At) })
}

func (s *schedule) copy() store.Schedule {
	c := s.Schedule
	c.Rule, c.Work, c.State = copyRaw(c.Rule), copyRaw(c.Work), copyRaw(c.State)
	return c
}

// Schedules implements store.Observe.
func (s *Store) Schedules(ctx context.Context, ns string, f store.ScheduleFilter) (page store.SchedulePage, err error) {
	limit := store.PageLimit(f.Limit)
	err = s.do(ctx, ns, func(o *op) {
		page = store.SchedulePage{Now: o.now, Next: -1}
		rows := slices.SortedFunc(maps.Values(o.schedules), func(a, b *schedule) int { return cmp.Compare(a.Name, b.Name) })
		if f.Due {
			rows = slices.DeleteFunc(rows, func(s *schedule) bool { return s.LookAt.IsZero() })
			slices.SortStableFunc(rows, func(a, b *schedule) int { return a.LookAt.Compare(b.LookAt) })
		}
		for _, row := range rows {
			switch {
			case f.Name != "" && row.Name != f.Name, f.Name == "" && !f.Due && row.Name <= f.After:
			case f.Due && (len(page.Schedules) == limit || row.LookAt.After(o.now)):
				if page.Next < 0 {
					page.Next = max(0, row.LookAt.Sub(o.now))
				}
			case len(page.Schedules) < limit:
				page.Schedules = append(page.Schedules, row.copy())
			}
		}
		if row := o.schedules[f.Name]; row != nil && f.Fires {
			for i := len(row.fires) - 1; i >= 0 && len(page.Fires) < limit; i-- {
				if fire := row.fires[i]; !fire.At.Before(f.From) && (f.To.IsZero() || fire.At.Before(f.To)) {
					page.Fires = append(page.Fires, fire)
				}
			}
		}
	})
	return page, err
}

func (o *op) snapSchedules(snap *store.Snapshot) {
	for _, name := range slices.Sorted(maps.Keys(o.schedules)) {
		row := o.schedules[name]
		snap.Schedules = append(snap.Schedules, row.copy())
		if len(row.fires) > 0 {
			if snap.Fires == nil {
				snap.Fires = make(map[string][]store.ScheduleFire)
			}
			snap.Fires[name] = slices.Clone(row.fires)
		}
	}
}
