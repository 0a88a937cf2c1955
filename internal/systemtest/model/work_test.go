package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

// join announces a worker to both stores.
func (p *pair) join(id store.WorkerID) {
	askAt(p, p.home(id), "Join "+string(id), func(_ int, s store.Store) (struct{}, error) {
		return struct{}{}, s.Join(p.Context(), namespace, store.WorkerInfo{ID: id, Name: string(id), TTL: modelTTL})
	}, func(a struct{}) struct{} { return a })
}

func (p *pair) leaveOrJoin(*rapid.T) {
	id := pick(p, p.workers, "worker")
	if p.rarely(2, "leave") {
		askAt(p, p.home(id), "Leave "+string(id), func(_ int, s store.Store) (struct{}, error) {
			return struct{}{}, s.Leave(p.Context(), namespace, id)
		}, func(a struct{}) struct{} { return a })
		return
	}
	p.join(id)
}

// request draws a claim.
func (p *pair) request() store.ClaimRequest {
	w := pick(p, p.workers, "worker")
	r := store.ClaimRequest{
		Worker: w, Name: string(w), LeaseID: p.newLeaseID(), TTL: modelTTL, Limit: 1 + p.number(6, "limit"),
		Types: map[string]int{modelTypes[0]: 1, modelTypes[1]: 2}, Slots: pick(p, []int{8, 32}, "slots"),
	}
	if p.rarely(5, "one type") {
		delete(r.Types, pick(p, modelTypes, "unknown type"))
	}
	if p.rarely(4, "an old schema") {
		r.Schemas = map[string]int{pick(p, modelTypes, "old type"): 1}
	}
	if p.rarely(4, "some queues") {
		r.Queues = map[string]int{}
		for _, q := range modelQueues {
			r.Queues[q] = p.number(3, "slots of "+q)
		}
	}
	if p.rarely(5, "long lease") {
		r.TTL = 20 * time.Second
	}
	r.Quarantined = p.number(2, "quarantined")
	r.Running = r.Quarantined + p.number(2, "healthy")
	r.QuarantineLimit = p.number(3, "company")
	r.Alone = r.Quarantined == 1 && p.rarely(4, "one runs alone")
	return r
}

func (p *pair) claimSome(*rapid.T) { p.claim(p.request()) }

// claimHinted claims some tasks by ID.
func (p *pair) claimHinted(*rapid.T) {
	if len(p.ids) == 0 {
		return
	}
	r := p.request()
	for range 1 + p.number(3, "hints") {
		if id := pick(p, p.ids, "hint"); !slices.Contains(r.IDs, id) {
			r.IDs = append(r.IDs, id)
		}
	}
	p.claim(r)
}

// claimAgain looks up the tasks that an earlier claim still holds.
func (p *pair) claimAgain(*rapid.T) {
	if len(p.claims) > 0 {
		r := pick(p, p.claims, "claim")
		r.Again = true
		p.askClaim(r)
	}
}

func (p *pair) claim(r store.ClaimRequest) {
	p.claims = append(p.claims, r)
	p.held = append(p.held, p.askClaim(r)...)
}

func (p *pair) askClaim(r store.ClaimRequest) []store.Claimed {
	return askAs(p, fmt.Sprintf("Claim %+v", r), func(_ int, s store.Store) (store.ClaimResult, error) {
		got, err := s.Claim(p.Context(), namespace, r)
		if r.Again { // lookups are unordered
			slices.SortFunc(got.Tasks, func(a, b store.Claimed) int { return a.Task.ID.Compare(b.Task.ID) })
		}
		return got, err
	}, claimComparable)[0].Tasks
}

// claimComparable removes from a claim's answer the parts that stores are free to choose.
func claimComparable(r store.ClaimResult) store.ClaimResult {
	r.Tasks = slices.Clone(r.Tasks)
	for i := range r.Tasks {
		r.Tasks[i].Lease.Generation = "" // each store draws its own
		r.Tasks[i].Steps = ordered(r.Tasks[i].Steps)
	}
	return r
}

// drawLease draws a granted lease, mostly one that may still be valid.
func (p *pair) drawLease() (store.Claimed, bool) {
	switch {
	case len(p.held) > 0 && (len(p.lost) == 0 || !p.rarely(6, "stale")):
		return pick(p, p.held, "lease"), true
	case len(p.lost) > 0:
		return pick(p, p.lost, "stale lease"), true
	}
	return store.Claimed{}, false
}

