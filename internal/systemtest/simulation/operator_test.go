package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	queues = []string{"a", "b"}
	// Most edges have the kind that is most common in jobs.
	edgeKinds = []task.EdgeKind{task.OnSuccess, task.OnSuccess, task.OnDone, task.OnFailed}
)

// planRun schedules the commands of operators and the faults.
func (sim *simulation) planRun() {
	n := 0
	at := func(times int, do func()) {
		for range times {
			n++
			sim.put(&item{name: fmt.Sprintf("plan %03d", n), after: time.Duration(sim.rnd.Int64N(int64(sim.length * 3 / 4))), do: do})
		}
	}
	sim.submitUnserved() // older than all others
	sim.submit()         // and some immediately
	sim.submit()
	sim.submitJob()
	at(sim.loads, sim.submit)
	at(2, sim.submitJob)
	at(2, sim.submitUnserved)
	at(1, sim.submitQueue)
	at(6, sim.transact)
	at(sim.poison, sim.submitPoison)
	at(20, sim.interfere)
	at(12, sim.sendSignal)
	at(2, sim.wait)
	at(sim.freezes, sim.freeze)
	at(sim.outages, sim.outageNow)
	at(sim.kills, func() { sim.crash(sim.anyProcess()) })
	at(sim.stops, func() { sim.restart(sim.anyProcess()) })
	at(sim.jumps, func() { sim.anyProcess().skew = sim.drawSkew() })
	at(sim.restores, func() { sim.operate(store.Restored{}) })
}

func (sim *simulation) anyProcess() *process { return sim.procs[sim.rnd.IntN(places)] }

// draft draws a task.
func (sim *simulation) draft() task.New {
	input, err := json.Marshal(drawScript(sim.rnd, sim.ttl))
	if err != nil {
		sim.failf("encode a script: %v", err)
	}
	r := sim.rnd
	n := task.New{
		ID: sim.ids.New(), Type: taskType.Name(), Queue: queues[r.IntN(2)], Input: input, SchemaVersion: 1, Priority: 1 + r.IntN(9),
		MaxAttempts: 1 + r.IntN(4), MaxRepairs: 2, Backoff: 100 * time.Millisecond, BackoffMax: 2 * time.Second,
	}
	switch r.IntN(6) {
	case 0:
		n.Delay = time.Duration(r.Int64N(int64(sim.ttl)))
	case 1:
		n.Timeout = sim.ttl/4 + time.Duration(r.Int64N(int64(sim.ttl)))
	case 3:
		n.MaxCost = int64(r.IntN(4))
	case 2:
		n.ExpireAfter = sim.ttl/2 + time.Duration(r.Int64N(int64(3*sim.ttl)))
	}
	if r.IntN(3) == 0 {
		k := r.IntN(3)
		n.ConcurrencyKey, n.ConcurrencyLimit = fmt.Sprintf("k%d", k), 1+k
	}
	return n
}

