package sqlstore

import (
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// parentRow is a task as its decompose reads it.
type parentRow struct {
	rules.Parent
	node string
}

const sqlParent = `
SELECT depth, options_json,
  (SELECT count(*) FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND awaited > 0 AND kind = 'done'),
  (SELECT count(*) FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND awaited > 0 AND kind = 'done' AND step IS NULL)
FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// parent reads a task before it gets children.
func (t *Tx) parent(id *task.ID) (p parentRow, err error) {
	st := t.stmt(sqlParent).Text(1, t.ns).ID(2, id)
	if st.One() {
		var of task.Task
		st.ColOptions(1, &of)
		p = parentRow{rules.Parent{Depth: int(st.ColInt(0)), Children: int(st.ColInt(2)), Decomposed: int(st.ColInt(3))}, of.Node}
	}
	return p, st.Done()
}

const (
	kindJoinOutput = "join_output" // in weaver_payloads: the output of a task once its children have succeeded

	sqlWaitForChildren = `
UPDATE weaver_tasks SET remaining_deps = ?3, join_kind = ?4, has_payloads = has_payloads | ?5 WHERE namespace = ?1 AND task_id = ?2`
	sqlInsertChildEdge = `
INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind, awaited) VALUES (?1, ?2, ?3, 'done', ?4)`
)

// resolved is the transition of a finish, with the rows that it depends on.
type resolved struct {
	rules.Transition
	parent     parentRow        // for a decompose
	dependency rules.Dependency // for an add_dependency
}

// resolve decides the transition of a task for a finish.
func (m *moves) resolve(fin *store.Finish, row *leaseRow) (to resolved, err error) {
	if row.undo != nil {
		open := row.undoOpen
		if of := row.undo.Undoes(); !of.IsZero() {
			if open, err = m.tx.undoOpen(&of); err != nil {
				return to, err
			}
		}
		to.Transition = rules.ResolveUndo(fin, row.undo, open, row.key != "", m.tx.at)
		return to, nil
	}
	cancel, deadline, now := row.cancelRequest(), row.deadlineAt(), m.tx.at
	switch asks := rules.Asks(fin); {
	case asks == task.OutcomeDecompose:
		to.parent, err = m.tx.parent(&row.id)
		to.Transition = rules.ResolveDecompose(fin, to.parent.Parent, cancel, deadline, now)
	case asks == task.OutcomeAddDependency:
		to.dependency, err = m.dependency(row, &fin.DependsOn)
		to.Transition = rules.ResolveDependency(fin, &to.dependency, cancel, deadline, now)
	case fin.Outcome == task.OutcomeSuspended:
		to.Transition = rules.ResolveSuspend(fin, row.wakeSeq, cancel, deadline, now)
	default:
		to.Transition = rules.ResolveFinish(fin, cancel, deadline, now)
	}
	return to, err
}

// await writes the edges or children that a task waits for after its attempt.
func (m *moves) await(row *leaseRow, r *report, to *resolved) error {
	switch {
	case to.Awaited:
		return m.depend(row, to.dependency.End, r.fin, &to.Transition)
	case to.Join != task.JoinNone:
		return m.decompose(row, to.parent, r, &to.Transition)
	}
	return nil
}

// decompose makes a task wait for its children, after the task's transition is written. It
// stores the children or leaves them to a chore.
func (m *moves) decompose(row *leaseRow, p parentRow, r *report, to *rules.Transition) error {
	t := m.tx
	if to.JoinOutput != nil {
		if err := t.refer(&row.id, kindOutput, "", to.JoinOutput); err != nil {
			return err
		}
		if err := t.stmt(sqlPutPayload).Text(1, t.ns).ID(2, &row.id).Text(3, kindJoinOutput).Bytes(4, to.JoinOutput).Run(); err != nil {
			return err
		}
	}
	err := t.stmt(sqlWaitForChildren).Text(1, t.ns).ID(2, &row.id).Int(3, int64(len(r.fin.Children))).Text(4, string(to.Join)).
		Bool(5, to.JoinOutput != nil).Run()
	if err != nil {
		return err
	}
	return m.storeChildren(row, p, r)
}

// countChildren adds new children to the counters of a job.
func (m *moves) countChildren(job task.ID, list []task.New) {
	if len(list) > 0 {
		m.pending.Add(job, m.countOf(list))
	}
}

// countOf returns the counters of new children.
func (m *moves) countOf(list []task.New) (count task.JobCounters) {
	for i := range list {
		state, waiting, _ := rules.FirstState(&list[i], m.tx.at)
		count = count.Add(task.Count(task.End{State: state}, waiting, task.JoinNone, false))
	}
	return count
}

// addChildren stores children that the job counts already. edge names the i-th child and
// writes the edge to it.
func (m *moves) addChildren(row *leaseRow, p parentRow, list []task.New, edge func(n task.New, i int) (task.New, error)) error {
	t := m.tx
	budget, err := t.tightening(row)
	if err != nil {
		return err
	}
	in := insertion{tx: t, job: row.job, limits: row.limits, parent: row.id, deadline: row.deadlineAt(), depth: p.Depth + 1, dispatch: m.dispatchLater}
	for i := range list {
		n, err := edge(list[i], i)
		if err != nil {
			return err
		}
		budget.Tighten(&n)
		if _, err := in.task(&n); err != nil {
			return err
		}
	}
	return nil
}

// dispatchLater writes the dispatch row of a new task after keys have woken their older
// waiters.
func (m *moves) dispatchLater(d *dispatched, at int64) error {
	m.pending.Dispatch(d.dispatchRow(sqlstmt.Instant(at)))
	return nil
}

// children returns the number of children that a batch stores. They cost as much as tasks of a
// submission.
func children(fins []store.Finish) (n int) {
	for i := range fins {
		n += len(fins[i].Children)
	}
	return min(n, rules.MaxMoves)
}

// endedParent is a task that ended while it waited for its children.
type endedParent struct{ id, job task.ID }

// cancelChildren cancels unfinished children of the tasks that ended in this batch. It leaves
// children in a cancelled job to that job's chore.
func (m *moves) cancelChildren() error {
	for len(m.parents) > 0 {
		cancelling, err := m.tx.cancelling()
		if err != nil {
			return err
		}
		p := m.parents[0]
		m.parents = m.parents[1:]
		if cancelling[p.job] {
			continue
		}
		c := chore{kind: store.ChoreChildren, id: p.id}
		more := true
		if m.tx.moved < rules.MaxMoves {
			if more, err = m.cancelSomeChildren(&c); err != nil {
				return err
			}
		}
		if more {
			m.left = &c
			if err := m.tx.putChore(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

const sqlOpenChildren = `
SELECT depends_on_task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_open
WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id > ?3 AND done = 0 AND awaited > 0 AND kind = 'done' ORDER BY depends_on_task_id LIMIT ?4`

// cancelSomeChildren cancels the next children of a task that has ended or is being undone, or
// asks them to end. A task retried meanwhile waits for them again.
func (m *moves) cancelSomeChildren(c *chore) (more bool, err error) {
	t := m.tx
	parent, err := m.taskRow(&c.id)
	if err != nil || parent == nil || !parent.contribution.State.Terminal() && parent.undo == nil {
		return false, err
	}
	limit := max(1, (rules.MaxMoves-t.moved)/2) // their edges are marked too
	list, err := ids(t.stmt(sqlOpenChildren).Text(1, t.ns).ID(2, &c.id).Blob(3, []byte(c.at)).Int(4, int64(limit)))
	if err != nil {
		return false, err
	}
	t.moved += len(list)
	if err := m.endEach(list, task.KindParentEnded, rules.ParentEnded); err != nil {
		return false, err
	}
	if len(list) > 0 {
		c.at = string(list[len(list)-1][:])
	}
	return len(list) == limit, nil
}

const (
	sqlWrongChild = `
