package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// planWork makes a worker's and a caller's usual calls.
type planWork struct {
	testing.TB
	db  *postgres.DB
	ids *task.IDs
}

const (
	workType  = "acme.work.v1" // only these tasks have this type
	workQueue = "work"
	workTTL   = 30 * time.Second
)

func (w *planWork) draft(change ...func(*task.New)) task.New {
	n := task.New{
		ID: w.ids.New(), Type: workType, Queue: workQueue, Input: json.RawMessage(`1`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: 10, MaxRepairs: task.DefaultMaxRepairs, Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func (w *planWork) enqueue(n int, change ...func(*task.New)) []task.ID {
	var sub store.Submission
	var ids []task.ID
	for range n {
		sub.Tasks = append(sub.Tasks, w.draft(change...))
		ids = append(ids, sub.Tasks[len(sub.Tasks)-1].ID)
	}
	w.submit(sub)
	return ids
}

func (w *planWork) submit(sub store.Submission) {
	if _, err := w.db.Enqueue(w.Context(), planNS, nil, sub); err != nil {
		w.Fatalf("Enqueue: %v", err)
	}
}

func (w *planWork) claim(limit int, types ...string) []store.Claimed {
	req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: limit, Slots: 1000, Types: make(map[string]int)}
	for _, typ := range types {
		req.Types[typ] = 1
	}
	return w.claimBy(req)
}

func (w *planWork) claimBy(req store.ClaimRequest) []store.Claimed {
	got, err := w.db.Claim(w.Context(), planNS, req)
	if err != nil {
		w.Fatalf("Claim: %v", err)
	}
	return got.Tasks
}

// claimWork claims the tasks of the work.
func (w *planWork) claimWork(want int) []store.Claimed {
	got := w.claim(100, workType)
	if len(got) != want {
		w.Fatalf("claimed %d tasks, want %d", len(got), want)
	}
	return got
}

func (w *planWork) finish(fins ...store.Finish) {
	got, err := w.db.Finish(w.Context(), planNS, fins...)
	if err != nil {
		w.Fatalf("Finish: %v", err)
	}
	for _, r := range got {
		if r.Err != nil {
			w.Fatalf("Finish: %v", r.Err)
		}
	}
}

func (w *planWork) succeed(claimed ...store.Claimed) {
	var fins []store.Finish
	for _, c := range claimed {
		fins = append(fins, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`1`), CodeVersion: 1})
	}
	w.finish(fins...)
}

// failed ends an attempt with a decision.
func failed(c store.Claimed, kind task.DecisionKind) store.Finish {
	return store.Finish{
		Lease: c.Lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "no luck"}, CodeVersion: 1,
		Decision: &task.Decision{Kind: kind, Reason: task.Reason{Policy: "test", Version: 1, Text: "the test says so"}},
	}
}

func (w *planWork) record(rec store.Record) store.RecordResult {
	got, err := w.db.Record(w.Context(), planNS, rec)
	if err != nil || got[0].Err != nil {
		w.Fatalf("Record: %v %v", err, got)
	}
	return got[0]
}

func (w *planWork) operate(cmds ...store.Command) {
	got, err := w.db.Operate(w.Context(), planNS, cmds...)
	if err != nil {
		w.Fatalf("Operate: %v", err)
	}
	for i, r := range got {
		if r.Err != nil {
			w.Fatalf("Operate %T: %v", cmds[i], r.Err)
		}
	}
}

func step(c store.Claimed, name string, index int) store.Record {
	return store.Record{Lease: c.Lease, Step: &task.Step{Name: name, Index: index, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: json.RawMessage(`1`)}}
}

// run makes all calls once.
func (w *planWork) run() {
	ctx := w.Context()
	if err := w.db.Join(ctx, planNS, store.WorkerInfo{ID: "w", Name: "host:1", TTL: workTTL}); err != nil {
		w.Fatal(err)
	}
	w.publish()
	w.plain()
	w.limits()
	w.jobs()
	w.waits()
	w.commands()
	if _, err := w.db.Reap(ctx, planNS, store.ReapRequest{Worker: "w", TTL: workTTL, CrashBudget: 5}); err != nil {
		w.Fatalf("Reap: %v", err)
	}
	w.reads()
	w.retain(5)
}

// publish marks tasks as sent, and claims unsent ones and those of hints.
func (w *planWork) publish() {
	soon := func(n *task.New) { n.Priority = 0 } // before those of other lanes
	w.enqueue(40, soon)
	got, err := w.db.Publish(w.Context(), planNS, store.PublishRequest{Limit: 1000})
	w.ok(err)
	var ids []task.ID
	var pushed []store.Pushed
	for _, t := range got.Tasks {
		if t.Type == workType {
			ids = append(ids, t.Task)
		}
		pushed = append(pushed, store.Pushed{Task: t.Task, Mark: got.Mark, For: time.Minute})
	}
	if _, err := w.db.Publish(w.Context(), planNS, store.PublishRequest{Pushed: pushed}); err != nil || len(ids) != 40 {
		w.Fatalf("Publish: %v, %d tasks, want 40", err, len(ids))
	}
	w.enqueue(1, soon)
	w.enqueue(1, soon, func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "sent", 1 }) // the lane is not claimed whole
	req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: 100, Slots: 1000, Types: map[string]int{workType: 1}, LeaveSent: true}
	unsent := w.claimBy(req)
	req.LeaseID, req.IDs = task.NewLeaseID(), ids
	if hinted := w.claimBy(req); len(unsent) != 2 || len(hinted) != 40 {
		w.Fatalf("claimed %d unsent tasks, want 2, and %d hinted ones, want 40", len(unsent), len(hinted))
	} else {
		w.succeed(append(unsent, hinted...)...)
	}
}