// submit enqueues one to three tasks. If the answer is lost, it repeats the same call.
func (sim *simulation) submit() {
	var sub store.Submission
	for range 1 + sim.rnd.IntN(3) {
		n := sim.draft()
		if sim.rnd.IntN(6) == 0 {
			n.IdempotencyKey = fmt.Sprintf("event %d", sim.rnd.IntN(3))
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	sim.enqueue(sub)
}

// submitPoison enqueues a task that kills each process that runs it.
func (sim *simulation) submitPoison() {
	n := sim.draft()
	n.Input = json.RawMessage(`{"do":[{"what":"die","for":200,"n":1000}]}`)
	n.ExpireAfter, n.Timeout = 0, 0
	sim.deadly[n.ID] = true
	sim.enqueue(store.Submission{Tasks: []task.New{n}})
}

// submitJob enqueues tasks that need each other.
func (sim *simulation) submitJob() {
	sub := store.Submission{Job: &task.NewJob{ID: sim.ids.New(), Name: "job"}}
	if sim.rnd.IntN(4) == 0 {
		sub.Job.Budget.MaxDuration = 2*sim.ttl + time.Duration(sim.rnd.Int64N(int64(4*sim.ttl)))
	}
	switch sim.rnd.IntN(4) {
	case 0:
		sub.Job.Budget.MaxTotalAttempts = 2 + sim.rnd.IntN(6)
	case 1:
		sub.Job.Budget.MaxCost = int64(1 + sim.rnd.IntN(4))
	}
	for i := range 3 + sim.rnd.IntN(4) {
		n := sim.draft()
		n.Node = fmt.Sprintf("n%d", i)
		n.AllowFailure = sim.rnd.IntN(5) == 0
		for _, earlier := range sub.Tasks {
			if sim.rnd.IntN(2) == 0 {
				n.Needs = append(n.Needs, task.Edge{Needs: earlier.ID, Kind: edgeKinds[sim.rnd.IntN(len(edgeKinds))]})
			}
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	sim.jobs = append(sim.jobs, sub.Job.ID)
	sim.enqueue(sub)
}

func (sim *simulation) enqueue(sub store.Submission) {
	for i := range sub.Tasks {
		sim.result(" " + sim.label(sub.Tasks[i].ID))
	}
	again := sim.rnd.IntN(5) == 0
	got, err := sim.mem.Enqueue(context.Background(), ns, nil, sub)
	if err == nil && again {
		got, err = sim.mem.Enqueue(context.Background(), ns, nil, sub)
	}
	if err != nil {
		sim.failf("enqueue: %v", err)
	}
	for _, g := range got {
		sim.acked[g.ID] = true
		sim.tasks = append(sim.tasks, g.ID)
	}
}

// interfere runs a random command of an operator.
func (sim *simulation) interfere() {
	r := sim.rnd
	by := store.Audit{By: "op", Reason: "to see"}
	pick := sim.tasks[r.IntN(len(sim.tasks))]
	if r.IntN(16) == 0 {
		pick = sim.unserved[r.IntN(len(sim.unserved))]
	} else if running := sim.list(task.Running); len(running) > 0 && r.IntN(4) > 0 {
		pick = running[r.IntN(len(running))].ID
	}
	switch r.IntN(13) {
	case 10:
		sim.rerun(by, pick)
	case 11:
		sim.operate(store.RaiseBudget{Audit: by, Job: sim.jobs[r.IntN(len(sim.jobs))], AddAttempts: 2, AddCost: 2})
		sim.retried = true
	case 12:
		sim.operate(store.PauseType{Audit: by, Type: taskType.Name()})
		sim.put(&item{name: fmt.Sprintf("resume the type %d", sim.passages), after: time.Duration(r.Int64N(int64(sim.ttl))), do: func() {
			sim.operate(store.ResumeType{Audit: by, Type: taskType.Name()})
		}})
	case 0, 1:
		sim.operate(store.CancelTask{Audit: by, Task: pick})
	case 2, 3:
		sim.operate(store.CancelTask{Audit: by, Task: pick, Force: true})
	case 4, 5:
		sim.operate(store.RetryTask{Audit: by, Task: pick, Cleanup: r.IntN(3) == 0})
	case 6:
		sim.operate(store.UnblockTask{Audit: by, Task: pick, Input: json.RawMessage(`"go on"`)})
	case 7:
		sim.operate(store.CancelJob{Audit: by, Job: sim.jobs[r.IntN(len(sim.jobs))]})
	case 8:
		if r.IntN(3) == 0 {
			sim.operate(store.PauseTask{Audit: by, Task: pick})
			sim.put(&item{name: fmt.Sprintf("resume a task %d", sim.passages), after: time.Duration(r.Int64N(int64(2 * sim.ttl))), do: func() {
				sim.operate(store.ResumeTask{Audit: by, Task: pick})
			}})
			return
		}
		q := queues[r.IntN(2)]
		sim.operate(store.PauseQueue{Audit: by, Queue: q})
		sim.put(&item{name: fmt.Sprintf("resume %s %d", q, sim.passages), after: time.Duration(r.Int64N(int64(2 * sim.ttl))), do: func() {
			sim.operate(store.ResumeQueue{Audit: by, Queue: q})
		}})
	default:
		sim.operate(store.DeleteTask{Audit: by, Task: pick})
	}
}

func (sim *simulation) list(state task.State) []task.Task {
	got, _, err := sim.mem.List(context.Background(), ns, store.Filter{States: []task.State{state}, Limit: store.MaxLimit})
	if err != nil {
		sim.failf("list tasks: %v", err)
	}
	return got
}

// operate applies a command and records the leases that it took.
func (sim *simulation) operate(cmd store.Command) (got store.CommandResult) {
	running := sim.list(task.Running)
	res, err := sim.mem.Operate(context.Background(), ns, cmd)
	if err != nil {
		sim.failf("operate: %v", err)
		return got
	}
	got = res[0]
	sim.result(fmt.Sprintf(" %T", cmd))
	switch cmd := cmd.(type) {
	case store.CancelTask:
		sim.result(fmt.Sprintf(" %s force=%v→%s", sim.label(cmd.Task), cmd.Force, res[0].State))
	case store.RetryTask:
		sim.result(fmt.Sprintf(" %s→%s", sim.label(cmd.Task), res[0].State))
		sim.retried = true
	case store.UnblockTask:
		sim.result(fmt.Sprintf(" %s→%s", sim.label(cmd.Task), res[0].State))
	case store.DeleteTask:
		sim.result(fmt.Sprintf(" %s %v", sim.label(cmd.Task), res[0].Err == nil))
		if res[0].Err == nil {
			sim.deleted[cmd.Task] = true
		}
	}
	snap, err := sim.mem.Snapshot(context.Background(), ns)
	if err != nil {
		sim.failf("snapshot: %v", err)
		return got
	}
	stands := map[leaseKey]bool{}
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; t.State == task.Running {
			stands[leaseKey{t.ID, t.Epoch}] = true
		}
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for i := range running {
		key := leaseKey{running[i].ID, running[i].Epoch}
		if sim.leases[key] != nil && (!stands[key] || sim.gen != snap.Generation) {
			sim.leases[key].revoked = true
		}
	}
	sim.gen = snap.Generation
	return got
}

// crash kills a process and starts another one in its place.
func (sim *simulation) crash(p *process) {
	if p.dead.Load() || p.over.Load() {
		return
	}
	sim.result(" kills " + p.name)
	sim.kill(p, sim.declare)
	sim.after(p.place)
}

// restart stops a process as its owner would, and starts it again.
func (sim *simulation) restart(p *process) {
	if p.dead.Load() || p.over.Load() || p.frozen.After(time.Now()) {
		return
	}
	sim.result(" stops " + p.name)
	sim.halt(p)
	sim.after(p.place)
}

// outageNow makes the store unreachable for every process, for shorter or longer than a lease.
func (sim *simulation) outageNow() {
	end := time.Now().Add(sim.ttl/4 + time.Duration(sim.rnd.Int64N(int64(2*sim.ttl))))
	if end.After(sim.outage) {
		sim.outage = end
	}
	sim.result(fmt.Sprintf(" cuts all off until %v", sim.outage.Sub(sim.begun)))
}

// halt stops a process. Its grace period is short, so calls are fast from now on.
func (sim *simulation) halt(p *process) {
	p.stopping = true
	sim.mu.Lock()
	for _, it := range sim.waiting {
		if it.proc == p && it.call && it.scheduled && time.Until(it.at) > time.Second {
			it.at = time.Now().Add(time.Second)
		}
	}
	sim.mu.Unlock()
	p.stop()
}

// after starts a process at a place whose process has ended.
func (sim *simulation) after(place int) {
	old := sim.procs[place]
	var start func()
	later := func(d time.Duration) {
		sim.put(&item{name: "start after " + old.name, after: d, ready: old.over.Load, do: start})
	}
	start = func() {
		switch rest := time.Until(sim.outage); {
		case sim.procs[place] != old:
		case rest > 0 && !sim.calm:
			later(rest)
		default:
			sim.start(place)
		}
	}
	later(time.Duration(sim.rnd.Int64N(int64(sim.ttl))))
}

// freeze stops the progress of a process, often for longer than its leases last. The process does not notice when it
// continues.
func (sim *simulation) freeze() {
	p := sim.anyProcess()
	if p.dead.Load() || p.stopping {
		return
	}
	d := sim.ttl/2 + time.Duration(sim.rnd.Int64N(int64(2*sim.ttl)))
	sim.result(fmt.Sprintf(" freezes %s for %v", p.name, d))
	p.frozen = time.Now().Add(d)
	p.faultUntil = p.frozen
}