SELECT depends_on_task_id, ended_state FROM weaver_task_dependencies
WHERE namespace = ?1 AND task_id = ?2 AND kind = 'done' AND step IS NULL AND ended_state <> 'succeeded' AND awaited = (
  SELECT max(awaited) FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND kind = 'done' AND step IS NULL)
ORDER BY depends_on_task_id LIMIT 1`

	sqlKeepOutput = `
INSERT INTO weaver_payloads (namespace, task_id, kind, data)
SELECT namespace, task_id, 'output', data FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2 AND kind = 'join_output'
ON CONFLICT (namespace, task_id, kind) DO UPDATE SET data = excluded.data`
)

// WrongChildren implements propagate.Ops.
func (o ops) WrongChildren(parents []task.ID) ([]propagate.Edge, error) {
	var edges []propagate.Edge
	for i := range parents {
		st := o.tx.stmt(sqlWrongChild).Text(1, o.tx.ns).ID(2, &parents[i])
		if st.One() {
			edges = append(edges, propagate.Edge{Dependent: parents[i], EndedNeed: rules.EndedNeed{
				Need: st.ColID(0), Kind: task.OnDone, End: task.End{State: task.State(st.ColName(1))},
			}})
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	return edges, nil
}

// Complete implements propagate.Ops.
func (o ops) Complete(tasks []propagate.Joined) error {
	t := o.tx
	for i := range tasks {
		j := &tasks[i]
		state := task.Failed
		if j.Failure == nil {
			state = task.Succeeded
			if err := t.stmt(sqlKeepOutput).Text(1, t.ns).ID(2, &j.ID).Run(); err != nil {
				return err
			}
			if err := t.stmt(sqlDeletePayload).Text(1, t.ns).ID(2, &j.ID).Text(3, kindJoinOutput).Run(); err != nil {
				return err
			}
		}
		if err := t.writeEnd(&j.ID, state, j.Failure); err != nil {
			return err
		}
		if j.Deadline.IsZero() {
			continue
		}
		if err := t.deleteTimer(&j.ID, j.Deadline.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}
