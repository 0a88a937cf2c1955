package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Random jobs whose edges are marked a few at a time end like jobs whose edges are marked all
// at once. The jobs have all kinds of edges, one kind for each task, and allowed failures.
// Tasks decompose, call others, or wait for signals, and some are cancelled meanwhile.
func TestBittenJobsEndAsWholeOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	jobs := 150
	if repeat < 40 {
		jobs = 30
	}
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Whole, db.Part = 3, 3 // jobs are also stored in parts
	f := fixtureOn(t, db)
	defer func(moves int) { rules.MaxMoves = moves }(rules.MaxMoves)
	whole := memstore.New()
	for seed := range uint64(jobs) {
		rules.MaxMoves = 1 + int(seed%3)
		ns := fmt.Sprint("job-", seed)
		sub := f.randomJob(rand.New(rand.NewPCG(seed, 1)))
		for _, s := range []store.Store{f.db, whole} {
			if _, err := s.Enqueue(t.Context(), ns, nil, sub); err != nil {
				t.Fatal(err)
			}
		}
		want, got := f.runJob(whole, ns, sub, seed), f.runJob(f.db, ns, sub, seed)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("seed %d: with bites of %d: %s\nin one transaction: %s\nof %+v", seed, rules.MaxMoves, got[i], want[i], sub.Tasks)
			}
		}
	}
}