// letGo records that a lease is no longer valid.
func (p *pair) letGo(l task.Lease) {
	p.held = slices.DeleteFunc(p.held, func(c store.Claimed) bool {
		if c.Lease == l {
			p.lost = append(p.lost, c)
		}
		return c.Lease == l
	})
}

// ending draws a report that ends an attempt.
func (p *pair) ending(c store.Claimed) store.Finish {
	f := store.Finish{Lease: c.Lease, Elapsed: time.Millisecond, CodeVersion: 1}
	if c.Task.Undo != nil && !p.rarely(6, "does not know of its phase") {
		return p.undoing(f, c.Task.Undo)
	}
	decide := func(k task.DecisionKind) {
		f.Outcome, f.Error = task.OutcomeFailure, &task.Error{Kind: task.KindHandler, Message: "no luck", Step: "s1"}
		f.Decision = &task.Decision{Kind: k, Reason: task.Reason{
			Policy: "test", Version: 1, Text: "the test says so", Evidence: map[string]any{"attempts": 3, "kind": "handler_error"},
		}}
	}
	switch p.number(13, "ending") {
	case 0, 1, 2:
		f.Outcome, f.Output = task.OutcomeSuccess, json.RawMessage(`"done"`)
		f.StepsRun = []string{"s1", "s2"}
	case 3:
		decide(task.DecideRetry)
		f.Delay = pick(p, delays, "delay")
	case 4:
		decide(task.DecideMarkDead)
	case 5:
		decide(task.DecideBlock)
		if p.rarely(2, "reported blocked") {
			f.Outcome = task.OutcomeBlocked
			f.Error.Ask = pick(p, []string{"", "flight", "hotel"}, "question")
		}
	case 6:
		f.Outcome, f.Error = task.OutcomeFailure, &task.Error{Kind: task.KindInternal, Message: "no bucket"}
		f.Delay = pick(p, delays, "delay") - time.Millisecond // negative: the undo is given up
	case 7:
		f.Outcome = task.OutcomeReleased
	case 8:
		f.Outcome, f.Error = task.OutcomeCancelled, &task.Error{Kind: task.KindCancelled, Message: "gave up"}
	case 9:
		decide(pick(p, []task.DecisionKind{task.DecideSucceed, task.DecideBlock, task.DecideRetry}, "of a bad payload"))
		f.Outcome, f.StepsUnreached = task.OutcomeDecodeFailed, []string{"s0"}
		if p.rarely(2, "repaired") {
			decide(task.DecideRepair)
			n := p.draft()
			n.IdempotencyKey, n.AllowFailure = "", true
			f.Join, f.Children = task.JoinRepair, []task.New{n}
			p.ids = append(p.ids, n.ID)
		}
	case 12:
		f.Outcome, f.DependsOn = task.OutcomeAddDependency, c.Lease.Task
		if len(p.ids) > 0 {
			f.DependsOn = pick(p, p.ids, "dependency")
		}
		if p.rarely(2, "decided") {
			decide(task.DecideAddDependency)
		}
	case 10, 11:
		f.Outcome, f.Join = task.OutcomeDecompose, pick(p, []task.Join{task.JoinRerun, task.JoinComplete}, "join")
		f.Output = pick(p, []json.RawMessage{nil, json.RawMessage(`"joined"`)}, "output of the join")
		for range 1 + p.number(3, "children") {
			n := p.draft()
			n.IdempotencyKey = ""
			f.Children = append(f.Children, n)
			p.ids = append(p.ids, n.ID)
		}
		if p.rarely(2, "decided") {
			decide(task.DecideDecompose)
		}
	}
	f.Idle = p.rarely(2, "idle")
	f.Unclean = p.rarely(4, "unclean")
	if d := f.Decision; d != nil && d.Kind == task.DecideBlock && p.rarely(2, "for its budget") {
		f.Waiting = task.WaitBudget
	}
	if p.rarely(4, "with progress") {
		f.Progress = &task.Progress{Current: float64(p.number(5, "current")), Total: 5}
	}
	return f
}

