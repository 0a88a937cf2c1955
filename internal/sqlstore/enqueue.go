package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/lane"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// inlineMax is the maximum length of a text on its task's row, which every transition
// rewrites. Longer texts go to weaver_payloads. A database with Bulk has its own limit.
const inlineMax = 512

func (t *Tx) inlineMax() int {
	if t.bulk != nil {
		return t.bulk.InlineMax()
	}
	return inlineMax
}

// Kinds of out-of-line texts in weaver_payloads.
const (
	kindInput   = "input"
	kindOutput  = "output"
	kindUnblock = "unblock_input"
	kindFor     = "unblock_for" // the question that the unblock's input answers
)

// Enqueue implements store.Core.
func (s *Store) Enqueue(ctx context.Context, ns string, in store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if err := rules.CheckEnqueue(&sub); err != nil {
		return nil, err
	}
	if in == nil && s.Part > 0 && rules.InParts(&sub, s.Whole) {
		if parts := rules.Parts(sub.Tasks, s.Part); parts != nil {
			return s.enqueueParts(ctx, ns, &sub, parts)
		}
	}
	var got []store.Enqueued
	run := func(t *Tx) (err error) {
		got, err = t.enqueue(&sub, task.ID{})
		return err
	}
	var err error
	if in != nil {
		if err := rules.CheckCoalesce(&sub); err != nil {
			return nil, err
		}
		err = s.db.InTx(ctx, ns, in, run)
	} else {
		err = s.write(ctx, ns, len(sub.Tasks), run)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

const sqlInsertJob = `
INSERT INTO weaver_jobs (namespace, job_id, name, state, budget_json, meta, total, unfinished, movable, failed, succeeded,
  deadline_at, created_at, updated_at, idempotency_key, based_on)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
ON CONFLICT DO NOTHING`

const sqlJobByKey = `SELECT job_id FROM weaver_jobs WHERE namespace = ?1 AND name = ?2 AND idempotency_key = ?3`

// enqueue stores a submission. It only inserts, so that it can run in a caller's transaction
// without waiting for a row lock. Crash here: nothing was acknowledged; the same call again
// stores it once.
func (t *Tx) enqueue(sub *store.Submission, parent task.ID) ([]store.Enqueued, error) {
	got, err := t.put(sub, parent)
	if err == nil {
		err = t.flush()
	}
	return got, err
}

// put stores a submission, except for tasks that flush inserts together.
func (t *Tx) put(sub *store.Submission, parent task.ID) ([]store.Enqueued, error) {
	if gone, err := t.usable(rules.TaskBlobs(sub.Tasks)); err != nil || gone != nil {
		return nil, cmp.Or(err, gone)
	}
	in := insertion{tx: t, parent: parent, needed: neededOf(sub.Tasks), dispatch: t.dispatch, together: t.bulk != nil}
	if sub.Job != nil {
		in.job, in.limits = sub.Job.ID, limitsOf(&sub.Job.Budget)
		in.deadline = rules.JobDeadline(sub.Job.Budget, t.at)
		fresh, other, err := t.beginJob(sub, in.deadline)
		if err != nil {
			return nil, err
		}
		if !other.IsZero() {
			return existingJob(sub, other), nil
		}
		if !fresh {
			if c, err := t.chore(&chore{kind: store.ChoreEnqueue, id: in.job}); err != nil || c != nil { // an earlier try kept the tasks as drafts
				return createdTasks(sub), err
			}
		}
	}
	got := make([]store.Enqueued, len(sub.Tasks))
	for i := range sub.Tasks {
		var err error
		in.slot = &got[i]
		if got[i], err = in.task(&sub.Tasks[i]); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// beginJob stores the job of a submission without its tasks. fresh is false if another job
// (other) has its key, or if an earlier try of the same call stored it.
func (t *Tx) beginJob(sub *store.Submission, deadline time.Time) (fresh bool, other task.ID, err error) {
	missing, err := t.lockBases(sub.Job)
	if err != nil {
		return false, other, err
	}
	if missing != nil {
		if other, err := t.otherJob(sub.Job); err != nil || other.IsZero() {
			return false, other, cmp.Or(err, missing)
		}
	}
	if fresh, err = t.insertJob(sub, deadline); err != nil {
		return false, other, err
	}
	if fresh {
		t.fx.Notice.Jobs = append(t.fx.Notice.Jobs, sub.Job.ID)
		return true, other, nil
	}
	other, err = t.otherJob(sub.Job)
	return false, other, err
}

// existingJob answers a submission whose key belongs to another job.
func existingJob(sub *store.Submission, other task.ID) []store.Enqueued {
	return slices.Repeat([]store.Enqueued{{Job: other, Disposition: store.DispositionExisting}}, len(sub.Tasks))
}

// createdTasks answers a submission whose tasks are all stored.
func createdTasks(sub *store.Submission) []store.Enqueued {
	got := make([]store.Enqueued, len(sub.Tasks))
	for i := range sub.Tasks {
		got[i] = store.Enqueued{ID: sub.Tasks[i].ID, Disposition: store.DispositionCreated}
	}
	return got
}

func neededOf(tasks []task.New) map[task.ID]bool {
	var needed map[task.ID]bool
	for i := range tasks {
		for _, e := range tasks[i].Needs {
			if needed == nil {
				needed = make(map[task.ID]bool)
			}
			needed[e.Needs] = true
		}
	}
	return needed
}

func (t *Tx) insertJob(sub *store.Submission, deadline time.Time) (fresh bool, err error) {
	j := sub.Job
	var c task.JobCounters
	for i := range sub.Tasks {
		state, waiting, _ := rules.FirstState(&sub.Tasks[i], t.at)
		c = c.Add(task.Count(task.End{State: state}, waiting, task.JoinNone, false))
	}
	st := t.stmt(sqlInsertJob).Text(1, t.ns).ID(2, &j.ID).Text(3, j.Name).Text(4, string(task.JobStateOf(c, false))).
		JSON(5, j.Budget).Strings(6, j.Meta).
		Int(7, int64(c.Total)).Int(8, int64(c.Unfinished)).Int(9, int64(c.Movable)).Int(10, int64(c.Failed)).Int(11, int64(c.Succeeded)).
		Time(12, deadline).Time(13, j.ID.Time()).Int(14, t.mic).OrNull(15, j.IdempotencyKey)
	if len(j.BasedOn) == 0 {
		st.Null(16)
	} else {
		st.JSON(16, j.BasedOn)
	}
	n, err := st.Exec()
	if err == nil && n > 0 {
		err = t.insertBases(j)
	}
	return n > 0, err
}

// otherJob returns the job that kept a job from being inserted because it has the same key. It
// returns zero if an earlier try of the same call stored the job.
func (t *Tx) otherJob(j *task.NewJob) (id task.ID, err error) {
	if j.IdempotencyKey == "" {
		return id, nil
	}
	st := t.stmt(sqlJobByKey).Text(1, t.ns).Text(2, j.Name).Text(3, j.IdempotencyKey)
	if st.One() {
		id = st.ColID(0)
	}
	if id == j.ID {
		id = task.ID{}
	}
	return id, st.Done()
}

// insertion stores the tasks of one submission.
type insertion struct {
	tx          *Tx
	job, parent task.ID
	deadline    time.Time // of the job, or of the children's parent
	limits      int64     // of the job's budget
	depth       int       // of children
	dispatch    func(*dispatched, int64) error
	needed      map[task.ID]bool
	together    bool            // tasks of one kind are inserted together
	slot        *store.Enqueued // the answer for the task, which may change until the tasks are inserted
	kind        Alike           // of the current task
	row         AlikeTask       // of the current task
	at          time.Time       // the instant of the submission; zero: that of the transaction
	edges       int             // number of edges of a task stored with it; 0: all
}

// now returns the instant of the submission.
func (in *insertion) now() time.Time {
	if in.at.IsZero() {
		return in.tx.at
	}
	return in.at
}

// task stores a task, or finds the task with its key. With concurrent writers that task may be
// deleted between the two steps.
func (in *insertion) task(n *task.New) (e store.Enqueued, err error) {
	for range maxTries {
		if e, err = in.once(n); err != nil || !e.ID.IsZero() {
			return e, err
		}
	}
	return e, fmt.Errorf("%w: a task with the idempotency key %q is stored and deleted again and again", store.ErrBusy, n.IdempotencyKey)
}

// maxTries is the maximum number of tries to store a task whose key is taken and freed
// alternately.
const maxTries = 10

func (in *insertion) once(n *task.New) (store.Enqueued, error) {
	if n.Coalesce {
		if err := in.tx.flush(); err != nil { // it may find a task of the same submission
			return store.Enqueued{}, err
		}
		if e, err := in.tx.coalesce(n); err != nil || !e.ID.IsZero() {
			return e, err
		}
	}
	state, waiting, notBefore := rules.FirstState(n, in.now())
	deadline := rules.Deadline(n, in.deadline, in.now())
	options, err := in.tx.conn.Cache().PackOptions(n)
	if err != nil {
		return store.Enqueued{}, err
	}
	long, needed := len(n.Input) > in.tx.inlineMax(), in.depth > 0 || in.needed[n.ID]
	kind := &in.kind
	*kind = Alike{
		State: string(state), Waiting: string(waiting), Waits: waiting == task.WaitDeps, Available: in.tx.available(notBefore),
		Plain: !long && !needed && in.plain(n, deadline), Needed: needed, Long: long,
		Job: in.job, Parent: in.parent, Depth: int64(in.depth), Limits: in.limits,
	}
	if !notBefore.IsZero() {
		kind.ReadyAt = notBefore.UnixMicro()
	}
	if !deadline.IsZero() {
		kind.Deadline = deadline.UnixMicro()
	}
	if in.together && alike(n, in.tx.inlineMax()) {
		if !deadline.IsZero() {
			in.tx.fx.Notice.DeadlineIn(deadline.Sub(in.tx.at))
		}
		in.alike(n, kind, options)
		return store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}, nil
	}
	in.row = kind.describe(n, options, true)
	stored, err := in.tx.insertTask(kind, &in.row)
	if err != nil {
		return store.Enqueued{}, err
	}
	if !stored {
		if n.Coalesce { // into a task that was committed while this task waited for it
			if e, err := in.tx.coalesce(n); err != nil || !e.ID.IsZero() {
				return e, err
			}
		}
		return in.existing(n)
	}
	if err := in.companions(n, deadline); err != nil {
		return store.Enqueued{}, err
	}
	if waiting != task.WaitDeps {
		d := dispatched{n.ID, lane.Key{Queue: n.Queue, Type: n.Type, Group: in.row.Group, Priority: int64(n.Priority)}, n.ConcurrencyKey}
		if err := in.dispatch(&d, in.tx.available(notBefore)); err != nil {
			return store.Enqueued{}, err
		}
	}
	return store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}, nil
}

// available returns the instant from which on a task with a not-before instant is claimable.
func (t *Tx) available(notBefore time.Time) int64 {
	if notBefore.After(t.at) {
		return notBefore.UnixMicro()
	}
	return t.mic
}

// alike adds a task to the tasks inserted together. If its key is taken at the insert, the
// task is stored, or the key's holder found, by itself.
func (in *insertion) alike(n *task.New, a *Alike, options string) {
	t := in.tx
	row := a.describe(n, options, false)
	if n.IdempotencyKey != "" {
		alone, slot := *in, in.slot
		alone.together = false
		row.taken = func() (err error) {
			*slot, err = alone.task(n)
			return err
		}
	}
	t.alike.put(a, row, 0)
	if a.Waits {
		return
	}
	t.db.Lanes().Add(t.ns, lane.Key{Queue: n.Queue, Type: n.Type, Group: row.Group, Priority: int64(n.Priority)}, a.Available)
	t.fx.Notice.Due = true
}

const (
	sqlTaskExists = `SELECT 1 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlTaskByKey  = `SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND task_type = ?2 AND idempotency_key = ?3`
)

// existing explains an insert without effect: an earlier try of the same call stored the task,
// or its key is taken. A zero ID means that the key's holder was deleted since.
func (in *insertion) existing(n *task.New) (store.Enqueued, error) {
	st := in.tx.stmt(sqlTaskExists).Text(1, in.tx.ns).ID(2, &n.ID)
	again := st.One()
	if err := st.Done(); err != nil || again {
		return store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}, err
	}
	st = in.tx.stmt(sqlTaskByKey).Text(1, in.tx.ns).Text(2, n.Type).Text(3, n.IdempotencyKey)
	var id task.ID
	if st.One() {
		id = st.ColID(0)
	}
	return store.Enqueued{ID: id, Disposition: store.DispositionExisting}, st.Done()
}

const (
	sqlInsertPayload = `INSERT INTO weaver_payloads (namespace, task_id, kind, data) VALUES (?1, ?2, ?3, ?4)`
	sqlInsertEdge    = `INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind) VALUES (?1, ?2, ?3, ?4)`
	sqlInsertTimer   = `INSERT INTO weaver_timers (namespace, due_at, task_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	sqlInsertLabel   = `INSERT INTO weaver_task_labels (namespace, key, value, task_id) VALUES (?1, ?2, ?3, ?4)`
)

// companions writes the rows that most tasks do not have.
func (in *insertion) companions(n *task.New, deadline time.Time) error {
	if len(n.Input) > in.tx.inlineMax() {
		if err := in.tx.stmt(sqlInsertPayload).Text(1, in.tx.ns).ID(2, &n.ID).Text(3, kindInput).Bytes(4, n.Input).Run(); err != nil {
			return err
		}
	}
	if err := in.tx.refer(&n.ID, kindInput, "", n.Input); err != nil {
		return err
	}
	if err := in.tx.watchExpiry(&n.ID, n.Expire, in.now()); err != nil {
		return err
	}
	needs := n.Needs
	if in.edges > 0 {
		needs = needs[:in.edges]
	}
	if err := in.tx.insertEdges(&n.ID, needs); err != nil {
		return err
	}
	if p := rules.FirstPhase(n.Needs, in.now()); p != nil {
		if err := in.tx.setUndo(&n.ID, &rules.Transition{SetUndo: true, Undo: p}); err != nil {
			return err
		}
	}
	if !deadline.IsZero() {
		if err := in.tx.insertTimer(&n.ID, deadline); err != nil {
			return err
		}
	}
	for k, v := range n.Labels {
		if err := in.tx.stmt(sqlInsertLabel).Text(1, in.tx.ns).Text(2, k).Text(3, v).ID(4, &n.ID).Run(); err != nil {
			return err
		}
	}
	return nil
}

// insertEdges stores edges from a new task.
func (t *Tx) insertEdges(id *task.ID, needs []task.Edge) error {
	for i := range needs {
		if err := t.stmt(sqlInsertEdge).Text(1, t.ns).ID(2, id).ID(3, &needs[i].Needs).Text(4, string(needs[i].Kind)).Run(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) insertTimer(id *task.ID, at time.Time) error {
	t.fx.Notice.DeadlineIn(at.Sub(t.at))
	return t.stmt(sqlInsertTimer).Text(1, t.ns).Time(2, at).ID(3, id).Run()
}

const sqlPutPayload = `
INSERT INTO weaver_payloads (namespace, task_id, kind, data) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (namespace, task_id, kind) DO UPDATE SET data = excluded.data`

// outOfLine stores a text in weaver_payloads if it is long. It returns the text for the task's
// row, and whether the text was long.
func (t *Tx) outOfLine(id *task.ID, kind string, text json.RawMessage) (inline json.RawMessage, long bool, err error) {
	if len(text) <= t.inlineMax() {
		return text, false, nil
	}
	return nil, true, t.stmt(sqlPutPayload).Text(1, t.ns).ID(2, id).Text(3, kind).Bytes(4, text).Run()
}
