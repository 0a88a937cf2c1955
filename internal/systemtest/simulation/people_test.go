package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var queues = []string{"a", "b"}

// plan says what people and misfortune will do, and when.
func (w *world) plan() {
	n := 0
	at := func(times int, do func()) {
		for range times {
			n++
			w.put(&item{name: fmt.Sprintf("plan %03d", n), after: time.Duration(w.rnd.Int64N(int64(w.days * 3 / 4))), do: do})
		}
	}
	w.submit() // and some at once
	w.submit()
	w.submitJob()
	at(w.loads, w.submit)
	at(2, w.submitJob)
	at(w.poison, w.submitDeadly)
	at(16, w.meddle)
	at(2, w.wait)
	at(w.freezes, w.freeze)
	at(w.outages, w.cutOff)
	at(w.kills, func() { w.fell(w.anybody()) })
	at(w.stops, func() { w.pause(w.anybody()) })
	at(w.jumps, func() { w.anybody().skew = w.drawSkew() })
	at(w.restores, func() { w.operate(store.Restored{}) })
}

func (w *world) anybody() *process { return w.procs[w.rnd.IntN(places)] }

// draft draws a task.
func (w *world) draft() task.New {
	input, err := json.Marshal(drawScript(w.rnd, w.ttl))
	if err != nil {
		w.failf("encode a script: %v", err)
	}
	r := w.rnd
	n := task.New{
		ID: w.ids.New(), Type: taskType.Name(), Queue: queues[r.IntN(2)], Input: input, SchemaVersion: 1, Priority: 1 + r.IntN(9),
		MaxAttempts: 1 + r.IntN(4), MaxRepairs: 2, Backoff: 100 * time.Millisecond, BackoffMax: 2 * time.Second,
	}
	switch r.IntN(6) {
	case 0:
		n.Delay = time.Duration(r.Int64N(int64(w.ttl)))
	case 1:
		n.Timeout = w.ttl/4 + time.Duration(r.Int64N(int64(w.ttl)))
	case 2:
		n.ExpireAfter = w.ttl/2 + time.Duration(r.Int64N(int64(3*w.ttl)))
	}
	if r.IntN(3) == 0 {
		k := r.IntN(3)
		n.ConcurrencyKey, n.ConcurrencyLimit = fmt.Sprintf("k%d", k), 1+k
	}
	return n
}

