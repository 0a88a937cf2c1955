package sqlite

import (
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/lane"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// moves gathers what follows from the moves of one batch, to be done by propagate
// when all of them are made.
type moves struct {
	tx    *tx
	keys  map[string]bool              // to be woken
	ready []madeReady                  // tasks that are claimable again
	ended []ended                      // whose edges are to be decided
	jobs  map[task.ID]task.JobCounters // changes
}

// madeReady is a dispatch row to be written.
type madeReady struct {
	dispatched
	at int64
}

type ended struct {
	id    task.ID
	state task.State
}

func newMoves(t *tx) *moves { return &moves{tx: t} }

// jobContribution is what a job's counters see of a task.
type jobContribution struct {
	state   task.State
	waiting task.Waiting
	kind    task.ErrorKind
}

func (s jobContribution) count() task.JobCounters { return task.Count(s.state, s.waiting, s.kind) }

// counted notes a move for its job's counters.
func (m *moves) counted(job task.ID, before, after jobContribution) {
	change := after.count().Sub(before.count())
	if job.IsZero() || change == (task.JobCounters{}) {
		return
	}
	if m.jobs == nil {
		m.jobs = make(map[task.ID]task.JobCounters)
	}
	m.jobs[job] = m.jobs[job].Add(change)
}

// recount has a job's state derived anew though none of its tasks changed.
func (m *moves) recount(job task.ID) {
	if m.jobs == nil {
		m.jobs = make(map[task.ID]task.JobCounters)
	}
	m.jobs[job] = m.jobs[job].Add(task.JobCounters{})
}

// freed notes that a key may have room.
func (m *moves) freed(key string) {
	if key == "" {
		return
	}
	if m.keys == nil {
		m.keys = make(map[string]bool)
	}
	m.keys[key] = true
}

const sqlDeleteTimer = `DELETE FROM weaver_timers WHERE namespace = ?1 AND due_at = ?2 AND task_id = ?3`

// afterRunning does what follows when a task left running (h) for what e says.
func (m *moves) afterRunning(h *leaseRow, e *transition) error {
	m.counted(h.job, jobContribution{state: task.Running}, jobContribution{e.state, e.waiting, kindOf(e.ofTask())})
	if h.key != "" {
		if err := m.tx.dropKey(h.key); err != nil {
			return err
		}
		m.freed(h.key)
	}
	switch e.state {
	case task.Pending, task.Ready:
		m.ready = append(m.ready, madeReady{dispatched{h.id, h.lane, h.key}, max(e.readyAt.UnixMicro(), m.tx.mic)})
		return nil
	case task.Blocked:
		m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, h.id)
		return nil
	}
	return m.terminal(h, e.state)
}

// terminal notes an end: its deadline need not be watched any more, and its
// edges are to be decided.
func (m *moves) terminal(h *leaseRow, state task.State) error {
	m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, h.id)
	if h.needed {
		m.ended = append(m.ended, ended{h.id, state})
	}
	if h.deadline == 0 {
		return nil
	}
	return m.tx.stmt(sqlDeleteTimer).Text(1, m.tx.ns).Int(2, h.deadline).ID(3, &h.id).Run()
}

// propagate does what follows from the moves of a batch, in steps that each see
// the ones before, so that it does not depend on the order of the moves
// (LEASES §3, §4):
//
//   - keys with room wake their waiters, which are older than tasks that
//     are about to queue again
//   - tasks that are claimable again get their dispatch rows
//   - the edges towards all that ended are decided, then those towards what
//     ended by that, until there is none
//   - the counters of jobs change, once for each job
func (m *moves) propagate() error {
	if err := m.tx.wakeAll(m.keys); err != nil {
		return err
	}
	for i := range m.ready {
		if err := m.tx.dispatch(&m.ready[i].dispatched, m.ready[i].at); err != nil {
			return err
		}
	}
	for len(m.ended) > 0 {
		ended := m.ended
		m.ended = nil
		if err := m.decideEdges(ended); err != nil {
			return err
		}
	}
	if err := m.countJobs(); err != nil {
		return err
	}
	*m = moves{tx: m.tx}
	return nil
}

// edge is one that was open and whose need has ended.
type edge struct {
	child task.ID
	kind  task.EdgeKind
	need  ended
}

// unmet reports whether the need ended otherwise than it should.
func (e *edge) unmet() bool {
	holds, _ := e.kind.Holds(e.need.state) // it ended
	return !holds
}

// worse orders edges for which a dependent cannot run: one whose need should
// have succeeded counts before one whose need should have failed, for the job
// counts it as failed; then the oldest need.
func worse(a, b *edge) int {
	if a.kind != b.kind {
		if a.kind == task.OnSuccess {
			return -1
		}
		return 1
	}
	return a.need.id.Compare(b.need.id)
}

const (
	sqlOpenEdges = `
SELECT task_id, kind FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND done = 0`
	sqlEdgeDone = `UPDATE weaver_task_dependencies SET done = 1 WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3`
)

