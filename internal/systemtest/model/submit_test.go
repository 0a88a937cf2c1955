package model_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

// Drafts use these small sets, so that tasks often share values.
var (
	modelTypes  = []string{"acme.test.alpha.v1", "acme.test.beta.v1"}
	modelQueues = []string{"q0", "q1", "q2"}
	edgeKinds   = []task.EdgeKind{task.OnSuccess, task.OnSuccess, task.OnFailed, task.OnFailed, task.OnDone}
	delays      = []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 7 * time.Second}
	lifetimes   = []time.Duration{time.Millisecond, time.Second, 4 * time.Second, 30 * time.Second}
)

// number draws from 0 to n-1; shrinking leads to 0.
func (p *pair) number(n int, label string) int {
	return rapid.IntRange(0, n-1).Draw(p.T, label)
}

// rarely returns true once in n times.
func (p *pair) rarely(n int, label string) bool { return p.number(n, label) == n-1 }

// pick draws an element of a non-empty list.
func pick[E any](p *pair, list []E, label string) E {
	return list[p.number(len(list), label)]
}

// newID returns the next ID. IDs do not depend on chance, and they grow.
func (p *pair) newID() (id task.ID) {
	p.drawn++
	ms := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint64(id[:8], ms<<16)
	binary.BigEndian.PutUint64(id[8:], p.drawn)
	return id
}

// newLeaseID returns the next lease ID.
func (p *pair) newLeaseID() (id task.LeaseID) {
	p.drawn++
	binary.BigEndian.PutUint64(id[8:], p.drawn)
	return id
}

// draft draws a task to submit.
func (p *pair) draft() task.New {
	n := task.New{
		ID: p.newID(), Type: pick(p, modelTypes, "type"), Queue: pick(p, modelQueues, "queue"),
		Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, p.drawn)), SchemaVersion: 1, Priority: task.DefaultPriority,
		MaxAttempts: 1000, MaxRepairs: task.DefaultMaxRepairs,
		Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
	}
	if p.rarely(3, "with a priority") {
		n.Priority = 1 + p.number(task.MaxPriority, "priority")
	}
	if p.rarely(3, "with a key") {
		n.ConcurrencyKey, n.ConcurrencyLimit = fmt.Sprint("key", p.number(2, "key")), 1+p.number(2, "limit")
	}
	if p.rarely(4, "delayed") {
		n.Delay = pick(p, delays, "delay")
	} else if p.rarely(8, "at an instant") {
		n.At = time.Now().Add(pick(p, delays, "wish") - time.Second)
	}
	if p.rarely(4, "with a deadline") {
		n.ExpireAfter = pick(p, lifetimes, "lifetime")
	}
	if p.rarely(4, "labelled") {
		n.Labels = map[string]string{"team": pick(p, []string{"red", "blue"}, "team")}
		n.Metadata = map[string]string{"trace": "1"}
	}
	if p.rarely(4, "of a newer schema") {
		n.SchemaVersion = 2
	}
	if p.rarely(4, "with a cost of its own") {
		n.MaxCost, n.MaxNoProgress = int64(1+p.number(5, "cost limit")), 7
	}
	n.CleanupWhenCancelled = p.rarely(3, "cleans up")
	p.ids = append(p.ids, n.ID)
	return n
}

func (p *pair) enqueueSome(*rapid.T) {
	var sub store.Submission
	for range 1 + p.number(4, "tasks") {
		n := p.draft()
		if p.rarely(3, "idempotent") {
			n.IdempotencyKey = fmt.Sprint("once", p.number(3, "idempotency key"))
		}
		n.Coalesce = n.IdempotencyKey+n.ConcurrencyKey != "" && p.rarely(3, "coalesces")
		sub.Tasks = append(sub.Tasks, n)
	}
	p.submit(sub)
}