// randomJob drafts a job in which each task may need any earlier task.
func (f *fixture) randomJob(r *rand.Rand) store.Submission {
	kinds := []task.EdgeKind{task.OnSuccess, task.OnFailed, task.OnFailed, task.OnDone}
	sub := store.Submission{Job: &task.NewJob{ID: f.ids.New(), Name: "random"}}
	if r.IntN(2) == 0 {
		sub.Job.Budget.MaxTotalAttempts = 1 + r.IntN(8)
	}
	if r.IntN(3) == 0 {
		sub.Job.Budget.MaxCost = 1 + r.Int64N(8)
	}
	for i := range 3 + r.IntN(6) {
		n := f.draft(func(n *task.New) { n.Node, n.AllowFailure = fmt.Sprint("n", i), r.IntN(4) == 0 })
		kind := kinds[r.IntN(len(kinds))]
		for j := range i {
			if r.IntN(2) == 0 {
				n.Needs = append(n.Needs, task.Edge{Needs: sub.Tasks[j].ID, Kind: kind})
			}
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	return sub
}

// runJob ends every due task in one batch, a few times, then retries or cancels a task, and
// repeats. It returns the states of the tasks after each round.
func (f *fixture) runJob(s store.Store, ns string, sub store.Submission, seed uint64) (seen []string) {
	f.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	if err := s.Join(f.Context(), ns, store.WorkerInfo{ID: "w", Name: "host:1", TTL: fixTTL}); err != nil {
		f.Fatal(err)
	}
	for round := range 5 {
		times := 1 + r.IntN(3)
		if round%2 == 1 {
			times = 1000
		}
		f.runDue(s, ns, r, times)
		seen = append(seen, f.ends(s, ns, sub)...)
		id := sub.Tasks[r.IntN(len(sub.Tasks))].ID
		cmds := []store.Command{
			store.RetryTask{Task: id},
			store.RetryTask{Task: id},
			store.CancelTask{Task: id},
			store.CancelJob{Job: sub.Job.ID},
			store.RaiseBudget{Job: sub.Job.ID, AddAttempts: 9},
			store.RaiseBudget{Job: sub.Job.ID, AddCost: 9},
			store.SendSignal{Task: id, Name: "s", Key: fmt.Sprint(round), Payload: []byte("1")},
		}
		got, err := s.Operate(f.Context(), ns, cmds[r.IntN(len(cmds))])
		if err != nil {
			f.Fatal(err)
		}
		refused := "" // the texts name children, whose IDs differ
		if got[0].Err != nil {
			refused = "refused"
		}
		seen = append(seen, refused)
	}
	return seen
}

// finishChores works off all chores.
func (f *fixture) finishChores(s store.Store, ns string) {
	f.Helper()
	for more := true; more; {
		got, err := s.Reap(f.Context(), ns, store.ReapRequest{Worker: "reaper", TTL: fixTTL})
		if err != nil {
			f.Fatal(err)
		}
		more = got.Chores
	}
}

func (f *fixture) runDue(s store.Store, ns string, r *rand.Rand, times int) {
	f.Helper()
	defer f.finishChores(s, ns)
	for range times {
		f.finishChores(s, ns)
		claim, err := s.Claim(f.Context(), ns, fixClaim("w", 100))
		if err != nil {
			f.Fatal(err)
		}
		if len(claim.Tasks) == 0 {
			return
		}
		slices.SortFunc(claim.Tasks, func(a, b store.Claimed) int { return a.Task.ID.Compare(b.Task.ID) })
		f.spend(s, ns, r, claim.Tasks)
		var fins []store.Finish
		for _, c := range claim.Tasks {
			fin := store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1}
			waits := f.waitFor(s, ns, c, r)
			switch what := r.IntN(10); {
			case waits != task.WaitNone && what < 8:
				fin.Outcome, fin.Waiting, fin.WakeSeq = task.OutcomeSuspended, waits, c.Task.WakeSeq
			case what < 2:
				fin.Outcome, fin.Join = task.OutcomeDecompose, []task.Join{task.JoinRerun, task.JoinComplete}[what]
				for range 1 + r.IntN(4) {
					fin.Children = append(fin.Children, f.draft(func(*task.New) {}))
				}
			case what == 2:
				fin.Outcome, fin.Error = task.OutcomeFailure, &task.Error{Kind: task.KindHandler, Message: "again"}
				fin.Decision = &task.Decision{Kind: task.DecideRetry}
			case what < 6:
				fin.Outcome, fin.Error = task.OutcomeFailure, &task.Error{Kind: task.KindHandler, Message: "no"}
				fin.Decision = &task.Decision{Kind: task.DecideMarkDead}
			}
			fins = append(fins, fin)
		}
		if _, err := s.Finish(f.Context(), ns, fins...); err != nil {
			f.Fatal(err)
		}
	}
}

// spend records a step with a cost for some of the attempts. It then works off the chores, as
// would happen between two calls of a worker.
func (f *fixture) spend(s store.Store, ns string, r *rand.Rand, claimed []store.Claimed) {
	f.Helper()
	var recs []store.Record
	for i, c := range claimed {
		if r.IntN(4) == 0 {
			recs = append(recs, store.Record{Lease: c.Lease, Step: &task.Step{
				Name: fmt.Sprint("s", c.Task.AttemptNo), Index: i, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Cost: 1 + r.Int64N(3), Value: []byte("1"),
			}})
		}
	}
	if _, err := s.Record(f.Context(), ns, recs...); err != nil {
		f.Fatal(err)
	}
	f.finishChores(s, ns)
}

// waitFor sometimes makes a task call others, or wait for a signal, and returns its waiting
// reason.
func (f *fixture) waitFor(s store.Store, ns string, c store.Claimed, r *rand.Rand) task.Waiting {
	f.Helper()
	for _, step := range c.Steps { // it began before
		if step.State == task.StepWaiting {
			return map[task.StepKind]task.Waiting{task.KindCall: task.WaitChildren, task.KindSignal: task.WaitSignal}[step.Kind]
		}
	}
	what := r.IntN(8)
	rec := store.Record{Lease: c.Lease, Step: &task.Step{
		Name: fmt.Sprint("step ", c.Task.AttemptNo), Index: c.Task.AttemptNo, Kind: task.KindCall, State: task.StepWaiting, Try: 1,
	}}
	why := task.WaitChildren
	switch {
	case what == 0:
		rec.Step.Kind, rec.Step.Signal, why = task.KindSignal, "s", task.WaitSignal
	case what < 4:
		rec.Step.ChildrenLeft = 1 + r.IntN(5)
		for range rec.Step.ChildrenLeft {
			rec.Tasks = append(rec.Tasks, f.draft(func(*task.New) {}))
		}
	default:
		return task.WaitNone
	}
	got, err := s.Record(f.Context(), ns, rec)
	if err != nil {
		f.Fatal(err)
	}
	if got[0].Err != nil || got[0].Step.State != task.StepWaiting {
		return task.WaitNone // it is too deep, was asked to end, or the signal existed
	}
	return why
}

// ends describes the tasks of a job and its counters, and checks the store.
func (f *fixture) ends(s store.Store, ns string, sub store.Submission) (ends []string) {
	f.Helper()
	snap, err := s.Snapshot(f.Context(), ns)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		f.Errorf("store.Check: %v", v)
	}
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; t.JobID == sub.Job.ID {
			if t.State.Terminal() {
				t.RemainingDeps = 0 // it has no meaning any more
			}
			ends = append(ends, fmt.Sprintf("%s %s/%s %d %s", t.Node, t.State, t.Waiting, t.RemainingDeps, t.End().Kind))
		}
	}
	job, err := store.JobOf(f.Context(), s, ns, sub.Job.ID)
	if err != nil {
		f.Fatal(err)
	}
	return append(ends, fmt.Sprintf("%s %+v %d %d %v", job.State, job.Counters, job.AttemptsUsed, job.Cost, job.ExhaustedAt.IsZero()))
}