// submit enqueues one to three tasks. An answer may be lost; then the same
// call is made again.
func (w *world) submit() {
	var sub store.Submission
	for range 1 + w.rnd.IntN(3) {
		n := w.draft()
		if w.rnd.IntN(6) == 0 {
			n.IdempotencyKey = fmt.Sprintf("event %d", w.rnd.IntN(3))
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	w.enqueue(sub)
}

// submitDeadly enqueues a task that kills whoever runs it.
func (w *world) submitDeadly() {
	n := w.draft()
	n.Input = json.RawMessage(`{"do":[{"what":"die","for":200,"n":1000}]}`)
	n.ExpireAfter, n.Timeout = 0, 0
	w.deadly[n.ID] = true
	w.enqueue(store.Submission{Tasks: []task.New{n}})
}

// submitJob enqueues tasks that need each other.
func (w *world) submitJob() {
	sub := store.Submission{Job: &task.NewJob{ID: w.ids.New(), Name: "job"}}
	if w.rnd.IntN(4) == 0 {
		sub.Job.Budget.MaxDuration = 2*w.ttl + time.Duration(w.rnd.Int64N(int64(4*w.ttl)))
	}
	for i := range 3 + w.rnd.IntN(4) {
		n := w.draft()
		n.Node = fmt.Sprintf("n%d", i)
		for _, earlier := range sub.Tasks {
			if w.rnd.IntN(2) == 0 {
				n.Needs = append(n.Needs, task.Edge{Needs: earlier.ID, Kind: task.OnSuccess})
			}
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	w.jobs = append(w.jobs, sub.Job.ID)
	w.enqueue(sub)
}

func (w *world) enqueue(sub store.Submission) {
	for i := range sub.Tasks {
		w.result(" " + w.label(sub.Tasks[i].ID))
	}
	again := w.rnd.IntN(5) == 0
	got, err := w.mem.Enqueue(context.Background(), ns, nil, sub)
	if err == nil && again {
		got, err = w.mem.Enqueue(context.Background(), ns, nil, sub)
	}
	if err != nil {
		w.failf("enqueue: %v", err)
	}
	for _, g := range got {
		w.acked[g.ID] = true
		w.tasks = append(w.tasks, g.ID)
	}
}

// meddle is what operators do.
func (w *world) meddle() {
	r := w.rnd
	who := store.Audit{By: "op", Reason: "to see"}
	pick := w.tasks[r.IntN(len(w.tasks))]
	if running := w.list(task.Running); len(running) > 0 && r.IntN(4) > 0 {
		pick = running[r.IntN(len(running))].ID
	}
	switch r.IntN(10) {
	case 0, 1:
		w.operate(store.CancelTask{Audit: who, Task: pick})
	case 2, 3:
		w.operate(store.CancelTask{Audit: who, Task: pick, Force: true})
	case 4, 5:
		w.operate(store.RetryTask{Audit: who, Task: pick})
	case 6:
		w.operate(store.UnblockTask{Audit: who, Task: pick, Input: json.RawMessage(`"go on"`)})
	case 7:
		w.operate(store.CancelJob{Audit: who, Job: w.jobs[r.IntN(len(w.jobs))]})
	case 8:
		q := queues[r.IntN(2)]
		w.operate(store.PauseQueue{Audit: who, Queue: q})
		w.put(&item{name: fmt.Sprintf("resume %s %d", q, w.passages), after: time.Duration(r.Int64N(int64(2 * w.ttl))), do: func() {
			w.operate(store.ResumeQueue{Audit: who, Queue: q})
		}})
	default:
		w.operate(store.DeleteTask{Audit: who, Task: pick})
	}
}

func (w *world) list(state task.State) []task.Task {
	got, _, err := w.mem.List(context.Background(), ns, store.Filter{States: []task.State{state}, Limit: store.MaxLimit})
	if err != nil {
		w.failf("list tasks: %v", err)
	}
	return got
}

// operate carries out a command and notes whose lease it took.
func (w *world) operate(cmd store.Command) {
	running := w.list(task.Running)
	res, err := w.mem.Operate(context.Background(), ns, cmd)
	if err != nil {
		w.failf("operate: %v", err)
		return
	}
	w.result(fmt.Sprintf(" %T", cmd))
	switch cmd := cmd.(type) {
	case store.CancelTask:
		w.result(fmt.Sprintf(" %s force=%v→%s", w.label(cmd.Task), cmd.Force, res[0].State))
	case store.RetryTask:
		w.result(fmt.Sprintf(" %s→%s", w.label(cmd.Task), res[0].State))
		w.retried = true
	case store.UnblockTask:
		w.result(fmt.Sprintf(" %s→%s", w.label(cmd.Task), res[0].State))
	case store.DeleteTask:
		w.result(fmt.Sprintf(" %s %v", w.label(cmd.Task), res[0].Err == nil))
		if res[0].Err == nil {
			w.deleted[cmd.Task] = true
		}
	}
	snap, err := w.mem.Snapshot(context.Background(), ns)
	if err != nil {
		w.failf("snapshot: %v", err)
		return
	}
	stands := map[leaseKey]bool{}
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; t.State == task.Running {
			stands[leaseKey{t.ID, t.Epoch}] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range running {
		key := leaseKey{running[i].ID, running[i].Epoch}
		if w.leases[key] != nil && (!stands[key] || w.gen != snap.Generation) {
			w.leases[key].revoked = true
		}
	}
	w.gen = snap.Generation
}

// fell kills a process, and starts another one in its place.
func (w *world) fell(p *process) {
	if p.dead.Load() || p.over.Load() {
		return
	}
	w.result(" kills " + p.name)
	w.kill(p, w.declare)
	w.after(p.place)
}

// pause stops a process as its owner would, and starts it again.
func (w *world) pause(p *process) {
	if p.dead.Load() || p.over.Load() || p.frozen.After(time.Now()) {
		return
	}
	w.result(" stops " + p.name)
	w.halt(p)
	w.after(p.place)
}

// cutOff puts the store out of everybody's reach, for less than a lease lasts
// or for longer.
func (w *world) cutOff() {
	end := time.Now().Add(w.ttl/4 + time.Duration(w.rnd.Int64N(int64(2*w.ttl))))
	if end.After(w.outage) {
		w.outage = end
	}
	w.result(fmt.Sprintf(" cuts all off until %v", w.outage.Sub(w.begun)))
}

// halt stops a process. Its patience is short: no call takes long from now on.
func (w *world) halt(p *process) {
	p.stopping = true
	w.mu.Lock()
	for _, it := range w.waiting {
		if it.proc == p && it.call && it.admitted && time.Until(it.at) > time.Second {
			it.at = time.Now().Add(time.Second)
		}
	}
	w.mu.Unlock()
	p.stop()
}

// after starts a process at a place where there is none any more.
func (w *world) after(place int) {
	old := w.procs[place]
	var start func()
	later := func(d time.Duration) {
		w.put(&item{name: "start after " + old.name, after: d, ready: old.over.Load, do: start})
	}
	start = func() {
		switch rest := time.Until(w.outage); {
		case w.procs[place] != old:
		case rest > 0 && !w.calm:
			later(rest)
		default:
			w.start(place)
		}
	}
	later(time.Duration(w.rnd.Int64N(int64(w.ttl))))
}

// freeze stops a process where it stands, often for longer than its leases
// last: it does not know of it when it goes on.
func (w *world) freeze() {
	p := w.anybody()
	if p.dead.Load() || p.stopping {
		return
	}
	d := w.ttl/2 + time.Duration(w.rnd.Int64N(int64(2*w.ttl)))
	w.result(fmt.Sprintf(" freezes %s for %v", p.name, d))
	p.frozen = time.Now().Add(d)
	p.trouble = p.frozen
}
