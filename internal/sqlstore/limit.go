package sqlstore

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
)

const (
	sqlLimitSpec = `SELECT spec FROM weaver_limits WHERE namespace = ?1 AND name = ?2`
	sqlPutLimit  = `
INSERT INTO weaver_limits (namespace, name, spec, revision, updated_at, actor, reason) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)
ON CONFLICT (namespace, name) DO UPDATE SET spec = excluded.spec, revision = excluded.revision, updated_at = excluded.updated_at, actor = excluded.actor, reason = excluded.reason`
	sqlSetSpec   = `UPDATE weaver_limits SET spec = ?3, revision = ?4 WHERE namespace = ?1 AND name = ?2`
	sqlDropLimit = `DELETE FROM weaver_limits WHERE namespace = ?1 AND name = ?2`

	// sqlLimitsChange raises the revision above every earlier one, and orders the changes.
	sqlLimitsChange = `
INSERT INTO weaver_limit_changes (namespace, revision) VALUES (?1, ?2)
ON CONFLICT (namespace) DO UPDATE SET revision = CASE WHEN weaver_limit_changes.revision >= excluded.revision THEN weaver_limit_changes.revision + 1 ELSE excluded.revision END`

	sqlQueueWaiting = `SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane WHERE o.namespace = ?1 AND o.queue = ?2 LIMIT ?3) d`
)

// limitSpec reads the spec of a limit.
func (v *View) limitSpec(name string) (spec limitSpec, found bool, err error) {
	st := v.stmt(sqlLimitSpec).Text(1, v.ns).Text(2, name)
	if found = st.One(); found {
		err = json.Unmarshal([]byte(st.ColText(0)), &spec)
	}
	if e := st.Done(); e != nil {
		err = e
	}
	return spec, found, err
}

// changeLimits makes claims read the limits again, and returns the spec as it is stored.
func (t *Tx) changeLimits(spec limitSpec) ([]byte, error) {
	t.fx.Notice.Due = true
	if err := t.stmt(sqlLimitsChange).Text(1, t.ns).Int(2, t.mic).Run(); err != nil {
		return nil, err
	}
	return json.Marshal(spec)
}

// putLimit writes a limit, or deletes it if it limits nothing.
func (t *Tx) putLimit(name string, spec limitSpec, a store.Audit) error {
	b, err := t.changeLimits(spec)
	if err != nil {
		return err
	}
	if spec == (limitSpec{}) {
		return t.stmt(sqlDropLimit).Text(1, t.ns).Text(2, name).Run()
	}
	return t.stmt(sqlPutLimit).Text(1, t.ns).Text(2, name).Text(3, string(b)).Int(4, t.mic).OrNull(5, a.By).OrNull(6, a.Reason).Run()
}

// setLimit applies a store.SetLimit. A rest that a handler asked for stays.
func (o *operation) setLimit(cmd store.SetLimit, got *store.CommandResult) error {
	verb := rules.LimitVerb
	if cmd.Delete {
		cmd.Limit, verb = store.Limit{}, rules.UnlimitVerb
		got.Err = store.CheckLimitName(cmd.Name)
	} else {
		got.Err = store.CheckLimit(cmd.Name, &cmd.Limit)
	}
	if got.Err != nil {
		return nil
	}
	t := o.tx
	if err := t.db.Name(t, "limits"); err != nil {
		return err
	}
	old, _, err := t.limitSpec(cmd.Name)
	if err != nil {
		return err
	}
	if cmd.Delete && old.Limit == (store.Limit{}) {
		got.Err = rules.NoLimit(cmd.Name)
		return nil
	}
	if err := o.note(cmd.Audit, verb, rules.LimitTarget(cmd.Name)); err != nil {
		return err
	}
	a, _, err := t.arrival(cmd.Name)
	if err != nil {
		return err
	}
	if fit, changed := a.Fit(cmd.Limit.Rate(), t.mic); changed {
		if err := t.writeRate(cmd.Name, fit); err != nil {
			return err
		}
	}
	return t.putLimit(cmd.Name, limitSpec{cmd.Limit, old.Rests}, cmd.Audit)
}

// arrival reads the state of a rate.
func (v *View) arrival(name string) (a rules.Arrival, stored bool, err error) {
	st := v.stmt(sqlRate).Text(1, v.ns).Text(2, name)
	if stored = st.One(); stored {
		a = rules.Arrival{Next: st.ColInt(0), Rest: st.ColInt(1)}
	}
	return a, stored, st.Done()
}

