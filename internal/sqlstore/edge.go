package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/task"
)

const (
	sqlLastError = `SELECT last_error_json FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

	// An opened edge has no end, but the epoch that opened it.
	sqlSetEdge = `
UPDATE weaver_task_dependencies SET done = CAST(?4 AS bigint), ended_state = CASE WHEN awaited > 0 THEN ?5 END,
  ended_kind = ?6, ended_code = ?7, ended_message = ?8, opened_epoch = CASE WHEN CAST(?4 AS bigint) <> 0 THEN opened_epoch WHEN step IS NOT NULL THEN ?9 END
WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3`
)

// endedError returns the part of an ended task's error that awaited edges keep.
func (t *Tx) endedError(id *task.ID, state task.State) (kept *task.Error, err error) {
	if state == task.Succeeded {
		return nil, nil
	}
	st := t.stmt(sqlLastError).Text(1, t.ns).ID(2, id)
	if st.One() {
		kept = rules.EndedError(state, st.Row().Error(0))
	}
	return kept, st.Done()
}

// bindEndedError binds the error of an edge to the parameters from at on.
func bindEndedError(st *sqlstmt.Stmt, at int, kept *task.Error) *sqlstmt.Stmt {
	if kept == nil {
		kept = &task.Error{}
	}
	return st.OrNull(at, string(kept.Kind)).OrNull(at+1, kept.Code).OrNull(at+2, kept.Message)
}

// scanEndedError reads the error of an edge from the columns from at on. It returns nil if the
// need succeeded, or ended before errors were kept.
func scanEndedError(r *sqlstmt.Row, at int) *task.Error {
	kind := r.Name(at)
	if kind == "" {
		return nil
	}
	return &task.Error{Kind: task.ErrorKind(kind), Code: r.Text(at + 1), Message: r.Text(at + 2)}
}

// openEdge makes a task, in an epoch, wait for the end of a need.
func (t *Tx) openEdge(dependent, need *task.ID, epoch int64) error {
	return t.setEdge(dependent, need, "", nil, epoch)
}

// markEdge records that the end of a need was counted.
func (t *Tx) markEdge(dependent *task.ID, n *rules.Need) error {
	if n.Awaited == 0 {
		return t.setEdge(dependent, &n.Need, n.End.State, nil, 0)
	}
	kept, err := t.endedError(&n.Need, n.End.State)
	if err != nil {
		return err
	}
	return t.setEdge(dependent, &n.Need, n.End.State, kept, 0)
}

func (t *Tx) setEdge(dependent, need *task.ID, end task.State, kept *task.Error, epoch int64) error {
	st := t.stmt(sqlSetEdge).Text(1, t.ns).ID(2, dependent).ID(3, need).Bool(4, end != "").OrNull(5, string(end))
	return bindEndedError(st, 6, kept).Int(9, epoch).Run()
}