// decideEdges marks the open edges towards what ended, and then looks at each
// dependent once, with all of its edges that were marked: two needs of one
// task in one batch both count.
func (m *moves) decideEdges(ended []ended) error {
	var edges []edge
	for _, need := range ended {
		st := m.tx.stmt(sqlOpenEdges).Text(1, m.tx.ns).ID(2, &need.id)
		for st.Next() {
			edges = append(edges, edge{st.ColID(0), task.EdgeKind(st.ColName(1)), need})
		}
		if err := st.Done(); err != nil {
			return err
		}
	}
	for i := range edges {
		if err := m.tx.stmt(sqlEdgeDone).Text(1, m.tx.ns).ID(2, &edges[i].child).ID(3, &edges[i].need.id).Run(); err != nil {
			return err
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.child.Compare(b.child) })
	for len(edges) > 0 {
		n := 1
		for n < len(edges) && edges[n].child == edges[0].child {
			n++
		}
		if err := m.decideChild(edges[:n]); err != nil {
			return err
		}
		edges = edges[n:]
	}
	return nil
}

const sqlNeedsEnded = `
UPDATE weaver_tasks SET remaining_deps = remaining_deps - ?3
WHERE namespace = ?1 AND task_id = ?2 AND state = 'pending' AND waiting_reason = 'deps'
RETURNING remaining_deps, ready_at, queue, task_type, priority, concurrency_key, job_id`

// decideChild brings a dependent so many needs nearer to its start, or ends it
// when one of them ended otherwise than it should. One that ended before stays
// as it is.
func (m *moves) decideChild(edges []edge) error {
	child := edges[0].child
	st := m.tx.stmt(sqlNeedsEnded).Text(1, m.tx.ns).ID(2, &child).Int(3, int64(len(edges)))
	if !st.One() {
		return st.Done()
	}
	left, readyAt := st.ColInt(0), st.ColInt(1)
	d := dispatched{child, lane.Key{Queue: st.ColName(2), Type: st.ColName(3), Priority: st.ColInt(4)}, st.ColText(5)}
	job := st.ColID(6)
	if err := st.Done(); err != nil {
		return err
	}
	var blame *edge
	for i := range edges {
		if e := &edges[i]; e.unmet() && (blame == nil || worse(e, blame) < 0) {
			blame = e
		}
	}
	switch {
	case blame != nil:
		return m.needFailed(blame)
	case left > 0:
		return nil
	}
	return m.claimable(&d, job, jobContribution{task.Pending, task.WaitDeps, task.KindNone}, readyAt, task.WaitDelay)
}

const sqlClaimable = `UPDATE weaver_tasks SET state = ?3, waiting_reason = ?4, updated_at = ?5 WHERE namespace = ?1 AND task_id = ?2`

// claimable moves a task to ready, or to pending until readyAt, and writes its
// dispatch row.
func (m *moves) claimable(d *dispatched, job task.ID, before jobContribution, readyAt int64, why task.Waiting) error {
	after := jobContribution{state: task.Ready}
	at := m.tx.mic
	if readyAt > m.tx.mic {
		after = jobContribution{state: task.Pending, waiting: why}
		at = readyAt
	}
	err := m.tx.stmt(sqlClaimable).Text(1, m.tx.ns).ID(2, &d.id).Text(3, string(after.state)).OrNull(4, string(after.waiting)).Int(5, m.tx.mic).Run()
	if err != nil {
		return err
	}
	m.counted(job, before, after)
	return m.tx.dispatch(d, at)
}

// needFailed ends a task whose needs cannot be met any more.
func (m *moves) needFailed(e *edge) error {
	need, err := m.look(&e.need.id)
	if err != nil {
		return err
	}
	child, err := m.look(&e.child)
	if err != nil {
		return err
	}
	return m.end(child, task.Cancelled, store.UnmetError(e.kind, need.called(), e.need.state))
}

const (
	sqlJob = `
SELECT total, unfinished, movable, failed, succeeded, cancel_requested, state FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2`
	sqlCountJob = `
UPDATE weaver_jobs SET total = ?3, unfinished = ?4, movable = ?5, failed = ?6, succeeded = ?7, state = ?8, updated_at = ?9,
  finished_at = CASE WHEN ?10 THEN coalesce(finished_at, ?9) END
WHERE namespace = ?1 AND job_id = ?2`
)

// countJobs applies the changes of the counters, jobs in a fixed order.
func (m *moves) countJobs() error {
	ids := slices.SortedFunc(maps.Keys(m.jobs), task.ID.Compare)
	for i := range ids {
		if err := m.countJob(&ids[i], m.jobs[ids[i]]); err != nil {
			return err
		}
	}
	return nil
}

func (m *moves) countJob(id *task.ID, change task.JobCounters) error {
	st := m.tx.stmt(sqlJob).Text(1, m.tx.ns).ID(2, id)
	if !st.One() {
		return st.Done()
	}
	c := task.JobCounters{
		Total: int(st.ColInt(0)), Unfinished: int(st.ColInt(1)), Movable: int(st.ColInt(2)), Failed: int(st.ColInt(3)), Succeeded: int(st.ColInt(4)),
	}.Add(change)
	state := task.JobStateOf(c, st.ColBool(5))
	if err := st.Done(); err != nil {
		return err
	}
	m.tx.fx.Notice.Jobs = append(m.tx.fx.Notice.Jobs, *id)
	return m.tx.stmt(sqlCountJob).Text(1, m.tx.ns).ID(2, id).
		Int(3, int64(c.Total)).Int(4, int64(c.Unfinished)).Int(5, int64(c.Movable)).Int(6, int64(c.Failed)).Int(7, int64(c.Succeeded)).
		Text(8, string(state)).Int(9, m.tx.mic).Bool(10, state.Terminal()).Run()
}
