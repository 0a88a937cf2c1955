package sqlstore

import (
	"encoding/json"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// succeedAll ends the plain attempts of a batch in one statement for each claim. Attempts
// whose guard failed are ended with the other attempts, which finds the reason.
func (f *finishing) succeedAll() error {
	t := f.moves.tx
	for _, lease := range f.successes.order {
		rows := f.successes.rows[lease]
		claim, _ := t.fx.Claim(lease)
		ends := make([]End, 0, len(rows))
		first := make(map[task.ID]*report, len(rows)) // a task may be reported twice
		for _, r := range rows {
			if id := r.fin.Lease.Task; first[id] == nil {
				first[id] = r
				ends = append(ends, End{Task: id, Output: r.fin.Output, Version: r.fin.CodeVersion, Steps: r.steps, Hash: r.hash})
			}
		}
		accepted, err := t.bulk.Succeed(t, &lease, &claim, ends)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if id := r.fin.Lease.Task; first[id] == r && (accepted == nil || accepted[id]) {
				if err := f.succeeded(r); err != nil {
					return err
				}
			} else {
				f.rest = append(f.rest, r)
			}
		}
	}
	return f.finishRest()
}

// finishRest ends the attempts that are not written in chunks, in their order, after one guard
// for the first report of each task. A further report of a task runs its own guard after the
// first report is written.
//
// Guards of later reports may run before the effects of earlier ones. Until propagate, the end
// of an attempt writes no existing row of another task. A success without a long output
// depends on its report alone, so its guard writes the task's row too. New children have no
// needs and no ID of a running task. Keys, budgets, cancelled children and exhausted jobs are
// counted in memory or in their own rows.
//
// There is one exception: the end that asks for another task (DependsOn) marks that task as
// needed. Such batches are ended one by one (inOrder).
func (f *finishing) finishRest() error {
	t, all := f.moves.tx, f.rest
	if f.rest = nil; len(all) == 0 {
		return nil
	}
	ids := make([]task.ID, 0, len(all))
	first := make(map[task.ID]*report, len(all))
	var well, others []*store.Finish
	for _, r := range all {
		id := r.fin.Lease.Task
		if first[id] != nil || f.waits(r) {
			continue
		}
		first[id], ids = r, append(ids, id)
		if r.moved = inlineSuccess(r.fin, t.inlineMax()); r.moved {
			well = append(well, r.fin)
		} else {
			others = append(others, r.fin)
		}
	}
	if _, err := t.db.Tasks(t, ids...); err != nil {
		return err
	}
	rows := make(map[task.ID]*leaseRow, len(ids))
	for _, g := range []struct {
		ends  []*store.Finish
		guard func(*Tx, []*store.Finish) *sqlstmt.Stmt
	}{{well, t.bulk.SucceedEach}, {others, t.bulk.Guard}} {
		if len(g.ends) == 0 {
			continue
		}
		accepted, err := leaseColumns.All(g.guard(t, g.ends))
		if err != nil {
			return err
		}
		for i := range accepted {
			row := &accepted[i]
			row.leaseID = first[row.id].fin.Lease.ID
			rows[row.id] = row
		}
	}
	for _, r := range all {
		var err error
		if id := r.fin.Lease.Task; first[id] == r && r.moved && rows[id] == nil {
			r.moved = false // its own guard finds the reason: a lost lease, or an undo phase
			err = f.finish(r)
		} else if first[id] == r {
			err = f.guarded(r, rows[id])
		} else {
			err = f.finishAgain(r)
		}
		if err != nil {
			return err
		}
	}
	return f.flush()
}

// finishAgain ends an attempt whose task was reported earlier in the batch.
func (f *finishing) finishAgain(r *report) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.finish(r)
}

// End is the end of an attempt whose guard passed, with the transition of its task.
type End struct {
	Task      task.ID
	AttemptNo int
	Epoch     int64
	Lease     task.LeaseID
	Worker    string
	StartedAt int64 // in microseconds
	To        *rules.Transition
	Failure   *task.Error     // of the attempt
	Moved     bool            // the task's row is written
	Output    json.RawMessage // nil if absent, or if long and stored elsewhere
	Long      bool
	Version   int // of the code
	Handler   string
	Steps     []byte // the content of outcome_json
	Hash      string
}

func endOf(r *report, row *leaseRow, to *rules.Transition, output json.RawMessage, long bool) End {
	e := lostEnd(row, to, to.Failure)
	e.Moved, e.Output, e.Long = r.moved, output, long
	e.Version, e.Handler, e.Steps, e.Hash = r.fin.CodeVersion, r.fin.Handler, r.steps, r.hash
	return e
}

// lostEnd returns the end of an attempt without a report of its worker.
func lostEnd(row *leaseRow, to *rules.Transition, failure *task.Error) End {
	return End{
		Task: row.id, AttemptNo: row.attemptNo, Epoch: row.epoch, Lease: row.leaseID, Worker: row.worker, StartedAt: row.startedAt,
		To: to, Failure: failure,
	}
}

// together reports whether the rows of an end can be written with those of other ends.
// Children exclude this, because they are stored for the task's final row, and so does an undo
// phase.
func (f *finishing) together(to *resolved) bool {
	return f.moves.tx.bulk != nil && !f.inOrder && !to.Awaited && to.Join == task.JoinNone && !to.SetUndo
}

// flush writes the collected ends. It runs before every reader of their rows: a further report
// of one of the tasks, and propagate.
func (f *finishing) flush() error {
	if len(f.ends) == 0 {
		return nil
	}
	ends := f.ends
	f.ends = nil
	return f.moves.tx.bulk.End(f.moves.tx, ends)
}

// dispatchAll is dispatch for many tasks.
func (t *Tx) dispatchAll(rows []store.DispatchRow) error {
	for i := range rows {
		r := &rows[i]
		t.db.Lanes().Add(t.ns, lane.Key{Queue: r.Queue, Type: r.Type, Group: r.Group, Priority: int64(r.Priority)}, r.AvailableAt.UnixMicro())
	}
	t.fx.Notice.Due = true
	return t.bulk.Dispatch(t, rows)
}
