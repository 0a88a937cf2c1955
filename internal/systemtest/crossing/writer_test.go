package crossing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// ttl is the duration of a lease.
const ttl = time.Second

// expected lists the errors that a writer may get because another writer was first.
var expected = []error{
	store.ErrLeaseLost, store.ErrConflict, store.ErrStepConflict, store.ErrCancelRequested,
	store.ErrNotFound, store.ErrState, store.ErrLimit,
}

// crossing is one round, in a namespace of its own, as one process knows it.
type crossing struct {
	*testing.T
	ns string

	ids   *task.IDs
	tasks []task.ID
	jobs  []task.ID
}

// any draws one of the tasks or jobs.
func (r *crossing) any(rnd *rand.Rand, list *[]task.ID) task.ID {
	return (*list)[rnd.IntN(len(*list))]
}

// fine reports an error that a race does not explain.
func (r *crossing) fine(what string, err error) {
	if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		r.Errorf("%s in %s: %v", what, r.ns, err)
	}
}

func (r *crossing) draft(rnd *rand.Rand) task.New {
	n := task.New{
		ID: r.ids.New(), Type: "acme.crossing.v1", Queue: fmt.Sprint("q", rnd.IntN(2)), Input: []byte(`1`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: 1000, MaxRepairs: task.DefaultMaxRepairs,
		Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
	}
	if rnd.IntN(3) == 0 {
		n.ConcurrencyKey, n.ConcurrencyLimit = fmt.Sprint("key", rnd.IntN(3)), 1+rnd.IntN(2)
	}
	return n
}

// enqueue submits single tasks, or a job whose nodes need one another at random.
func (r *crossing) enqueue(rnd *rand.Rand, db *postgres.DB) {
	var sub store.Submission
	if rnd.IntN(4) > 0 {
		sub.Job = &task.NewJob{ID: r.ids.New(), Name: "crossing"}
	}
	for i := range 4 + rnd.IntN(5) {
		n := r.draft(rnd)
		if sub.Job != nil {
			n.Node, n.AllowFailure = fmt.Sprint("n", i), rnd.IntN(4) == 0
			for j := range i {
				if rnd.IntN(3) == 0 {
					kind := []task.EdgeKind{task.OnSuccess, task.OnFailed, task.OnDone}[rnd.IntN(3)]
					n.Needs = append(n.Needs, task.Edge{Needs: sub.Tasks[j].ID, Kind: kind})
				}
			}
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	_, err := db.Enqueue(r.Context(), r.ns, nil, sub)
	r.fine("Enqueue", err)
	for _, n := range sub.Tasks {
		r.tasks = append(r.tasks, n.ID)
	}
	if sub.Job != nil {
		r.jobs = append(r.jobs, sub.Job.ID)
	} else if len(r.jobs) == 0 {
		r.jobs = append(r.jobs, task.ID{1}) // no such job
	}
}

// look reads the tasks and jobs enqueued by other processes.
func (r *crossing) look(db *postgres.DB) {
	list, _, err := db.List(r.Context(), r.ns, store.Filter{Limit: 200})
	r.fine("List", err)
	r.tasks, r.jobs = r.tasks[:0], r.jobs[:0]
	for i := range list {
		r.tasks = append(r.tasks, list[i].ID)
		if id := list[i].JobID; !id.IsZero() && !slices.Contains(r.jobs, id) {
			r.jobs = append(r.jobs, id)
		}
	}
	if len(r.tasks) == 0 || len(r.jobs) == 0 {
		r.jobs = append(r.jobs, task.ID{1}) // no such job
		r.tasks = append(r.tasks, task.ID{1})
	}
}

// writer is the client of one process.
type writer struct {
	*crossing
	db   *postgres.DB
	id   store.WorkerID
	rnd  *rand.Rand
	held []store.Claimed
}

// act makes one call.
func (w *writer) act() {
	ctx := w.Context()
	switch w.rnd.IntN(20) {
	case 0:
		w.enqueue(w.rnd, w.db)
	case 1, 2, 3, 4, 5:
		got, err := w.db.Claim(ctx, w.ns, store.ClaimRequest{
			Worker: w.id, Name: string(w.id), LeaseID: task.NewLeaseID(), TTL: ttl, Limit: 1 + w.rnd.IntN(4),
			Types: map[string]int{"acme.crossing.v1": 1}, Slots: 8,
		})
		w.fine("Claim", err)
		w.held = append(w.held, got.Tasks...)
	case 6, 7, 8, 9, 10, 11:
		w.finish()
	case 12:
		var leases []task.Lease
		for _, c := range w.held {
			leases = append(leases, c.Lease)
		}
		_, err := w.db.Heartbeat(ctx, w.ns, store.HeartbeatRequest{Worker: w.id, TTL: ttl, Leases: leases})
		w.fine("Heartbeat", err)
	case 13:
		_, err := w.db.Reap(ctx, w.ns, store.ReapRequest{Worker: w.id, TTL: ttl, CrashBudget: 5})
		w.fine("Reap", err)
	case 14:
		w.record()
	default:
		w.operate()
	}
}

// finish ends up to three attempts in one call.
func (w *writer) finish() {
	var fins []store.Finish
	for range min(1+w.rnd.IntN(3), len(w.held)) {
		i := w.rnd.IntN(len(w.held))
		fins = append(fins, w.ending(w.held[i].Lease))
		w.held = slices.Delete(w.held, i, i+1)
	}
	// A task may have been claimed twice, after its lease was lost.
	seen := map[task.ID]bool{}
	fins = slices.DeleteFunc(fins, func(f store.Finish) bool {
		was := seen[f.Lease.Task]
		seen[f.Lease.Task] = true
		return was
	})
	if len(fins) == 0 {
		return
	}
	got, err := w.db.Finish(w.Context(), w.ns, fins...)
	w.fine("Finish", err)
	for _, r := range got {
		w.fine("Finish", r.Err)
	}
}

func (w *writer) ending(l task.Lease) store.Finish {
	f := store.Finish{Lease: l, Elapsed: time.Millisecond, CodeVersion: 1}
	decide := func(k task.DecisionKind) {
		f.Outcome, f.Error = task.OutcomeFailure, &task.Error{Kind: task.KindHandler, Message: "no luck"}
		f.Decision = &task.Decision{Kind: k, Reason: task.Reason{Policy: "test", Version: 1, Text: "the test says so"}}
	}
	switch w.rnd.IntN(10) {
	default:
		f.Outcome, f.Output = task.OutcomeSuccess, []byte(`"done"`)
	case 4:
		decide(task.DecideRetry)
	case 5:
		decide(task.DecideMarkDead)
	case 6:
		decide(task.DecideBlock)
	case 7, 8:
		f.Outcome, f.DependsOn = task.OutcomeAddDependency, w.any(w.rnd, &w.tasks)
	case 9:
		f.Outcome, f.Join = task.OutcomeDecompose, []task.Join{task.JoinRerun, task.JoinComplete}[w.rnd.IntN(2)]
		for range 1 + w.rnd.IntN(3) {
			f.Children = append(f.Children, w.draft(w.rnd))
		}
	}
	return f
}

// record writes a step of a running attempt.
func (w *writer) record() {
	if len(w.held) == 0 {
		return
	}
	rec := store.Record{Lease: w.held[w.rnd.IntN(len(w.held))].Lease, Step: &task.Step{
		Name: "s", Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: []byte(`1`),
	}}
	got, err := w.db.Record(w.Context(), w.ns, rec)
	w.fine("Record", err)
	for _, r := range got {
		w.fine("Record", r.Err)
	}
}

// operate applies one to three commands.
func (w *writer) operate() {
	var cmds []store.Command
	for range 1 + w.rnd.IntN(3) {
		id, q := w.any(w.rnd, &w.tasks), fmt.Sprint("q", w.rnd.IntN(2))
		list := []store.Command{
			store.RetryTask{Task: id},
			store.RetryTask{Task: id},
			store.UnblockTask{Task: id},
			store.CancelTask{Task: id},
			store.CancelTask{Task: id, Force: true},
			store.RescheduleTask{Task: id},
			store.PauseTask{Task: id},
			store.ResumeTask{Task: id},
			store.ResumeTask{Task: id},
			store.PauseQueue{Queue: q},
			store.ResumeQueue{Queue: q},
			store.ResumeQueue{Queue: q},
			store.CancelJob{Job: w.any(w.rnd, &w.jobs)},
			store.DeleteTask{Task: id},
		}
		cmds = append(cmds, list[w.rnd.IntN(len(list))])
	}
	got, err := w.db.Operate(w.Context(), w.ns, cmds...)
	w.fine("Operate", err)
	for _, r := range got {
		w.fine("Operate", r.Err)
	}
}
