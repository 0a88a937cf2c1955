package sqlstore

import (
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlReadTasks reads tasks with their dispatch rows, waiters and pauses. Only tasks that may
// become claimable by themselves have dispatch rows and waiters; any unfinished task may be
// paused.
var sqlReadTasks = newIDSQL(func(in string) string {
	return `
SELECT ` + taskSelect + `,
  CASE WHEN state IN ('pending', 'ready') THEN (SELECT available_at FROM weaver_outbox_events d WHERE d.namespace = ?1 AND d.task_id = o.task_id) END,
  CASE WHEN concurrency_key IS NOT NULL THEN (SELECT due_at FROM weaver_conc_waiters w WHERE w.namespace = ?1 AND w.task_id = o.task_id) END,
  CASE WHEN state IN ('pending', 'ready') THEN ` + lanePaused + ` END,
  CASE WHEN state IN ('pending', 'ready') THEN (SELECT coalesce(due_at, 0) FROM weaver_paused_tasks p WHERE p.namespace = ?1 AND p.task_id = o.task_id) END,
  EXISTS (SELECT 1 FROM weaver_paused_tasks p WHERE p.namespace = ?1 AND p.task_id = o.task_id)
FROM weaver_tasks o WHERE o.namespace = ?1 AND o.task_id ` + in
})

// readTasks reads tasks as readers see them at now. It calls use with each task in the order
// of ids, until use returns true. It leaves out missing tasks.
func (v *View) readTasks(ids []task.ID, now time.Time, use func(*task.Task) (enough bool)) error {
	err := v.byIDs(sqlReadTasks, ids, func(st *sqlstmt.Stmt, chunk []task.ID) error {
		found := make(map[task.ID]*task.Task, len(chunk))
		var stored []task.ID // of the found tasks, those with out-of-line texts
		for st.Next() {
			t, r := new(task.Task), st.Row()
			if scanTask(r, t) {
				stored = append(stored, t.ID)
			}
			stands := store.Availability{Dispatch: r.Time(taskSelected), Waiter: r.Time(taskSelected + 1), Pause: task.PauseKind(r.Name(taskSelected + 2)), Parked: r.Time(taskSelected + 3)}
			if r.Bool(taskSelected + 4) {
				stands.Pause = task.PauseTask
			}
			store.Derive(t, stands, now)
			found[t.ID] = t
		}
		if err := st.Done(); err != nil {
			return err
		}
		if err := v.fetchPayloads(found, stored); err != nil {
			return err
		}
		for _, id := range chunk {
			if t := found[id]; t != nil && use(t) {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends a read early.
var errEnough = errors.New("enough")

// readTask reads a task as readers see it at now, or returns nil.
func (v *View) readTask(id *task.ID, now time.Time) (t *task.Task, err error) {
	err = v.readTasks([]task.ID{*id}, now, func(found *task.Task) bool { t = found; return false })
	return t, err
}

var sqlPayloads = newIDSQL(func(in string) string {
	return `SELECT task_id, kind, data FROM weaver_payloads WHERE namespace = ?1 AND task_id ` + in
})

// fetchPayload adds the out-of-line texts of a task that may have any.
func (v *View) fetchPayload(t *task.Task, payloads bool) error {
	if !payloads {
		return nil
	}
	return v.fetchPayloads(map[task.ID]*task.Task{t.ID: t}, []task.ID{t.ID})
}

// fetchPayloads adds the out-of-line texts of tasks that may have any.
func (v *View) fetchPayloads(of map[task.ID]*task.Task, ids []task.ID) error {
	return v.byIDs(sqlPayloads, ids, func(st *sqlstmt.Stmt, _ []task.ID) error {
		for st.Next() {
			t := of[st.ColID(0)]
			switch st.ColName(1) {
			case kindInput:
				t.Input = st.ColBytes(2)
			case kindOutput:
				t.Output = st.ColBytes(2)
			case kindUnblock:
				t.UnblockInput = st.ColBytes(2)
			case kindFor:
				t.UnblockFor = st.ColText(2)
			}
		}
		return st.Done()
	})
}

var sqlSteps = `
SELECT ` + stepColumns.List() + ` FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2
ORDER BY step_index, by_attempt, by_try, name`

// steps returns all recorded steps of a task's attempts, sorted by index.
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

// eachRunning calls use for every running task of a namespace, with the claim that leased it.
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

// ids reads a column of IDs.
func ids(st *sqlstmt.Stmt) ([]task.ID, error) {
	var ids []task.ID
	for st.Next() {
		ids = append(ids, st.ColID(0))
	}
	return ids, st.Done()
}

// SQLGeneration reads the generation of a namespace's leases.
const SQLGeneration = sqlGeneration

const sqlGeneration = `
SELECT coalesce((SELECT value FROM weaver_store_meta WHERE namespace = ?1 AND key = 'generation'),
  (SELECT value FROM weaver_store_meta WHERE namespace = '' AND key = 'generation'))`

// generation reads the store's generation for leases of the namespace.
func (v *View) generation() (gen string, err error) {
	st := v.stmt(sqlGeneration).Text(1, v.ns)
	if st.One() {
		gen = st.ColText(0)
	}
	return gen, st.Done()
}
