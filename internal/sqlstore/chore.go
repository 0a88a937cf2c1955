package sqlstore

import (
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// chore is a row of weaver_chores.
type chore struct {
	kind    store.ChoreKind
	id      task.ID // the subject, for kinds about a task or a job
	name    string  // the subject, for the other kinds: a key, a queue, a type
	at      string  // the position, as bytes
	root    task.ID
	epoch   int64
	by, why string

	known map[int64]*jobPart // of ChoreEnqueue: the drafts that this process has in memory
}

var choreColumns = sqlstmt.Columns[chore]{
	sqlstmt.Col("kind", func(c *chore, r *sqlstmt.Row, i int) { c.kind = store.ChoreKind(r.Name(i)) }),
	sqlstmt.Col("subject", func(c *chore, r *sqlstmt.Row, i int) {
		if c.named() {
			c.name = r.Text(i)
		} else {
			c.id = r.ID(i)
		}
	}),
	sqlstmt.Col("position", func(c *chore, r *sqlstmt.Row, i int) { c.at = r.Text(i) }),
	sqlstmt.Col("root", func(c *chore, r *sqlstmt.Row, i int) { c.root = r.ID(i) }),
	sqlstmt.Col("epoch", func(c *chore, r *sqlstmt.Row, i int) { c.epoch = r.Int(i) }),
	sqlstmt.Col("actor", func(c *chore, r *sqlstmt.Row, i int) { c.by = r.Text(i) }),
	sqlstmt.Col("reason", func(c *chore, r *sqlstmt.Row, i int) { c.why = r.Text(i) }),
}

// named reports whether the subject is a name, not an ID.
func (c *chore) named() bool {
	return c.kind == store.ChorePause || c.kind == store.ChorePauseType || c.kind == store.ChoreWakeKey
}

// row returns the chore in the form of snapshots.
func (c *chore) row() store.ChoreRow {
	subject := c.name
	if !c.named() {
		subject = c.id.String()
	}
	return store.ChoreRow{Kind: c.kind, Subject: subject, Root: c.root}
}

// chores returns all chores in the form of snapshots.
func (v *View) chores() ([]store.ChoreRow, error) {
	list, err := choreColumns.All(v.stmt(sqlSnapChores).Text(1, v.ns))
	var rows []store.ChoreRow
	for i := range list {
		row := list[i].row()
		if (row.Kind == store.ChoreDecompose || row.Kind == store.ChoreEnqueue) && err == nil {
			row.Children, err = v.unstored(&list[i].id)
		}
		rows = append(rows, row)
	}
	return rows, err
}

const (
	sqlPutChore = `
INSERT INTO weaver_chores (namespace, kind, subject, position, root, epoch, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (namespace, kind, subject) DO UPDATE SET position = excluded.position, root = excluded.root, epoch = excluded.epoch,
  actor = excluded.actor, reason = excluded.reason`
	sqlDropChore = `DELETE FROM weaver_chores WHERE namespace = ?1 AND kind = ?2 AND subject = ?3`
)

// putChore writes a chore or its progress.
func (t *Tx) putChore(c *chore) error {
	t.fx.Notice.Chores = true
	st := t.stmt(sqlPutChore).Text(1, t.ns).Text(2, string(c.kind))
	if c.named() {
		st.Text(3, c.name)
	} else {
		st.ID(3, &c.id)
	}
	return st.Blob(4, []byte(c.at)).IDOrNull(5, &c.root).Int(6, c.epoch).OrNull(7, c.by).OrNull(8, c.why).Run()
}

// dropChore deletes a finished chore.
func (t *Tx) dropChore(c *chore) error {
	st := t.stmt(sqlDropChore).Text(1, t.ns).Text(2, string(c.kind))
	if c.named() {
		return st.Text(3, c.name).Run()
	}
	return st.ID(3, &c.id).Run()
}

// chore reads a chore again. It returns nil once the chore is done.
func (t *Tx) chore(c *chore) (*chore, error) {
	st := t.stmt(sqlChoreOf).Text(1, t.ns).Text(2, string(c.kind))
	if c.named() {
		st.Text(3, c.name)
	} else {
		st.ID(3, &c.id)
	}
	return choreColumns.One(st)
}

// AddChores implements propagate.Ops.
func (o ops) AddChores(keys []string, ended []propagate.Ended) error {
	for _, key := range keys {
		if err := o.tx.putChore(&chore{kind: store.ChoreWakeKey, name: key}); err != nil {
			return err
		}
	}
	for i := range ended {
		e := &ended[i]
		if err := o.tx.putChore(&chore{kind: store.ChoreEdges, id: e.ID, at: string(e.After[:])}); err != nil {
			return err
		}
	}
	return nil
}

const sqlCancelling = `
SELECT subject FROM weaver_chores WHERE namespace = ?1 AND kind = 'cancel_job'
UNION ALL
SELECT subject FROM weaver_chores WHERE namespace = ?1 AND kind = 'spent_job' AND length(position) > 0`

// cancelling returns the jobs whose tasks a chore is ending, or nil.
func (v *View) cancelling() (map[task.ID]bool, error) { return v.jobsOf(sqlCancelling) }

// jobsOf returns the jobs that are subjects of chores.
func (v *View) jobsOf(sql string) (jobs map[task.ID]bool, err error) {
	st := v.stmt(sql).Text(1, v.ns)
	for st.Next() {
		if jobs == nil {
			jobs = make(map[task.ID]bool)
		}
		jobs[st.ColID(0)] = true
	}
	return jobs, st.Done()
}

// Cancelling implements propagate.Ops.
func (o ops) Cancelling(jobs []task.ID) ([]bool, error) {
	is := make([]bool, len(jobs))
	cancelling, err := o.tx.cancelling()
	for i, job := range jobs {
		is[i] = cancelling[job]
	}
	return is, err
}

const (
	sqlAnyEdgesChore = `SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'edges' LIMIT 1`
	sqlUnmarked      = `
SELECT d.depends_on_task_id, d.kind, n.state, n.last_error_kind, n.allow_failure FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_open
CROSS JOIN weaver_chores c ON c.namespace = d.namespace AND c.kind = 'edges' AND c.subject = d.depends_on_task_id
CROSS JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2 AND d.done = 0`
)

// Unmarked implements propagate.Ops.
func (o ops) Unmarked(dependents []task.ID) ([]propagate.Edge, error) {
	st := o.tx.stmt(sqlAnyEdgesChore).Text(1, o.tx.ns)
	some := st.One()
	if err := st.Done(); err != nil || !some {
		return nil, err
	}
	var edges []propagate.Edge
	for i := range dependents {
		st := o.tx.stmt(sqlUnmarked).Text(1, o.tx.ns).ID(2, &dependents[i])
		for st.Next() {
			end := task.End{State: task.State(st.ColName(2)), Kind: task.ErrorKind(st.ColName(3)), AllowFailure: st.ColBool(4)}
			need := rules.EndedNeed{Need: st.ColID(0), Kind: task.EdgeKind(st.ColName(1)), End: end}
			if end.State.Terminal() { // otherwise it was retried meanwhile
				edges = append(edges, propagate.Edge{Dependent: dependents[i], EndedNeed: need})
			}
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	return edges, nil
}
