package sqlstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Fields of inputs expire through the caller, which can open values: Collect returns the
// tasks, and the command ExpireInput replaces the input. A row holds the time of the next
// check.

const (
	sqlWatchExpiry = `
INSERT INTO weaver_expiries (namespace, task_id, set_at, look_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (namespace, task_id) DO UPDATE SET set_at = excluded.set_at, look_at = excluded.look_at`

	sqlAnyExpiry = `SELECT 1 FROM weaver_expiries INDEXED BY weaver_expiries_due WHERE namespace = ?1 AND look_at <= ?2 LIMIT 1`
	sqlExpiries  = `
SELECT e.task_id, e.set_at, coalesce(t.values_dropped, 1), t.finished_at IS NOT NULL
FROM weaver_expiries e INDEXED BY weaver_expiries_due
LEFT JOIN weaver_tasks t ON t.namespace = e.namespace AND t.task_id = e.task_id
WHERE e.namespace = ?1 AND e.look_at <= ?2 ORDER BY e.look_at, e.task_id LIMIT ?3`

	sqlExpiryLook = `UPDATE weaver_expiries SET look_at = ?3 WHERE namespace = ?1 AND task_id = ?2`
	sqlExpiryNext = `UPDATE weaver_expiries SET look_at = set_at + ?3 WHERE namespace = ?1 AND task_id = ?2`
	sqlExpiryDone = `DELETE FROM weaver_expiries WHERE namespace = ?1 AND task_id = ?2`
)

// watchExpiry records the next expiry of fields in a task's input, which is stored at an
// instant.
func (t *Tx) watchExpiry(id *task.ID, list []task.Expiry, at time.Time) error {
	next := task.NextExpiry(list, 0)
	if next == 0 {
		return nil
	}
	return t.stmt(sqlWatchExpiry).Text(1, t.ns).ID(2, id).Time(3, at).Time(4, at.Add(next)).Run()
}

// collectExpiries is Collect for expiries. Crash after the commit: the tasks are returned
// again after rules.ExpiryLook.
func (s *Store) collectExpiries(ctx context.Context, ns string) (res store.CollectResult, err error) {
	some := false
	err = s.read(ctx, ns, func(v *View) error {
		st := v.stmt(sqlAnyExpiry).Text(1, v.ns).Time(2, v.now())
		some = st.One()
		return st.Done()
	})
	if err != nil || !some {
		return res, err
	}
	err = s.write(ctx, ns, store.ExpiryBite, func(t *Tx) (err error) {
		res.Expired, err = t.expiries()
		return err
	})
	return res, err
}

func (t *Tx) expiries() (due []store.DueExpiry, err error) {
	type row struct {
		id          task.ID
		setAt       time.Time
		gone, ended bool
	}
	var rows []row
	st := t.stmt(sqlExpiries).Text(1, t.ns).Int(2, t.mic).Int(3, store.ExpiryBite)
	for st.Next() {
		rows = append(rows, row{st.ColID(0), st.ColTime(1), st.ColInt(2) > 0, st.ColBool(3)})
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	for i := range rows {
		r := &rows[i]
		if r.gone {
			err = t.stmt(sqlExpiryDone).Text(1, t.ns).ID(2, &r.id).Run()
		} else {
			err = t.stmt(sqlExpiryLook).Text(1, t.ns).ID(2, &r.id).Time(3, t.at.Add(rules.ExpiryLook)).Run()
		}
		if err != nil {
			return nil, err
		}
		if r.ended && !r.gone {
			due = append(due, store.DueExpiry{Task: r.id, Elapsed: t.at.Sub(r.setAt)})
		}
	}
	return due, nil
}

// expireInput replaces an input by the input without its expired fields. Crash after the
// commit: the caller checks again, and finds nothing to do.
func (o *operation) expireInput(cmd store.ExpireInput, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, store.Seen{}, got)
	if err != nil || row == nil {
		return err
	}
	t, of := o.tx, new(task.Task)
	st := t.stmt(sqlTask).Text(1, t.ns).ID(2, &row.id)
	payloads := st.One() && scanTask(st.Row(), of)
	if err := st.Done(); err != nil {
		return err
	}
	if err := t.fetchPayload(of, payloads); err != nil {
		return err
	}
	if got.Err = rules.CheckExpire(&cmd, of.State, task.PayloadHash(of.Input)); got.Err != nil {
		return nil
	}
	if len(cmd.Input) > 0 {
		if got.Err, err = t.usable(rules.InputBlobs(cmd.Input)); err != nil || got.Err != nil {
			return err
		}
		secure, err := t.db.Erase(t)
		if err != nil {
			return err
		}
		defer secure()
		if err := t.setInput(&row.id, cmd.Input, of.SchemaVersion); err != nil {
			return err
		}
		if err := o.note(cmd.Audit, rules.ExpiryVerb, row.id.String()); err != nil {
			return err
		}
	}
	if cmd.Next > 0 {
		return t.stmt(sqlExpiryNext).Text(1, t.ns).ID(2, &row.id).Int(3, cmd.Next.Microseconds()).Run()
	}
	return t.stmt(sqlExpiryDone).Text(1, t.ns).ID(2, &row.id).Run()
}