// undoing draws a report of an attempt of an undo phase.
func (p *pair) undoing(f store.Finish, u *task.UndoPhase) store.Finish {
	if f.EndsAs = u.EndsAs; p.rarely(12, "another end") {
		f.EndsAs = pick(p, []task.State{task.Failed, task.Cancelled, task.Succeeded}, "end")
	}
	failure := &task.Error{Kind: task.KindHandler, Message: "psp 503", Step: "undo0"}
	switch p.number(11, "ending of an undo") {
	case 0, 1, 2:
		f.Outcome = task.OutcomeUndone
	case 3, 10:
		f.Outcome, f.Output = task.OutcomeSuccess, json.RawMessage(`"done"`)
	case 4, 5:
		f.Outcome, f.Error, f.Delay = task.OutcomeUndoFailed, failure, pick(p, delays, "delay")
	case 6:
		f.Outcome, f.Error, f.Delay = task.OutcomeUndoFailed, &task.Error{Kind: task.KindUndoFailed, Message: "undo given up"}, -1
	case 7:
		f.Outcome, f.Waiting, f.Error = task.OutcomeBlocked, task.WaitUndo, failure
	case 8:
		f.Outcome = task.OutcomeReleased
	case 9:
		f.Outcome, f.Waiting, f.Delay = task.OutcomeSuspended, task.WaitUndo, pick(p, delays, "delay")
	}
	return f
}

// finishSome ends one to three attempts, each of a different task.
func (p *pair) finishSome(*rapid.T) {
	var fins []store.Finish
	for range 1 + p.number(3, "attempts") {
		c, ok := p.drawLease()
		if ok && !slices.ContainsFunc(fins, func(f store.Finish) bool { return f.Lease.Task == c.Lease.Task }) {
			fins = append(fins, p.ending(c))
		}
	}
	p.finish(fins...)
}

// finishAgain repeats a report unchanged or with other content.
func (p *pair) finishAgain(*rapid.T) {
	if len(p.fins) == 0 {
		return
	}
	f := pick(p, p.fins, "report")
	if p.rarely(3, "another content") {
		f = p.ending(store.Claimed{Lease: f.Lease})
	}
	p.finish(f)
}

func (p *pair) finish(fins ...store.Finish) {
	if len(fins) == 0 {
		return
	}
	got := ask(p, describe("Finish", fins), func(i int, s store.Store) ([]store.FinishResult, error) {
		own := slices.Clone(fins)
		for j := range own {
			own[j].Lease = p.lease(i, own[j].Lease)
		}
		return s.Finish(p.Context(), namespace, own...)
	})
	p.met.countFinishes(fins, got)
	for _, f := range fins {
		p.fins = append(p.fins, f)
		p.letGo(f.Lease)
	}
}

// note draws a record of a running attempt, such as a step or progress.
func (p *pair) note(c store.Claimed) store.Record {
	r := store.Record{Lease: c.Lease, Elapsed: time.Millisecond}
	i := p.number(3, "step")
	step := task.Step{Name: fmt.Sprint("s", i), Index: i, Kind: task.KindStep, State: task.StepCompleted, Try: 1}
	switch p.number(7, "record") {
	case 6:
		r.Checkpoint = &task.Checkpoint{Name: fmt.Sprint("c", i), Value: json.RawMessage(fmt.Sprint(p.number(2, "value")))}
		return r
	case 0, 1:
		step.Value = json.RawMessage(fmt.Sprint(p.number(2, "value")))
		if p.rarely(4, "cleanup") {
			step.Name, step.Index, step.Kind = fmt.Sprint("undo", i), 10+i, task.KindCleanup
		}
	case 2:
		step.State, step.Try = task.StepFailed, 1+p.number(2, "try")
		step.Error = &task.Error{Kind: task.KindHandler, Message: "not this time", Step: step.Name}
	case 3:
		step.Error = &task.Error{Kind: task.KindHandler, Message: "never"} // by RecordError
	case 4:
		n := p.draft()
		if p.rarely(2, "idempotent") {
			n.IdempotencyKey = fmt.Sprint("once", p.number(3, "idempotency key"))
		}
		value, _ := json.Marshal(n.ID) // an ID is text
		step = task.Step{Name: fmt.Sprint("start", i), Index: 4 + i, Kind: task.KindStart, State: task.StepCompleted, Try: 1, Value: value}
		r.Tasks = []task.New{n}
	case 5:
		r.Progress = &task.Progress{Current: float64(i), Total: 3, Message: "on the way"}
		return r
	}
	if p.rarely(3, "spends") {
		step.Cost = int64(1 + p.number(4, "cost"))
	}
	r.Step = &step
	return r
}