// enqueueJob submits a random graph: each node may need any earlier ones.
func (p *pair) enqueueJob(*rapid.T) {
	sub := store.Submission{Job: &task.NewJob{ID: p.newID(), Name: pick(p, []string{"import", "export"}, "name")}}
	if p.rarely(3, "with a key") {
		sub.Job.IdempotencyKey = fmt.Sprint("job", p.number(3, "job key"))
	}
	if p.rarely(4, "with a budget") {
		sub.Job.Budget.MaxDuration = pick(p, lifetimes, "duration")
	}
	if p.rarely(3, "with a total of attempts") {
		sub.Job.Budget.MaxTotalAttempts = 1 + p.number(4, "total")
	}
	if p.rarely(3, "with a total cost") {
		sub.Job.Budget.MaxCost = int64(1 + p.number(6, "total cost"))
	}
	if p.rarely(4, "with limits of each task") {
		sub.Job.Budget.MaxRepairs, sub.Job.Budget.MaxNoProgress = 1, 3
	}
	for i := range 2 + p.number(5, "nodes") {
		n := p.draft()
		n.Node = fmt.Sprint("n", i)
		n.AllowFailure = p.rarely(4, "may fail")
		for j := range i {
			if p.rarely(2, "edge") {
				n.Needs = append(n.Needs, task.Edge{Needs: sub.Tasks[j].ID, Kind: pick(p, edgeKinds, "kind")})
			}
		}
		sub.Tasks = append(sub.Tasks, n)
	}
	p.jobs = append(p.jobs, sub.Job.ID)
	p.submit(sub)
}

// enqueueAgain repeats a submission, like a caller whose reply was lost.
func (p *pair) enqueueAgain(*rapid.T) {
	if len(p.subs) > 0 {
		p.enqueue(pick(p, p.subs, "submission"))
	}
}

func (p *pair) submit(sub store.Submission) {
	p.subs = append(p.subs, sub)
	p.enqueue(sub)
}

func (p *pair) enqueue(sub store.Submission) {
	ask(p, describe("Enqueue", sub), func(_ int, s store.Store) ([]store.Enqueued, error) {
		return s.Enqueue(p.Context(), namespace, nil, sub)
	})
}

// audit returns the operator of a command.
func (p *pair) audit() store.Audit {
	return pick(p, []store.Audit{{}, {By: "ann"}, {By: "bob", Reason: "tired of it"}}, "audit")
}

// operateTasks applies one or two commands to tasks.
func (p *pair) operateTasks(*rapid.T) {
	if len(p.ids) == 0 {
		return
	}
	var cmds []store.Command
	for range 1 + p.number(2, "commands") {
		a, id := p.audit(), pick(p, p.ids, "task")
		if p.rarely(8, "a rerun") {
			cmds = append(cmds, store.RerunTask{Audit: a, Task: id, New: p.draft(), StepsBelow: pick(p, []int{0, 1, 2, 60}, "steps"), KeepSteps: p.rarely(2, "kept steps")})
			continue
		}
		cmds = append(cmds, pick(p, []store.Command{
			store.RetryTask{Audit: a, Task: id, KeepSteps: p.rarely(2, "kept steps")},
			store.UnblockTask{Audit: a, Task: id},
			store.CancelTask{Audit: a, Task: id},
			store.CancelTask{Audit: a, Task: id, Force: true, Spare: p.rarely(2, "spared")},
			store.CancelTask{Audit: a, Task: id, Abandon: true},
			store.RetryTask{Audit: a, Task: id, Cleanup: true},
			store.RetryTask{Audit: a, Task: id, Cleanup: true},
			store.DeleteTask{Audit: a, Task: id},
			store.RescheduleTask{Audit: a, Task: id},
			store.RescheduleTask{Audit: a, Task: id, At: time.Now().Add(pick(p, delays, "reschedule"))},
			store.UnblockTask{Audit: a, Task: id, Input: json.RawMessage(`"yes"`)},
			store.PauseTask{Audit: a, Task: id},
			store.ResumeTask{Audit: a, Task: id},
			store.ResumeTask{Audit: a, Task: pick(p, p.ids, "paused task")},
			store.UnblockTask{Audit: a, Task: id, Input: json.RawMessage(`"yes"`), Ask: "flight"},
			p.signal(a, id),
			p.signal(a, id),
			store.ReplaceInput{Audit: a, Task: id, Input: json.RawMessage(pick(p, []string{`1`, `2`}, "input")), SchemaVersion: 1},
			store.ReplaceInput{Audit: a, Task: id, Input: json.RawMessage(`3`), SchemaVersion: 1 + p.number(2, "version"), Repair: pick(p, p.ids, "repair"), OldSchema: p.number(2, "old version")},
		}, "command"))
	}
	p.operate(cmds...)
}

