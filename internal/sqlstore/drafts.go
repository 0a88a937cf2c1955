package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A decompose with more children than a transaction moves stores the first of them and keeps
// the others as drafts. Bites of the chore "decompose" store the drafts. The task waits for
// all children from the beginning, and its job counts them. Finish works the chore off before
// it returns; if it is cut short, reapers continue.

// bites divides children into the batches that one transaction each stores.
func bites(list []task.New) (all [][]task.New) {
	for len(list) > 0 {
		n := min(len(list), rules.MaxMoves)
		all = append(all, list[:n])
		list = list[n:]
	}
	return all
}

// packFinish encodes the children of a decompose after the first bite. It runs before the
// transaction, so that no other caller waits for it.
func packFinish(fin *store.Finish) (packed [][]byte, err error) {
	for i, some := range bites(fin.Children) {
		var b []byte
		if i > 0 {
			if b, err = packChildren(some); err != nil {
				return nil, err
			}
		}
		packed = append(packed, b)
	}
	return packed, nil
}

const (
	sqlKeepDrafts = `INSERT INTO weaver_drafts (namespace, task_id, first, children, awaited, drafts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	sqlNextDrafts = `SELECT first, awaited, drafts FROM weaver_drafts WHERE namespace = ?1 AND task_id = ?2 ORDER BY first LIMIT 1`
	sqlDropDrafts = `DELETE FROM weaver_drafts WHERE namespace = ?1 AND task_id = ?2 AND first = ?3`
	sqlUnstored   = `SELECT CAST(coalesce(sum(children), 0) AS bigint) FROM weaver_drafts WHERE namespace = ?1 AND task_id = ?2`
)

// storeChildren stores the children of a decompose that the transaction has room for, and
// keeps the others as drafts.
func (m *moves) storeChildren(row *leaseRow, p parentRow, r *report) error {
	t := m.tx
	first, kept := p.Decomposed, false
	for i, some := range bites(r.fin.Children) {
		at := first
		first += len(some)
		if i == 0 && m.stored+len(some) <= rules.MaxMoves {
			m.stored += len(some)
			if err := m.storeBite(row, p, some, at, row.attemptNo); err != nil {
				return err
			}
			continue
		}
		kept = true
		for j := range some {
			if err := t.refer(&row.id, kindDraft, "", some[j].Input); err != nil {
				return err
			}
		}
		b := r.children[i]
		if b == nil {
			var err error
			if b, err = packChildren(some); err != nil {
				return err
			}
		}
		err := t.stmt(sqlKeepDrafts).Text(1, t.ns).ID(2, &row.id).Int(3, int64(at)).Int(4, int64(len(some))).Int(5, int64(row.attemptNo)).Bytes(6, b).Run()
		if err != nil {
			return err
		}
	}
	m.countChildren(row.job, r.fin.Children)
	if !kept {
		return nil
	}
	m.unstored = append(m.unstored, row.id)
	return t.putChore(&chore{kind: store.ChoreDecompose, id: row.id})
}

// storeBite stores children of a decompose, numbered from first, with the edges on which an
// attempt waits for them.
func (m *moves) storeBite(row *leaseRow, p parentRow, list []task.New, first, attempt int) error {
	t := m.tx
	return m.addChildren(row, p, list, func(n task.New, i int) (task.New, error) {
		n = rules.ChildOf(n, p.node, first+i, row.mayFail)
		return n, t.stmt(sqlInsertChildEdge).Text(1, t.ns).ID(2, &row.id).ID(3, &n.ID).Int(4, int64(attempt)).Run()
	})
}

// storeSomeChildren stores the next drafts of a task. If the task has ended meanwhile, or was
// asked to end, the children end with it.
func (m *moves) storeSomeChildren(c *chore) (more bool, err error) {
	t := m.tx
	row, err := m.taskRow(&c.id)
	if err != nil || row == nil {
		return false, err
	}
	list, first, attempt, err := t.nextDrafts(&c.id)
	if err != nil || len(list) == 0 {
		return false, err
	}
	of, err := t.options(&c.id)
	if err != nil {
		return false, err
	}
	p := parentRow{rules.Parent{Depth: row.depth}, of.Node}
	t.moved += len(list)
	if err := m.storeBite(&row.leaseRow, p, list, first, attempt); err != nil {
		return false, err
	}
	if err := t.stmt(sqlDropDrafts).Text(1, t.ns).ID(2, &c.id).Int(3, int64(first)).Run(); err != nil {
		return false, err
	}
	if row.contribution.State.Terminal() || row.asked || row.undo != nil {
		if err := m.endStored(row, list); err != nil {
			return false, err
		}
	}
	left, err := t.unstored(&c.id)
	if err != nil || left > 0 {
		return left > 0, err
	}
	return false, t.forgetKind(&c.id, kindDraft)
}

// refuseChildren fails a task whose children the store refuses permanently, with that error.
// Unstored children are dropped, and stored children end with the task.
func (m *moves) refuseChildren(c *chore, refused error) error {
	t := m.tx
	row, err := m.taskRow(&c.id)
	if err != nil {
		return err
	}
	for {
		list, first, _, err := t.nextDrafts(&c.id)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		if row != nil {
			m.pending.Add(row.job, task.JobCounters{}.Sub(m.countOf(list)))
		}
		if err := t.stmt(sqlDropDrafts).Text(1, t.ns).ID(2, &c.id).Int(3, int64(first)).Run(); err != nil {
			return err
		}
	}
	if err := errors.Join(t.forgetKind(&c.id, kindDraft), t.dropChore(c)); err != nil || row == nil {
		return err
	}
	if row.contribution.State == task.Pending && row.contribution.Waiting == task.WaitChildren {
		to := rules.RefuseChildren(refused)
		to.BeginUndo(row.undoable(), time.Time{}, t.at)
		if err := m.end(row, &to); err != nil {
			return err
		}
	}
	return m.propagate()
}

// endRefused drops, in its own transaction, the drafts of a chore that the store refuses
// permanently. The task or job that waits for them ends.
func (s *Store) endRefused(ctx context.Context, ns string, c *chore, refused error) error {
	return s.write(ctx, ns, Heavy, func(t *Tx) error {
		of, err := t.chore(c)
		if err != nil || of == nil {
			return err
		}
		if of.kind == store.ChoreEnqueue {
			return (&operation{tx: t, moves: moves{tx: t}}).refuseTasks(of, refused)
		}
		return (&moves{tx: t}).refuseChildren(of, refused)
	})
}

// storesRefused handles the first chore, if it stores tasks, after a refused reap. It reports
// whether the reap may be tried again.
func (s *Store) storesRefused(ctx context.Context, ns string) bool {
	var c *chore
	err := s.write(ctx, ns, 1, func(t *Tx) (err error) {
		c, err = t.firstChore()
		return err
	})
	switch {
	case err != nil || c == nil:
		return false
	case c.kind == store.ChoreEnqueue:
		return store.Refused(s.insertJobTasks(ctx, ns, c.id, nil)) // the job is dropped
	case c.kind != store.ChoreDecompose:
		return false
	}
	s.finishChores(ctx, ns, func(t *Tx) (*chore, error) { return t.chore(c) }, nil)
	return true
}

// endStored ends children that were stored after their parent had ended, for the same reason
// as children stored before.
func (m *moves) endStored(parent *taskRow, list []task.New) error {
	kind, why := task.KindParentEnded, rules.ParentEnded
	if parent.contribution.Kind == task.KindBudget && !parent.job.IsZero() {
		job, err := m.tx.job(&parent.job)
		if err != nil {
			return err
		}
		if job != nil && !job.ExhaustedAt.IsZero() {
			kind, why = task.KindJobBudget, rules.JobSpent(job)
		}
	}
	ids := make([]task.ID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return m.endEach(ids, kind, why)
}

// nextDrafts returns the next unstored children of a task, the number of the first child, and
// the attempt that waits for them.
func (v *View) nextDrafts(id *task.ID) (list []task.New, first, attempt int, err error) {
	st := v.stmt(sqlNextDrafts).Text(1, v.ns).ID(2, id)
	if st.One() {
		first, attempt = int(st.ColInt(0)), int(st.ColInt(1))
		list, err = unpackChildren(st.ColBytes(2))
	}
	if done := st.Done(); done != nil {
		err = done
	}
	return list, first, attempt, err
}

// unstored returns the number of unstored children of a task.
func (v *View) unstored(id *task.ID) (n int, err error) {
	st := v.stmt(sqlUnstored).Text(1, v.ns).ID(2, id)
	if st.One() {
		n = int(st.ColInt(0))
	}
	return n, st.Done()
}
