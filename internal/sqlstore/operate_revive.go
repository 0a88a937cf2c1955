package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const sqlChildrenAfter = `
SELECT depends_on_task_id, step, opened_epoch FROM weaver_task_dependencies
WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id > ?3 AND awaited > 0 AND kind = 'done' ORDER BY depends_on_task_id LIMIT ?4`

// reviveChildren revives the children of a revived task that ended with it, up to the
// transaction's move limit, and leaves the others to a chore.
func (o *operation) reviveChildren(c *chore) error {
	more := true
	if o.tx.moved < rules.MaxMoves {
		var err error
		if more, err = o.reviveSomeChildren(c); err != nil {
			return err
		}
	}
	if !more {
		return nil
	}
	o.revives = true
	return o.tx.putChore(c)
}

// reviveSomeChildren checks the next children of a revived task, and revives the children that
// ended with it. The chore's reason is the kind of the error with which the task had ended. It
// does nothing if the task has ended again.
func (o *operation) reviveSomeChildren(c *chore) (more bool, err error) {
	t := o.tx
	parent, err := o.moves.taskRow(&c.id)
	if err != nil || parent == nil || parent.contribution.State.Terminal() || parent.asked || parent.undo != nil {
		return false, err
	}
	join := parent.join
	if parent.epoch != c.epoch { // it has run meanwhile: it waits for other children, but still for those of its calls
		join = task.JoinNone
	}
	limit := max(1, rules.MaxMoves-t.moved)
	var list []rules.Need
	st := t.stmt(sqlChildrenAfter).Text(1, t.ns).ID(2, &c.id).Blob(3, []byte(c.at)).Int(4, int64(limit))
	for st.Next() {
		n := rules.Need{Awaited: 1, Step: st.ColName(1), Opened: st.ColInt(2)}
		n.Need, n.Kind = st.ColID(0), task.OnDone
		list = append(list, n)
	}
	if err := st.Done(); err != nil {
		return false, err
	}
	t.moved += len(list)
	children := make([]task.ID, len(list))
	for i := range list {
		children[i] = list[i].Need
	}
	if _, err := t.db.Tasks(t, children...); err != nil {
		return false, err
	}
	for i := range list {
		if err := o.reviveChild(&list[i], join, c); err != nil {
			return false, err
		}
	}
	if len(list) > 0 {
		c.at = string(list[len(list)-1].Need[:])
	}
	return len(list) == limit, nil
}

const sqlCancelKind = `SELECT cancel_kind FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// reviveChild revives a child if it ended with its parent, which has a join.
func (o *operation) reviveChild(n *rules.Need, join task.Join, c *chore) error {
	id := &n.Need
	row, err := o.moves.taskRow(id)
	if err != nil || row == nil || row.undo != nil { // in its undo phase, or it gave its undo up after the retry was accepted
		return err
	}
	n.End = row.contribution.End
	st := o.tx.stmt(sqlCancelKind).Text(1, o.tx.ns).ID(2, id)
	if st.One() {
		n.CancelKind = task.ErrorKind(st.ColName(0))
	}
	if err := st.Done(); err != nil || !n.RevivesChild(join, task.ErrorKind(c.why)) || n.Step != "" && !n.ComesBack(c.epoch) {
		return err
	}
	if err := o.tx.openEdge(&c.id, id, c.epoch); err != nil {
		return err
	}
	needs, err := o.tx.retryNeeds(id)
	if err != nil {
		return err
	}
	state, err := o.revive(row, needs, c)
	if err == nil && state == task.Ready {
		err = o.redispatch(row)
	}
	if err != nil {
		return err
	}
	return o.reviveWaiting(id, c)
}

const sqlNeededByOthers = `
SELECT 1 FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND task_id <> ?3 LIMIT 1`

// reviveWaiting leaves to a chore the other dependents that ended because of a revived child.
func (o *operation) reviveWaiting(child *task.ID, c *chore) error {
	st := o.tx.stmt(sqlNeededByOthers).Text(1, o.tx.ns).ID(2, child).ID(3, &c.id)
	found := st.One()
	if err := st.Done(); err != nil || !found {
		return err
	}
	return o.tx.putChore(&chore{kind: store.ChoreRevive, id: *child, by: c.by}) // no root: its task may be due, or wait for its key, by then
}