// operateRest applies a command to a job, a queue or the store.
func (p *pair) operateRest(*rapid.T) {
	a, q := p.audit(), pick(p, modelQueues, "queue")
	cmds := []store.Command{
		store.ResumeQueue{Audit: a, Queue: q},
		store.ResumeQueue{Audit: a, Queue: q},
		store.PauseQueue{Audit: a, Queue: q},
		store.PauseType{Audit: a, Type: pick(p, modelTypes, "type")},
		store.ResumeType{Audit: a, Type: pick(p, modelTypes, "type")},
		store.ResumeType{Audit: a, Type: pick(p, modelTypes, "type")},
		store.CancelJob{Audit: a, Job: task.ID{1}}, // no such job
	}
	if len(p.jobs) > 0 {
		job := pick(p, p.jobs, "job")
		cmds = append(cmds, store.CancelJob{Audit: a, Job: job},
			store.RaiseBudget{Audit: a, Job: job, AddAttempts: 1 + p.number(4, "attempts")},
			store.RaiseBudget{Audit: a, Job: job, AddCost: int64(1 + p.number(9, "cost"))},
			store.RaiseBudget{Audit: a, Job: job, AddAttempts: 3, AddCost: 9, KeepSteps: p.rarely(2, "kept steps")})
	}
	if p.rarely(10, "restored") {
		cmds = []store.Command{store.Restored{Audit: a, EndLeases: p.rarely(2, "end leases")}}
	}
	p.operate(pick(p, cmds, "command"))
}

func (p *pair) operate(cmds ...store.Command) {
	before, _ := p.mem.Tasks(p.Context(), namespace, p.ids...)
	got := ask(p, fmt.Sprintf("Operate %+v", cmds), func(_ int, s store.Store) ([]store.CommandResult, error) {
		return s.Operate(p.Context(), namespace, cmds...)
	})
	p.met.countCommands(before, cmds, got, func(id task.ID) []task.Step {
		h, _ := p.mem.History(p.Context(), namespace, id)
		return h.Steps
	})
}

// readSome compares the readers of one task and of lists.
func (p *pair) readSome(*rapid.T) {
	if len(p.ids) > 0 {
		id := pick(p, p.ids, "task")
		askAs(p, "History", func(_ int, s store.Store) (store.History, error) {
			return s.History(p.Context(), namespace, id)
		}, historyComparable)
	}
	f := store.Filter{Limit: 1 + p.number(5, "page")}
	switch p.number(6, "filter") {
	case 1:
		f.States = []task.State{pick(p, task.States(), "state"), pick(p, task.States(), "other state")}
	case 2:
		f.Types = []string{pick(p, modelTypes, "type")}
	case 3:
		f.Queue = pick(p, modelQueues, "queue")
	case 4:
		f.Labels = map[string]string{"team": "red"}
	case 5:
		if len(p.jobs) > 0 {
			f.Job = pick(p, p.jobs, "job")
		}
	}
	ask(p, describe("List", f), func(_ int, s store.Store) ([][]task.ID, error) { return p.pages(s, f) })
	ask(p, "Jobs", func(_ int, s store.Store) ([]task.Job, error) {
		jobs, _, err := s.Jobs(p.Context(), namespace, store.JobFilter{Limit: f.Limit})
		return jobs, err
	})
}

// pages reads a list to its end. Cursors belong to each store.
func (p *pair) pages(s store.Store, f store.Filter) (pages [][]task.ID, err error) {
	for {
		tasks, next, err := s.List(p.Context(), namespace, f)
		if err != nil {
			return nil, err
		}
		var ids []task.ID
		for _, t := range tasks {
			ids = append(ids, t.ID)
		}
		pages = append(pages, ids)
		if f.After = next; next == "" {
			return pages, nil
		}
	}
}
