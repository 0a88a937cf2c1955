package memstore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// limit is a set limit, the state of a rate, or both.
type limit struct {
	row     store.LimitRow // without its use
	arrival rules.Arrival
}

func (l *limit) says(now int64) bool { return l.row.Set || l.arrival.IdleAt() > now }

// limit returns the limit with a name; it creates a missing one.
func (o *op) limit(name string) *limit {
	l := o.limits[name]
	if l == nil {
		l = &limit{row: store.LimitRow{Name: name}}
		o.limits[name] = l
	}
	return l
}

// setLimit applies a store.SetLimit. A rest that a handler asked for stays.
func (o *op) setLimit(cmd store.SetLimit) store.CommandResult {
	verb := rules.LimitVerb
	err := store.CheckLimit(cmd.Name, &cmd.Limit)
	if cmd.Delete {
		verb = rules.UnlimitVerb
		if err = store.CheckLimitName(cmd.Name); err == nil && (o.limits[cmd.Name] == nil || !o.limits[cmd.Name].row.Set) {
			err = rules.NoLimit(cmd.Name)
		}
	}
	if err != nil {
		return store.CommandResult{Err: err}
	}
	o.note(cmd.Audit, verb, rules.LimitTarget(cmd.Name))
	l := o.limit(cmd.Name)
	l.row = store.LimitRow{Name: cmd.Name}
	if !cmd.Delete {
		l.row.Limit, l.row.Set, l.row.UpdatedAt, l.row.By, l.row.Reason = cmd.Limit, true, o.now, cmd.By, cmd.Reason
		l.arrival, _ = l.arrival.Fit(cmd.Limit.Rate(), o.now.UnixMicro())
	}
	o.notice.Due = true
	return store.CommandResult{}
}

// rest applies a store.Rest.
func (o *op) rest(cmd store.Rest) store.CommandResult {
	if err := rules.CheckRest(&cmd); err != nil {
		return store.CommandResult{Err: err}
	}
	l := o.limit(cmd.Name)
	l.arrival.Rest = max(l.arrival.Rest, o.now.Add(cmd.For).UnixMicro())
	o.notice.Due = true
	return store.CommandResult{}
}

// rateOf returns the rate of a limit that applies to a task.
func (o *op) rateOf(name string, t *task.Task) task.Rate {
	l := o.limits[name]
	switch {
	case l != nil && l.row.Set:
		return l.row.Rate()
	case t.RateLimit.Key != "" && name == store.LimitRate+t.RateLimit.Key:
		return t.RateLimit
	}
	return task.Rate{}
}

// opens returns the time from which on the limits of a task's lane let it start, and whether it
// waits for the end of a running task. The zero time is now.
func (o *op) opens(r *row) (at time.Time, full bool) {
	now := o.now.UnixMicro()
	open := now
	for _, name := range store.LimitNames(r.Queue, r.Type, groupOf(r)) {
		rate := o.rateOf(name, &r.Task)
		l := o.limits[name]
		if l == nil {
			l = &limit{}
		}
		l.arrival, _ = l.arrival.FitClaim(rate, now)
		open = max(open, l.arrival.OpenAt(rate))
		full = full || l.row.Running > 0 && o.runningUnder(name) >= l.row.Running
	}
	if open > now {
		at = time.UnixMicro(open).UTC()
	}
	return at, full
}

// runningUnder counts the running tasks to which a limit applies.
func (o *op) runningUnder(name string) (n int) {
	for _, r := range o.tasks {
		if r.State == task.Running && slices.Contains(store.LimitNames(r.Queue, r.Type, groupOf(r)), name) {
			n++
		}
	}
	return n
}

// start counts a task that starts for the limits of its lane.
func (o *op) start(r *row) {
	now := o.now.UnixMicro()
	for _, name := range store.LimitNames(r.Queue, r.Type, groupOf(r)) {
		if rate := o.rateOf(name, &r.Task); rate.Starts > 0 {
			l := o.limit(name)
			l.arrival = l.arrival.Start(rate, now)
		}
	}
	maps.DeleteFunc(o.limits, func(_ string, l *limit) bool { return !l.says(now) })
}

// Limits implements store.Observe.
func (s *Store) Limits(ctx context.Context, ns string, f store.LimitFilter) (page store.LimitPage, err error) {
	err = s.do(ctx, ns, func(o *op) {
		page = store.LimitPage{Now: o.now}
		names := f.Names[:min(len(f.Names), 1000)]
		if f.Names == nil {
			for _, name := range slices.Sorted(maps.Keys(o.limits)) {
				if l := o.limits[name]; name > f.After && (l.row.Set || l.arrival.Rest > 0 && !strings.HasPrefix(name, store.LimitRate)) {
					names = append(names, name)
				}
			}
			names = names[:min(len(names), rules.LimitPageSize(&f))]
		}
		page.Limits = o.usedOf(names)
	})
	return page, err
}

func (o *op) usedOf(names []string) (rows []store.LimitRow) {
	for _, name := range names {
		l := o.limits[name]
		if l == nil {
			l = &limit{row: store.LimitRow{Name: name}}
		}
		rows = append(rows, o.used(l))
	}
	return rows
}

// limitsOf returns the limits of a task's lane.
func (o *op) limitsOf(r *row) []store.LimitRow {
	return o.usedOf(store.LimitNames(r.Queue, r.Type, groupOf(r)))
}

// used returns the row of a limit with its use.
func (o *op) used(l *limit) store.LimitRow {
	row := l.row
	if l.arrival.Next > 0 {
		row.Arrival = time.UnixMicro(l.arrival.Next).UTC()
	}
	if l.arrival.Rest > 0 {
		row.RestUntil = time.UnixMicro(l.arrival.Rest).UTC()
	}
	if row.Running > 0 {
		row.InUse = o.runningUnder(row.Name)
	}
	if queue, ok := strings.CutPrefix(row.Name, store.LimitQueue); ok && row.Pending > 0 {
		for _, d := range o.dispatch {
			if d.Queue == queue && row.Waiting <= row.Pending {
				row.Waiting++
			}
		}
	}
	return row
}
