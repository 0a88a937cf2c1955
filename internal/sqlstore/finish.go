package sqlstore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Finish implements store.Core.
func (s *Store) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	if len(fins) == 0 {
		return nil, nil
	}
	hashes := make([]string, len(fins)) // computed here, where no other caller waits for it
	packed := make([][][]byte, len(fins))
	for i := range fins {
		hashes[i] = fins[i].Hash()
		var err error
		if packed[i], err = packFinish(&fins[i]); err != nil {
			return nil, err
		}
	}
	var unstored []task.ID
	got := make([]store.FinishResult, len(fins))
	err := s.write(ctx, ns, len(fins)+children(fins), func(t *Tx) error {
		f := finishing{moves: moves{tx: t}, inOrder: slices.ContainsFunc(fins, func(fin store.Finish) bool { return !fin.DependsOn.IsZero() })}
		if err := f.lock(fins); err != nil {
			return err
		}
		if err := f.writeEvents(fins); err != nil {
			return err
		}
		for i := range fins {
			got[i] = store.FinishResult{}
			if err := f.add(&report{fin: &fins[i], hash: hashes[i], children: packed[i], got: &got[i]}); err != nil {
				return err
			}
		}
		if err := f.finishRest(); err != nil {
			return err
		}
		succeed := f.succeedAll
		if t.bulk == nil {
			succeed = func() error { return f.successes.write(t, f.succeedMany, f.finish) }
		}
		if err := succeed(); err != nil {
			return err
		}
		if err := f.endDrawn(); err != nil {
			return err
		}
		// Separate statements, each of which sees the earlier ones. Edges follow all guards,
		// so that two needs of one task in one batch both count.
		unstored = f.moves.unstored
		if err := f.moves.propagate(); err != nil {
			return err
		}
		f.noteJobs()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range unstored {
		s.finishChores(ctx, ns, func(t *Tx) (*chore, error) { return t.chore(&chore{kind: store.ChoreDecompose, id: id}) }, nil)
	}
	return got, nil
}

// finishing is a batch of finishes.
type finishing struct {
	moves     moves
	successes byClaim[*report] // to be written in chunks
	rest      []*report        // to be ended after one shared guard
	ends      []End            // to be written together
	one       End              // the end being written
	drawn     []drawn          // retries that wait until the other attempts are counted
	again     []*report        // repeated reports of the same leases
	inOrder   bool             // a report asks for a task that may end in the same batch
	ended     []*report        // reports with a passed guard, of tasks of jobs
}

// lock locks the tasks of a batch, except tasks that are ended in chunks. The guard locks
// those.
func (f *finishing) lock(fins []store.Finish) error {
	var ids []task.ID
	for i := range fins {
		if f.inOrder || len(fins[i].Events) > 0 || !f.chunkable(&fins[i]) {
			ids = append(ids, fins[i].Lease.Task)
		}
	}
	_, err := f.moves.tx.db.Tasks(f.moves.tx, ids...)
	return err
}

// noteJobs sets the new states of jobs in the results, after the whole batch.
func (f *finishing) noteJobs() {
	was := make(map[task.ID]task.JobState, 1)
	for _, j := range f.moves.jobs {
		if _, seen := was[j.Job]; !seen {
			was[j.Job] = j.Was
		}
		for _, r := range f.ended {
			if r.job != j.Job {
				continue
			}
			if r.got.Job = j.State; j.State == was[j.Job] {
				r.got.Job = ""
			}
		}
	}
}

// report is one element of the batch.
type report struct {
	fin   *store.Finish
	hash  string
	steps []byte // the content of outcome_json
	got   *store.FinishResult
	job   task.ID // job of the task, set once the guard passed
	moved bool    // the guard has written the task's row

	children [][]byte // children of a decompose after the first bite, packed
}

// add ends one attempt, or keeps it to be ended together with others. Crash after the commit:
// the caller asks again, and R8 answers with success.
func (f *finishing) add(r *report) error {
	if r.got.Err = rules.CheckFinish(r.fin); r.got.Err != nil {
		return nil
	}
	l := &r.fin.Lease
	ok, err := f.moves.tx.valid(l)
	if err != nil {
		return err
	}
	if !ok {
		r.got.Err = rules.LeaseLost(l, rules.LostToRestore)
		return nil
	}
	if r.got.Err, err = f.moves.tx.usable(rules.FinishBlobs(r.fin)); err != nil || r.got.Err != nil {
		return err
	}
	if r.steps, err = stepsRun(r.fin); err != nil {
		return err
	}
	if !f.inOrder && f.chunkable(r.fin) {
		f.successes.put(l.ID, r)
		return nil
	}
	if f.moves.tx.bulk != nil && !f.inOrder {
		f.rest = append(f.rest, r)
		return nil
	}
	return f.finish(r)
}

// finish ends one attempt. The guard is an UPDATE, never an earlier SELECT, and everything
// else follows from the row that it accepted (R2).
func (f *finishing) finish(r *report) error {
	if f.waits(r) {
		f.again = append(f.again, r)
		return nil
	}
	t := f.moves.tx
	if _, err := t.db.Tasks(t, r.fin.Lease.Task); err != nil {
		return err
	}
	row, err := t.guard(r.fin)
	if err != nil {
		return err
	}
	return f.guarded(r, row)
}

// guarded continues with the row that the guard accepted; nil means that it refused.
func (f *finishing) guarded(r *report, row *leaseRow) error {
	if row == nil {
		return f.moves.tx.finishedBefore(r)
	}
	to, err := f.moves.resolve(r.fin, row)
	if err != nil {
		return err
	}
	f.moves.draw(row, &to.Transition)
	if row.limits&limitsAttempts != 0 && to.Draws() {
		f.drawn = append(f.drawn, drawn{r, row, to})
		return nil
	}
	return f.write(r, row, &to)
}

// write writes the end of an attempt whose guard passed.
func (f *finishing) write(r *report, row *leaseRow, to *resolved) error {
	t := f.moves.tx
	if err := f.moves.mayUndo(r.fin, row, &to.Transition); err != nil {
		return err
	}
	to.Idle = rules.IdleAttempts(r.fin, &to.Transition, row.idle)
	output, long, err := t.keepOutput(&row.id, to.Output)
	if err != nil {
		return err
	}
	if f.together(to) {
		f.ends = append(f.ends, endOf(r, row, &to.Transition, output, long))
	} else {
		f.one = endOf(r, row, &to.Transition, output, long)
		if err := t.writeOne(&f.one); err != nil {
			return err
		}
	}
	if err := t.endLease(r.fin.Lease.ID); err != nil {
		return err
	}
	r.got.State, r.got.Waiting, r.got.Overruled = to.State, to.Waiting, rules.Overruled(r.fin, &to.Transition)
	if r.job = row.job; !r.job.IsZero() {
		f.ended = append(f.ended, r)
	}
	if err := f.moves.await(row, r, to); err != nil {
		return err
	}
	return f.moves.afterRunning(row, &to.Transition)
}

// mayUndo turns the end of a task into the begin of its undo phase if there is anything to
// undo.
func (m *moves) mayUndo(fin *store.Finish, row *leaseRow, to *rules.Transition) error {
	if to.State != task.Failed && to.State != task.Cancelled || row.undo != nil {
		return nil
	}
	u := rules.Undoable{Open: row.undoOpen, Began: true, Unclean: fin.Unclean, Unaware: to.Unaware || fin.Panicked, Key: row.key != ""}
	if u.Unaware {
		of, err := m.tx.options(&row.id)
		if err != nil {
			return err
		}
		u.CleansUp = of.CleanupWhenCancelled
	}
	to.BeginUndo(&u, time.Time{}, m.tx.at)
	return nil
}

// writeOne writes the rows of one end.
func (t *Tx) writeOne(e *End) error {
	if err := EndFields.Bind(t.stmt(sqlTransition).Text(1, t.ns).Int(2+len(EndFields), t.mic), 2, e).Run(); err != nil {
		return err
	}
	if err := t.setUndo(&e.Task, e.To); err != nil {
		return err
	}
	if err := t.insertAttempt(e); err != nil {
		return err
	}
	if e.To.Decision == nil {
		return nil
	}
	return DecisionFields.Bind(t.stmt(sqlInsertDecision).Text(1, t.ns).Int(2, t.mic), 3, e).Run()
}

// sqlGuard checks a lease and changes only the progress. sqlLeaseRow then reads the row, which
// no other connection can change before the commit.
const sqlGuard = `
UPDATE weaver_tasks SET progress = coalesce(?5, progress)
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

var sqlLeaseRow = `SELECT ` + leaseColumns.List() + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// guard returns the row of a finish's lease, or nil if the lease is lost.
func (t *Tx) guard(fin *store.Finish) (*leaseRow, error) {
	l := &fin.Lease
	n, err := t.stmt(sqlGuard).Text(1, t.ns).ID(2, &l.Task).Int(3, l.Epoch).Lease(4, &l.ID).Progress(5, fin.Progress).Exec()
	if err != nil || n == 0 {
		return nil, err
	}
	return leaseColumns.One(t.stmt(sqlLeaseRow).Text(1, t.ns).ID(2, &l.Task))
}

// The rows written after the guard of one end: the task, the attempt and the decision.
var (
	sqlTransition = `
UPDATE weaver_tasks SET ` + setEnd(params(2+len(EndFields), 1)) + ` WHERE namespace = ?1 AND task_id = ?2`

	sqlInsertAttempt = `
INSERT INTO weaver_attempts (namespace, finished_at, ` + AttemptFields.Names() + `) VALUES (?1, ?2, ` + AttemptFields.Params(3) + `)`

	sqlInsertDecision = `
INSERT INTO weaver_decisions (namespace, decided_at, ` + DecisionFields.Names() + `) VALUES (?1, ?2, ` + DecisionFields.Params(3) + `)`
)

// keepOutput stores an output that is too long for the task's row.
func (t *Tx) keepOutput(id *task.ID, text json.RawMessage) (inline json.RawMessage, long bool, err error) {
	if inline, long, err = t.outOfLine(id, kindOutput, text); err == nil {
		err = t.refer(id, kindOutput, "", text)
	}
	return inline, long, err
}

// outcomeJSON is the content of outcome_json. The observation is in the error's column or in
// the task's output.
type outcomeJSON struct {
	Action struct {
		Steps     []string `json:"steps,omitempty"`     // started by it
		Unreached []string `json:"unreached,omitempty"` // recorded earlier, not called this time
		Route     string   `json:"route,omitempty"`     // reason for the choice of its handler
	} `json:"action"`
	Notes map[string]string `json:"notes,omitempty"`
}

func stepsRun(fin *store.Finish) ([]byte, error) {
	if len(fin.StepsRun)+len(fin.StepsUnreached) == 0 && fin.RouteReason == "" && len(fin.Notes) == 0 {
		return nil, nil
	}
	var o outcomeJSON
	o.Action.Steps, o.Action.Unreached, o.Action.Route = fin.StepsRun, fin.StepsUnreached, fin.RouteReason
	o.Notes = fin.Notes
	return json.Marshal(o)
}

// insertAttempt writes the row of an attempt that ends now.
func (t *Tx) insertAttempt(e *End) error {
	return AttemptFields.Bind(t.stmt(sqlInsertAttempt).Text(1, t.ns).Int(2, t.mic), 3, e).Run()
}

const sqlFinished = `
SELECT outcome_hash, outcome_kind, coalesce((
  SELECT t.last_error_json FROM weaver_tasks t WHERE t.namespace = ?1 AND t.task_id = ?2 AND t.finished_at = a.finished_at), error_json), finished_at, (
  SELECT d.decision_kind FROM weaver_decisions d WHERE d.namespace = ?1 AND d.task_id = ?2 AND d.attempt_no = a.attempt_no), (
  SELECT t.undo FROM weaver_tasks t WHERE t.namespace = ?1 AND t.task_id = ?2)
FROM weaver_attempts a WHERE a.namespace = ?1 AND a.task_id = ?2 AND a.lease_id = ?3 AND a.outcome_hash IS NOT NULL`

// finishedBefore answers a finish that the guard refused (R8): it repeats or contradicts a
// recorded finish, or lost its lease. Attempts ended by other parties have no hash.
func (t *Tx) finishedBefore(r *report) error {
	l := &r.fin.Lease
	st := t.stmt(sqlFinished).Text(1, t.ns).ID(2, &l.Task).Lease(3, &l.ID)
	var hash string
	var was rules.Recorded
	if st.One() {
		hash = st.ColText(0)
		was = rules.Recorded{Outcome: task.Outcome(st.ColName(1)), Error: st.Row().Error(2), At: st.ColTime(3), Decision: task.DecisionKind(st.ColName(4)), Undo: st.Row().Phase(5)}
	}
	if err := st.Done(); err != nil {
		return err
	}
	switch hash {
	case "":
		r.got.Err = rules.LeaseLost(l, rules.LostToAnother)
	case r.hash:
		*r.got = rules.ReplayedResult(r.fin, was)
	default:
		r.got.Err = rules.Conflicting(l)
	}
	return nil
}
