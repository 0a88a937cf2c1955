package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlReadTask reads a task with where it stands among dispatch rows, waiters
// and pauses, which are of the tasks that may run by themselves; others may be
// paused all the same.
var sqlReadTask = `
SELECT ` + taskSelect + `,
  CASE WHEN state IN ('pending', 'ready') THEN (SELECT available_at FROM weaver_outbox_events d WHERE d.namespace = ?1 AND d.task_id = ?2) END,
  CASE WHEN concurrency_key IS NOT NULL THEN (SELECT due_at FROM weaver_conc_waiters w WHERE w.namespace = ?1 AND w.task_id = ?2) END,
  CASE WHEN state IN ('pending', 'ready') THEN ` + lanePaused + ` END,
  CASE WHEN state IN ('pending', 'ready') THEN (SELECT coalesce(due_at, 0) FROM weaver_paused_tasks p WHERE p.namespace = ?1 AND p.task_id = ?2) END,
  EXISTS (SELECT 1 FROM weaver_paused_tasks p WHERE p.namespace = ?1 AND p.task_id = ?2)
FROM weaver_tasks o WHERE o.namespace = ?1 AND o.task_id = ?2`

// readTask reads a task as readers see it at now; nil when there is none.
func (v *View) readTask(id *task.ID, now time.Time) (*task.Task, error) {
	st := v.stmt(sqlReadTask).Text(1, v.ns).ID(2, id)
	if !st.One() {
		return nil, st.Done()
	}
	t := new(task.Task)
	r := st.Row()
	payloads := scanTask(r, t)
	stands := store.Availability{Dispatch: r.Time(taskSelected), Waiter: r.Time(taskSelected + 1), Pause: task.PauseKind(r.Name(taskSelected + 2)), Parked: r.Time(taskSelected + 3)}
	if r.Bool(taskSelected + 4) {
		stands.Pause = task.PauseTask
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	store.Derive(t, stands, now)
	return t, v.fetchPayloads(t, payloads)
}

const sqlPayloads = `SELECT kind, data FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2`

// fetchPayloads adds the out-of-line texts of a task that may have any.
func (v *View) fetchPayloads(t *task.Task, payloads bool) error {
	if !payloads {
		return nil
	}
	st := v.stmt(sqlPayloads).Text(1, v.ns).ID(2, &t.ID)
	for st.Next() {
		switch st.ColName(0) {
		case kindInput:
			t.Input = st.ColBytes(1)
		case kindOutput:
			t.Output = st.ColBytes(1)
		case kindUnblock:
			t.UnblockInput = st.ColBytes(1)
		case kindFor:
			t.UnblockFor = st.ColText(1)
		}
	}
	return st.Done()
}

var sqlSteps = `
SELECT ` + stepColumns.List() + ` FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2
ORDER BY step_index, by_attempt, by_try, name`

// steps returns everything a task's attempts recorded, by index.
func (v *View) steps(id *task.ID) ([]task.Step, error) {
	return stepColumns.All(v.stmt(sqlSteps).Text(1, v.ns).ID(2, id))
}

var (
	sqlAllClaims = `SELECT ` + claimColumns.List() + ` FROM weaver_claims WHERE namespace = ?1`
	sqlRuns      = `SELECT 1 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND lease_id = ?3`
)

// running returns the running tasks of a namespace.
func (v *View) running() (ids []task.ID, err error) {
	err = v.eachRunning(func(c *claimRow, i int) { ids = append(ids, c.ids[i]) })
	return ids, err
}

// eachRunning calls use for every running task of a namespace, with the claim
// that leased it.
func (v *View) eachRunning(use func(c *claimRow, i int)) error {
	claims, err := claimColumns.All(v.stmt(sqlAllClaims).Text(1, v.ns))
	if err != nil {
		return err
	}
	for i := range claims {
		c := &claims[i]
		for j := range c.ids {
			st := v.stmt(sqlRuns).Text(1, v.ns).ID(2, &c.ids[j]).Lease(3, &c.lease)
			if st.One() {
				use(c, j)
			}
			if err := st.Done(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ids reads a column of ids.
func ids(st *sqlstmt.Stmt) ([]task.ID, error) {
	var ids []task.ID
	for st.Next() {
		ids = append(ids, st.ColID(0))
	}
	return ids, st.Done()
}

// SQLGeneration reads the life of the store that leases of a namespace belong to.
const SQLGeneration = sqlGeneration

const sqlGeneration = `
SELECT coalesce((SELECT value FROM weaver_store_meta WHERE namespace = ?1 AND key = 'generation'),
  (SELECT value FROM weaver_store_meta WHERE namespace = '' AND key = 'generation'))`

// generation reads the life of the store that leases belong to.
func (v *View) generation() (gen string, err error) {
	st := v.stmt(sqlGeneration).Text(1, v.ns)
	if st.One() {
		gen = st.ColText(0)
	}
	return gen, st.Done()
}
