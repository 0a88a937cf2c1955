package sqlstore

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlPlaceOf = `SELECT queue, task_type, lane_group, priority, available_at FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = ?2`

	sqlCountBefore = `
SELECT count(*), min(o.available_at) FROM (SELECT available_at FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_lane
  WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND priority = ?4 AND lane_group = ?5 AND (available_at, task_id) < (?6, ?7) LIMIT ?8) o`
)

// lineReader counts the due tasks that are claimed before one.
type lineReader struct {
	*View
	own   store.DispatchRow
	now   time.Time
	turns int // rows of its lane before it
	lanes []rules.LaneAhead
	cut   bool // there are more lanes
}

// line reads the line of a task; nil if it is not due.
func (v *View) line(id *task.ID, now time.Time) (*store.Line, error) {
	t, err := v.readTask(id, now)
	if err != nil || t == nil || t.State != task.Ready {
		return nil, err
	}
	r := &lineReader{View: v, now: now}
	st := v.stmt(sqlPlaceOf).Text(1, v.ns).ID(2, id)
	if st.One() {
		r.own = store.DispatchRow{
			Task: *id, Queue: st.ColText(0), Type: st.ColText(1), Group: st.ColText(2), Priority: int(st.ColInt(3)), AvailableAt: sqlstmt.Instant(st.ColInt(4)),
		}
	}
	if err := st.Done(); err != nil || r.own.Task.IsZero() {
		return nil, err
	}
	limits, err := v.limitPage(&store.LimitFilter{Names: store.LimitNames(r.own.Queue, r.own.Type, r.own.Group)})
	if err != nil {
		return nil, err
	}
	_, paused, err := v.paused()
	if err != nil {
		return nil, err
	}
	own, err := r.before(&r.own)
	if err != nil {
		return nil, err
	}
	r.turns, r.lanes = own.N, []rules.LaneAhead{own}
	// The lanes of its type, and those of the types before and after it.
	kind := r.own.Type
	for _, from := range []string{kind, "", kind + " "} {
		err := r.walk(from, func(other string) (counts, ends bool) {
			switch {
			case from == kind:
				return true, other != kind
			case from == "" && other >= kind:
				return false, true
			}
			return !slices.Contains(paused, other), false
		})
		if err != nil {
			return nil, err
		}
	}
	return rules.LineOf(t, &r.own, r.lanes, r.cut, limits.Limits, now), nil
}

// walk counts the lanes of the task's queue from a type on, until of says that they end.
func (r *lineReader) walk(from string, of func(kind string) (counts, ends bool)) error {
	l := store.DispatchRow{Queue: r.own.Queue, Type: from}
	for range rules.MaxLineLanes {
		st := r.stmt(sqlNextOfQueue).Text(1, r.ns).Text(2, l.Queue).Text(3, l.Type).Text(4, l.Group).Int(5, int64(l.Priority))
		found := st.One()
		if found {
			l.Type, l.Group, l.Priority = st.ColText(0), st.ColText(1), int(st.ColInt(2))
		}
		if err := st.Done(); err != nil || !found {
			return err
		}
		counts, ends := of(l.Type)
		if ends {
			return nil
		}
		if !counts || l.Type == r.own.Type && l.Group == r.own.Group && l.Priority == r.own.Priority {
			continue
		}
		ahead, err := r.before(&l)
		if err != nil {
			return err
		}
		if ahead.N > 0 {
			r.lanes = append(r.lanes, ahead)
		}
	}
	r.cut = true
	return nil
}

// before counts the rows of a lane that are claimed before the task.
func (r *lineReader) before(l *store.DispatchRow) (rules.LaneAhead, error) {
	ahead := rules.LaneAhead{Type: l.Type, Group: l.Group}
	b := rules.BoundOf(&r.own, l, r.turns, r.now)
	if b.Most == 0 {
		return ahead, nil
	}
	n, first, err := one(r.stmt(sqlCountBefore).Text(1, r.ns).Text(2, l.Queue).Text(3, l.Type).Int(4, int64(l.Priority)).Text(5, l.Group).
		Time(6, b.At).ID(7, &b.ID).Int(8, int64(b.Most)))
	ahead.N, ahead.First = int(n), sqlstmt.Instant(first)
	return ahead, err
}