// recordSome writes one to three records, perhaps of the same attempt.
func (p *pair) recordSome(*rapid.T) {
	var recs []store.Record
	for range 1 + p.number(3, "records") {
		if c, ok := p.drawLease(); ok {
			recs = append(recs, p.note(c))
		}
	}
	p.record(recs...)
}

// recordAgain repeats a record, like a worker whose reply was lost.
func (p *pair) recordAgain(*rapid.T) {
	if len(p.records) > 0 {
		p.record(pick(p, p.records, "record"))
	}
}

func (p *pair) record(recs ...store.Record) []store.RecordResult {
	if len(recs) == 0 {
		return nil
	}
	p.records = append(p.records, recs...)
	var before []saga
	for i := range recs {
		before = append(before, p.sagaOf(recs[i].Lease.Task))
	}
	got := ask(p, describe("Record", recs), func(i int, s store.Store) ([]store.RecordResult, error) {
		own := slices.Clone(recs)
		for j := range own {
			own[j].Lease = p.lease(i, own[j].Lease)
		}
		return s.Record(p.Context(), namespace, own...)
	})
	p.met.countRecords(before, recs, got)
	return got
}

// errStep is the error of a failed step function.
var errStep = errors.New("the step failed")

// stepTx runs a step in a transaction, which may enqueue tasks and sometimes fails.
func (p *pair) stepTx(*rapid.T) {
	c, ok := p.drawLease()
	if !ok {
		return
	}
	i := p.number(3, "step")
	rec := store.Record{Lease: c.Lease, Elapsed: time.Millisecond, Step: &task.Step{
		Name: fmt.Sprint("tx", i), Index: 7 + i, Kind: task.KindStep, State: task.StepCompleted, Try: 1,
	}}
	if p.rarely(3, "spends") {
		rec.Step.Cost = 2
	}
	value := json.RawMessage(fmt.Sprint(p.number(2, "value")))
	fails := p.rarely(4, "fails")
	var subs []store.Submission
	for range p.number(3, "enqueues") {
		n := p.draft()
		if p.rarely(2, "idempotent") {
			n.IdempotencyKey = fmt.Sprint("once", p.number(3, "idempotency key"))
		}
		subs = append(subs, store.Submission{Tasks: []task.New{n}})
	}
	var told [2][][]store.Enqueued
	ask(p, fmt.Sprintf("StepTx %+v", rec), func(i int, s store.Store) (store.RecordResult, error) {
		own := rec
		own.Lease = p.lease(i, rec.Lease)
		return s.StepTx(p.Context(), namespace, own, time.Minute, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			for _, sub := range subs {
				got, err := s.Enqueue(ctx, namespace, tx, sub)
				if err != nil {
					return nil, err
				}
				told[i] = append(told[i], got)
			}
			if fails {
				return nil, errStep
			}
			return value, nil
		})
	})
	p.same("what the step's transaction enqueued", told[0], told[1])
}

// sleepAndSuspend records a sleep and mostly ends the attempt until its end.
func (p *pair) sleepAndSuspend(*rapid.T) {
	c, ok := p.drawLease()
	if !ok {
		return
	}
	got := p.record(store.Record{Lease: c.Lease, Sleep: pick(p, delays, "sleep"), Step: &task.Step{
		Name: "nap", Index: 3, Kind: task.KindSleep, State: task.StepCompleted, Try: 1,
	}})
	if got[0].Err == nil && !p.rarely(4, "goes on") {
		p.finish(store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuspended, WakeAt: got[0].Step.WakeAt})
	}
}

// heartbeat marks a worker as seen and extends all, some or no leases.
func (p *pair) heartbeat(*rapid.T) {
	var leases []task.Lease
	switch p.number(3, "leases") {
	case 0:
		for _, c := range p.held {
			leases = append(leases, c.Lease)
		}
	case 1:
		if c, ok := p.drawLease(); ok {
			leases = []task.Lease{c.Lease}
		}
	}
	p.beat(pick(p, p.workers, "worker"), leases...)
}

func (p *pair) beat(id store.WorkerID, leases ...task.Lease) {
	ask(p, fmt.Sprintf("Heartbeat of %s %v", id, leases), func(i int, s store.Store) ([]store.Beat, error) {
		own := slices.Clone(leases)
		for j := range own {
			own[j] = p.lease(i, own[j])
		}
		return s.Heartbeat(p.Context(), namespace, store.HeartbeatRequest{Worker: id, TTL: modelTTL, Leases: own})
	})
}