// restLimit applies a store.Rest.
func (o *operation) restLimit(cmd store.Rest, got *store.CommandResult) error {
	if got.Err = rules.CheckRest(&cmd); got.Err != nil {
		return nil
	}
	t := o.tx
	if err := t.db.Name(t, "limits"); err != nil { // claims write the same row
		return err
	}
	a, _, err := t.arrival(cmd.Name)
	if err != nil {
		return err
	}
	a.Rest = max(a.Rest, t.mic+cmd.For.Microseconds())
	if err := t.writeRate(cmd.Name, a); err != nil {
		return err
	}
	spec, found, err := t.limitSpec(cmd.Name)
	if err != nil || spec.Rests || strings.HasPrefix(cmd.Name, store.LimitRate) {
		return err // claims read the rest of this limit already: that of a key always
	}
	spec.Rests = true
	if !found {
		return t.putLimit(cmd.Name, spec, store.Audit{})
	}
	b, err := t.changeLimits(spec)
	if err != nil {
		return err
	}
	return t.stmt(sqlSetSpec).Text(1, t.ns).Text(2, cmd.Name).Text(3, string(b)).Int(4, t.mic).Run() // who set it, and when, stay
}

var limitColumns = sqlstmt.Columns[store.LimitRow]{
	sqlstmt.Col("l.name", func(l *store.LimitRow, r *sqlstmt.Row, i int) { l.Name = r.Text(i) }),
	sqlstmt.Col("l.spec", func(l *store.LimitRow, r *sqlstmt.Row, i int) {
		var spec limitSpec
		if json.Unmarshal(r.Bytes(i), &spec) == nil {
			l.Limit, l.Set = spec.Limit, spec.Limit != store.Limit{}
		}
	}),
	sqlstmt.Col("l.updated_at", func(l *store.LimitRow, r *sqlstmt.Row, i int) { l.UpdatedAt = r.Time(i) }),
	sqlstmt.Col("l.actor", func(l *store.LimitRow, r *sqlstmt.Row, i int) { l.By = r.Text(i) }),
	sqlstmt.Col("l.reason", func(l *store.LimitRow, r *sqlstmt.Row, i int) { l.Reason = r.Text(i) }),
}

var (
	sqlLimit     = `SELECT ` + limitColumns.List() + ` FROM weaver_limits l WHERE l.namespace = ?1 AND l.name = ?2`
	sqlLimitPage = `SELECT ` + limitColumns.List() + ` FROM weaver_limits l WHERE l.namespace = ?1 AND l.name > ?2 ORDER BY l.name LIMIT ?3`
)

// Limits implements store.Observe.
func (s *Store) Limits(ctx context.Context, ns string, f store.LimitFilter) (page store.LimitPage, err error) {
	err = s.read(ctx, ns, func(v *View) (err error) {
		page, err = v.limitPage(&f)
		return err
	})
	return page, err
}

func (v *View) limitPage(f *store.LimitFilter) (page store.LimitPage, err error) {
	page.Now = v.now()
	if f.Names == nil {
		page.Limits, err = limitColumns.All(v.stmt(sqlLimitPage).Text(1, v.ns).Text(2, f.After).Int(3, int64(rules.LimitPageSize(f))))
	}
	for _, name := range f.Names[:min(len(f.Names), 1000)] {
		row, e := limitColumns.One(v.stmt(sqlLimit).Text(1, v.ns).Text(2, name))
		if e != nil {
			return page, e
		}
		if row == nil {
			row = &store.LimitRow{Name: name}
		}
		page.Limits = append(page.Limits, *row)
	}
	var running runningOf
	for i := 0; i < len(page.Limits) && err == nil; i++ {
		l := &page.Limits[i]
		if err = v.rateOf(l); err != nil {
			break
		}
		if !l.Set { // the row of a rest
			l.UpdatedAt = time.Time{}
		}
		if l.Running > 0 {
			if running == nil {
				if running, err = v.runningOf(); err != nil {
					break
				}
			}
			l.InUse = running[l.Name]
		}
		if queue, ok := strings.CutPrefix(l.Name, store.LimitQueue); ok && l.Pending > 0 {
			var n int64
			n, _, err = one(v.stmt(sqlQueueWaiting).Text(1, v.ns).Text(2, queue).Int(3, int64(l.Pending)+1))
			l.Waiting = int(n)
		}
	}
	return page, err
}

// rateOf reads the state of a limit's rate.
func (v *View) rateOf(l *store.LimitRow) error {
	a, _, err := v.arrival(l.Name)
	l.Arrival, l.RestUntil = sqlstmt.Instant(a.Next), sqlstmt.Instant(a.Rest)
	return err
}