// plain runs tasks without dependents, and tasks with a key.
// limits claims tasks that take turns and have rates, in a queue with a limit.
func (w *planWork) limits() {
	w.operate(store.SetLimit{Name: "queue:" + workQueue, Limit: store.Limit{Running: 1000}})
	for _, tenant := range []string{"a", "b", "c"} {
		w.enqueue(20, func(n *task.New) {
			n.FairBy, n.Labels = "tenant", map[string]string{"tenant": tenant}
			n.RateLimit = task.Rate{Key: "rate " + tenant, Starts: 1000, Per: time.Second, Burst: 1000}
		})
	}
	w.succeed(w.claimWork(60)...)
	w.operate(store.SetLimit{Name: "queue:" + workQueue, Delete: true})
}

func (w *planWork) plain() {
	w.succeed(w.claim(100, planType)...) // a lane with many tasks
	w.enqueue(1)
	w.enqueue(50)
	w.enqueue(1, func(n *task.New) { n.Delay = time.Hour })
	got := w.claimWork(51)
	var leases []task.Lease
	for _, c := range got {
		leases = append(leases, c.Lease)
	}
	w.record(step(got[0], "a", 0))
	if _, err := w.db.Record(w.Context(), planNS, step(got[1], "a", 0), step(got[2], "a", 0)); err != nil {
		w.Fatal(err)
	}
	mixed := []store.Record{step(got[5], "a", 0), step(got[6], "a", 0), {Lease: got[7].Lease, Checkpoint: &task.Checkpoint{Name: "cursor", Value: json.RawMessage(`7`)}}}
	_, err := w.db.Record(w.Context(), planNS, mixed...)
	w.ok(err)
	w.record(store.Record{Lease: got[0].Lease, Checkpoint: &task.Checkpoint{Name: "cursor", Value: json.RawMessage(`7`)}})
	beats, err := w.db.Heartbeat(w.Context(), planNS, store.HeartbeatRequest{Worker: "w", TTL: workTTL, Leases: leases})
	if err != nil || beats[0].Lost {
		w.Fatalf("Heartbeat: %v %v", err, beats)
	}
	w.succeed(got[:1]...)
	w.succeed(got[5:]...)
	w.finish(failed(got[1], task.DecideRetry), failed(got[2], task.DecideMarkDead))
	w.finish(failed(got[3], task.DecideBlock), store.Finish{Lease: got[4].Lease, Outcome: task.OutcomeReleased})
	again := w.claimWork(2)
	w.record(step(again[0], "b", 1))
	w.succeed(again...)

	w.enqueue(2, func(n *task.New) { n.Input = json.RawMessage(`"` + strings.Repeat("long ", 1<<10) + `"`) })
	w.succeed(w.claimWork(2)...)

	ids := w.enqueue(4, func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "one", 1 })
	for range ids {
		w.succeed(w.claimWork(1)...)
	}
	ids = w.enqueue(1, func(n *task.New) { n.IdempotencyKey = "once" })
	w.enqueue(1, func(n *task.New) { n.IdempotencyKey = "once" })
	req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: 1, Slots: 1000, Types: map[string]int{workType: 1}, IDs: ids}
	w.succeed(w.claimBy(req)...)
	req.Again = true
	w.claimBy(req)
}

// jobs runs a job whose tasks depend on each other, with a child and a dependency that is added
// late.
func (w *planWork) jobs() {
	job := task.NewJob{ID: w.ids.New(), Name: "plans"}
	root := w.draft()
	sub := store.Submission{Job: &job, Tasks: []task.New{root}}
	for range 3 {
		n := w.draft()
		n.Needs = []task.Edge{{Needs: root.ID, Kind: task.OnSuccess}}
		sub.Tasks = append(sub.Tasks, n)
	}
	n := w.draft()
	n.Needs = []task.Edge{{Needs: root.ID, Kind: task.OnFailed}}
	sub.Tasks = append(sub.Tasks, n)
	for i := range sub.Tasks {
		sub.Tasks[i].Node = "n" + string(rune('a'+i))
	}
	w.submit(sub)
	w.succeed(w.claimWork(1)...)
	got := w.claimWork(3)
	w.succeed(got[0])
	w.finish(store.Finish{Lease: got[1].Lease, Outcome: task.OutcomeDecompose, Join: task.JoinComplete, Children: []task.New{w.draft(), w.draft()}})
	w.succeed(w.claimWork(2)...)
	w.finish(store.Finish{Lease: got[2].Lease, Outcome: task.OutcomeAddDependency, DependsOn: got[1].Task.ID})
	w.succeed(w.claimWork(1)...)
	if jobs, _, err := w.db.Jobs(w.Context(), planNS, store.JobFilter{ID: job.ID}); err != nil || jobs[0].State != task.JobSucceeded {
		w.Fatalf("Jobs: %v %v", err, jobs)
	}
}

