package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A large job is stored in parts if the database has one writer. The first transaction stores
// the job, whose counters include all of its tasks, and the tasks as packed drafts: it decides
// the submission. Each further transaction inserts the tasks and edges of one row of drafts
// (the chore "enqueue"). Enqueue runs them before it returns; if it is cut short, reapers do.

// jobPart is a row of drafts.
type jobPart struct {
	drafts []draft
	packed []byte
}

// packParts encodes the tasks of a job.
func packParts(tasks []task.New, parts [][]rules.Part) (map[int64]*jobPart, error) {
	all := make(map[int64]*jobPart, len(parts))
	for i, elements := range parts {
		p := &jobPart{drafts: make([]draft, len(elements))}
		packed := make([]draft, len(elements))
		var before *draft
		for j := range elements {
			of, d := &elements[j], &p.drafts[j]
			n := &tasks[of.Task]
			if of.More() {
				*d = draft{draftFields: draftFields{ID: n.ID}, More: true, Edges: packEdges(n.Needs[of.From:of.To])}
				packed[j] = *d
				continue
			}
			*d = newDraft(n)
			d.Needed, d.Needs, d.Edges = of.Needed, nil, packEdges(n.Needs)
			if of.To < len(n.Needs) {
				d.Stored = of.To
			}
			if packed[j] = *d; before != nil && like(&before.draftFields, &d.draftFields) {
				packed[j].Like, packed[j].draftFields = true, draftFields{ID: n.ID, Node: n.Node}
			}
			before = d
		}
		var err error
		if p.packed, err = packDrafts(packed); err != nil {
			return nil, err
		}
		all[int64(i)] = p
	}
	return all, nil
}

// tasks returns the number of tasks that the part inserts.
func (p *jobPart) tasks() (n int) {
	for i := range p.drafts {
		if !p.drafts[i].More {
			n++
		}
	}
	return n
}

// enqueueParts is Enqueue for a large job.
func (s *Store) enqueueParts(ctx context.Context, ns string, sub *store.Submission, cut [][]rules.Part) ([]store.Enqueued, error) {
	// Packed before the transaction, while no other caller waits.
	parts, err := packParts(sub.Tasks, cut)
	if err != nil {
		return nil, err
	}
	blobs := rules.TaskBlobs(sub.Tasks)
	var other task.ID
	err = s.write(ctx, ns, Heavy, func(t *Tx) (err error) {
		other, err = t.decideJob(sub, blobs, parts)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Crash here, or between two parts: reapers insert the rest. An error does not matter,
	// because the submission is decided, unless the store refuses a task permanently.
	if !other.IsZero() {
		_ = s.insertJobTasks(ctx, ns, other, nil)
		return existingJob(sub, other), nil
	}
	if err := s.insertJobTasks(ctx, ns, sub.Job.ID, parts); store.Refused(err) {
		return nil, err
	}
	return createdTasks(sub), nil
}

// decideJob stores a job and its tasks as drafts. other is an existing job with its key. Crash
// here: nothing was acknowledged; the same call again stores it once.
func (t *Tx) decideJob(sub *store.Submission, blobs []task.Blob, parts map[int64]*jobPart) (other task.ID, err error) {
	if gone, err := t.usable(blobs); err != nil || gone != nil {
		return other, errors.Join(err, gone)
	}
	job := &sub.Job.ID
	fresh, other, err := t.beginJob(sub, rules.JobDeadline(sub.Job.Budget, t.at))
	if err != nil || !fresh {
		return other, err
	}
	if len(blobs) > 0 {
		for i := range sub.Tasks {
			if err := t.refer(job, kindDraft, "", sub.Tasks[i].Input); err != nil {
				return other, err
			}
		}
	}
	for i := range int64(len(parts)) {
		p := parts[i]
		err := t.stmt(sqlKeepDrafts).Text(1, t.ns).ID(2, job).Int(3, i).Int(4, int64(p.tasks())).Int(5, 0).Bytes(6, p.packed).Run()
		if err != nil {
			return other, err
		}
	}
	return other, t.putChore(&chore{kind: store.ChoreEnqueue, id: *job, epoch: t.mic})
}

// insertJobTasks inserts the remaining drafts of a job, one part in each transaction. known
// has the parts that this process has in memory. If the store refuses a task permanently, the
// job is cancelled and insertJobTasks returns the store's error.
func (s *Store) insertJobTasks(ctx context.Context, ns string, job task.ID, known map[int64]*jobPart) error {
	for more := true; more; {
		err := s.write(ctx, ns, Heavy, func(t *Tx) error {
			more = false
			c, err := t.chore(&chore{kind: store.ChoreEnqueue, id: job})
			if err != nil || c == nil {
				return err
			}
			c.known = known
			if err := t.bite(c, new(store.CommandResult)); err != nil {
				return err
			}
			c, err = t.chore(c)
			more = c != nil
			return err
		})
		if store.Refused(err) {
			return cmp.Or(s.endRefused(ctx, ns, &chore{kind: store.ChoreEnqueue, id: job}, err), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sqlDropEdges drops the edges from tasks of a job to unstored tasks.
const sqlDropEdges = `
DELETE FROM weaver_task_dependencies WHERE namespace = ?1
  AND task_id IN (SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND job_id = ?2)
  AND depends_on_task_id NOT IN (SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND job_id = ?2)`

// refuseTasks drops the remaining drafts of a job after the store refused one of its tasks
// permanently, and cancels the other tasks.
func (o *operation) refuseTasks(c *chore, refused error) error {
	t := o.tx
	for {
		first, list, err := t.nextPart(c)
		if err != nil {
			return err
		}
		if list == nil {
			break
		}
		var tasks []task.New
		for i := range list {
			if d := &list[i]; !d.More {
				n := d.task()
				n.Needs = unpackEdges(d.Edges)
				tasks = append(tasks, n)
			}
		}
		o.moves.pending.Add(c.id, task.JobCounters{}.Sub(o.moves.countOf(tasks)))
		if err := t.stmt(sqlDropDrafts).Text(1, t.ns).ID(2, &c.id).Int(3, first).Run(); err != nil {
			return err
		}
	}
	if err := errors.Join(t.forgetKind(&c.id, kindDraft), t.dropChore(c)); err != nil {
		return err
	}
	if err := t.stmt(sqlDropEdges).Text(1, t.ns).ID(2, &c.id).Run(); err != nil {
		return err
	}
	if err := o.moves.propagate(); err != nil {
		return err
	}
	cmd := store.CancelJob{Job: c.id}
	cmd.Reason = rules.RefusedTasks(refused)
	if err := o.cancelJob(cmd, new(store.CommandResult)); err != nil {
		return err
	}
	return o.moves.propagate()
}

// storePart inserts the tasks and edges of the next row of drafts of a job.
func (t *Tx) storePart(c *chore) (more bool, err error) {
	first, list, err := t.nextPart(c)
	if err != nil || list == nil {
		return false, err
	}
	job, err := t.job(&c.id)
	if err != nil {
		return false, err
	}
	if job == nil { // a chore keeps its job: it cannot end before all of its tasks are stored
		return false, fmt.Errorf("job %s, whose tasks are to be stored, does not exist", c.id)
	}
	due := t.fx.Notice.Due
	in := insertion{tx: t, job: c.id, limits: limitsOf(&job.Budget), deadline: job.DeadlineAt, at: sqlstmt.Instant(c.epoch), dispatch: t.dispatch, needed: make(map[task.ID]bool)}
	for i := range list {
		if err := in.draft(&list[i]); err != nil {
			return false, err
		}
	}
	t.moved += len(list)
	if err := t.stmt(sqlDropDrafts).Text(1, t.ns).ID(2, &c.id).Int(3, first).Run(); err != nil {
		return false, err
	}
	st := t.stmt(sqlHasDrafts).Text(1, t.ns).ID(2, &c.id)
	more = st.One()
	if err := st.Done(); err != nil {
		return false, err
	}
	// No task is claimed before the last part.
	if t.fx.Notice.Due = due || !more; more {
		return true, nil
	}
	return false, t.forgetKind(&c.id, kindDraft)
}

// draft inserts an element of a part.
func (in *insertion) draft(d *draft) error {
	needs := unpackEdges(d.Edges)
	if d.More {
		return in.tx.insertEdges(&d.ID, needs)
	}
	n := d.task()
	n.Needs, in.needed[n.ID], in.edges = needs, d.Needed, d.Stored
	_, err := in.task(&n)
	return err
}

// nextPart returns the next row of drafts of a job, decoded, or nil. It does not decode a part
// that the process has in memory with the same text.
func (t *Tx) nextPart(c *chore) (first int64, list []draft, err error) {
	st := t.stmt(sqlNextDrafts).Text(1, t.ns).ID(2, &c.id)
	if st.One() {
		first = st.ColInt(0)
		packed := st.ColBytes(2)
		if p := c.known[first]; p != nil && bytes.Equal(p.packed, packed) {
			list = p.drafts
		} else {
			list, err = unpackDrafts(packed)
		}
	}
	return first, list, errors.Join(err, st.Done())
}

const (
	sqlAnyParts = `SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'enqueue' LIMIT 1`
	sqlJobOf    = `SELECT job_id FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
)

// inParts returns the job of a command, or of its task, if tasks of the job are still drafts,
// because a command must find the whole job. It returns zero otherwise.
func (t *Tx) inParts(cmd store.Command) (job task.ID, err error) {
	of, is := rules.Target(cmd)
	if of.IsZero() {
		return job, nil
	}
	st := t.stmt(sqlAnyParts).Text(1, t.ns)
	some := st.One()
	if err := st.Done(); err != nil || !some {
		return job, err
	}
	if !is {
		st := t.stmt(sqlJobOf).Text(1, t.ns).ID(2, &of)
		found := st.One()
		if found {
			of = st.ColID(0)
		}
		if err := st.Done(); err != nil || !found || of.IsZero() {
			return job, err
		}
	}
	c, err := t.chore(&chore{kind: store.ChoreEnqueue, id: of})
	if c != nil {
		job = of
	}
	return job, err
}