// waits runs a task that sleeps and waits for a signal.
func (w *planWork) waits() {
	ids := w.enqueue(2)
	got := w.claimWork(2)
	slept := w.record(store.Record{
		Lease: got[0].Lease, Sleep: time.Hour,
		Step: &task.Step{Name: "nap", Kind: task.KindSleep, State: task.StepCompleted, Try: 1},
	})
	w.finish(store.Finish{Lease: got[0].Lease, Outcome: task.OutcomeSuspended, Waiting: task.WaitSleep, WakeAt: slept.Step.WakeAt})
	w.record(store.Record{Lease: got[1].Lease, Step: &task.Step{Name: "go", Kind: task.KindSignal, State: task.StepWaiting, Signal: "go", Try: 1}})
	w.finish(store.Finish{Lease: got[1].Lease, Outcome: task.OutcomeSuspended, Waiting: task.WaitSignal, WakeSeq: got[1].Task.WakeSeq})
	w.operate(store.SendSignal{Task: got[1].Task.ID, Name: "go", Key: "k", Payload: json.RawMessage(`1`)})
	woken := w.claimWork(1)
	w.succeed(woken...)
	w.operate(store.CancelTask{Task: ids[0]}, store.DeleteTask{Task: ids[1]})
}

// commands runs operators' commands.
func (w *planWork) commands() {
	ids := w.enqueue(3)
	w.operate(store.PauseTask{Task: ids[0]}, store.ResumeTask{Task: ids[0]}, store.RescheduleTask{Task: ids[0], At: time.Now().Add(time.Hour)}, store.CancelTask{Task: ids[0]})
	w.operate(store.PauseQueue{Queue: workQueue}, store.ResumeQueue{Queue: workQueue})
	got := w.claimWork(2)
	w.finish(failed(got[0], task.DecideMarkDead), failed(got[1], task.DecideBlock))
	w.operate(store.RetryTask{Task: got[0].Task.ID}, store.UnblockTask{Task: got[1].Task.ID})
	got = w.claimWork(2)
	w.operate(store.CancelTask{Task: got[0].Task.ID})
	w.succeed(got...)
	w.sets()
}

// sets runs commands of one verb on several tasks.
func (w *planWork) sets() {
	w.enqueue(6, func(n *task.New) { n.Labels = map[string]string{"a": "b"} })
	got := w.claimWork(6)
	var fins []store.Finish
	for i, c := range got {
		fins = append(fins, failed(c, []task.DecisionKind{task.DecideMarkDead, task.DecideBlock}[i%2]))
	}
	w.finish(fins...)
	var retries, unblocks, cancels, deletes []store.Command
	for i, c := range got {
		if id := c.Task.ID; i%2 == 0 {
			retries = append(retries, store.RetryTask{Task: id})
		} else {
			unblocks = append(unblocks, store.UnblockTask{Task: id})
		}
		cancels, deletes = append(cancels, store.CancelTask{Task: c.Task.ID}), append(deletes, store.DeleteTask{Task: c.Task.ID})
	}
	for _, cmds := range [][]store.Command{retries, unblocks, cancels, deletes} {
		w.operate(cmds...)
	}
}

// reads runs the reads of every page of the user interface.
func (w *planWork) reads() {
	ctx := w.Context()
	id := w.enqueue(1)[0]
	_, err := w.db.Tasks(ctx, planNS, id)
	w.ok(err)
	_, err = w.db.History(ctx, planNS, id)
	w.ok(err)
	_, err = w.db.Overview(ctx, planNS, store.OverviewRequest{Parts: store.OverviewLine, Task: id})
	w.ok(err)
	_, err = w.db.Needs(ctx, planNS, id)
	w.ok(err)
	for _, f := range []store.Filter{{}, {States: []task.State{task.Failed}}} {
		_, _, err = w.db.List(ctx, planNS, f)
		w.ok(err)
	}
	w.succeed(w.claimWork(1)...)
}

func (w *planWork) ok(err error) {
	if err != nil {
		w.Fatal(err)
	}
}

// retain makes a collector remove the finished tasks of the work, outside of jobs.
func (w *planWork) retain(atLeast int) {
	w.Helper()
	req := store.CollectRequest{Retain: []store.Retention{{Types: []string{workType}}}}
	removed := 0
	for range 100 {
		got, err := w.db.Collect(w.Context(), planNS, req)
		if err != nil {
			w.Fatalf("Collect: %v", err)
		}
		removed += got.Tasks
		if req.After = got.Next; got.Done() {
			break
		}
	}
	if removed < atLeast {
		w.Errorf("Collect removed %d tasks, want %d at least", removed, atLeast)
	}
}
