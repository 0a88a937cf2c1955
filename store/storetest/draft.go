package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The task types of the suite. Workers know both unless a claim says otherwise.
const (
	alpha = "acme.test.alpha.v1"
	beta  = "acme.test.beta.v1"
)

// opt changes a draft.
type opt func(*task.New)

func typed(name string) opt       { return func(n *task.New) { n.Type = name } }
func queue(name string) opt       { return func(n *task.New) { n.Queue = name } }
func priority(p int) opt          { return func(n *task.New) { n.Priority = p } }
func after(d time.Duration) opt   { return func(n *task.New) { n.Delay = d } }
func at(t time.Time) opt          { return func(n *task.New) { n.At = t } }
func expires(d time.Duration) opt { return func(n *task.New) { n.ExpireAfter = d } }
func once(key string) opt         { return func(n *task.New) { n.IdempotencyKey = key } }
func input(raw string) opt        { return func(n *task.New) { n.Input = json.RawMessage(raw) } }
func attempts(n int) opt          { return func(t *task.New) { t.MaxAttempts = n } }
func labels(kv ...string) opt     { return func(n *task.New) { n.Labels = pairs(kv) } }

func key(name string, limit int) opt {
	return func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = name, limit }
}

func pairs(kv []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return m
}

// draft returns a task to submit: plain, due at once, unless opts say otherwise.
func (e *env) draft(opts ...opt) task.New {
	n := task.New{
		ID: e.newID(), Type: alpha, Queue: task.DefaultQueue,
		Input: json.RawMessage(`{"n":1}`), SchemaVersion: 1, Priority: task.DefaultPriority,
		MaxAttempts: task.DefaultMaxAttempts, MaxRepairs: task.DefaultMaxRepairs,
		Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
	}
	for _, o := range opts {
		o(&n)
	}
	return n
}

// drafts returns n tasks to submit.
func (e *env) drafts(n int, opts ...opt) []task.New {
	out := make([]task.New, n)
	for i := range out {
		out[i] = e.draft(opts...)
	}
	return out
}

// submit stores a submission and returns the store's answer.
func (e *env) submit(sub store.Submission) []store.Enqueued {
	e.Helper()
	got, err := e.s.Enqueue(e.Context(), e.ns, nil, sub)
	e.require(err == nil, "Enqueue of %d tasks: %v", len(sub.Tasks), err)
	e.require(len(got) == len(sub.Tasks), "Enqueue of %d tasks answered %d", len(sub.Tasks), len(got))
	for _, q := range got {
		e.remember(q.ID)
	}
	return got
}

// enqueue stores new drafts and returns their IDs.
func (e *env) enqueue(drafts ...task.New) []task.ID {
	e.Helper()
	var ids []task.ID
	for i, q := range e.submit(store.Submission{Tasks: drafts}) {
		e.require(q.Disposition == store.DispositionCreated && q.ID == drafts[i].ID, "Enqueue answered %v for the new task %v", q, drafts[i].ID)
		ids = append(ids, q.ID)
	}
	return ids
}

// one enqueues a task.
func (e *env) one(opts ...opt) task.ID {
	e.Helper()
	return e.enqueue(e.draft(opts...))[0]
}

// many enqueues n tasks in one submission.
func (e *env) many(n int, opts ...opt) []task.ID {
	e.Helper()
	return e.enqueue(e.drafts(n, opts...)...)
}

// graph is a job with its tasks by node name.
type graph struct {
	e     *env
	sub   store.Submission
	nodes map[string]task.ID
}

// graph drafts a job. Each node is written "name" or "name: needs…". A need is "x" (x succeeded), "!x" (x failed),
// "*x" (x ended), "-x" (undoes x) or "+x" (runs after the undo of x).
func (e *env) graph(nodes ...string) *graph {
	e.Helper()
	g := &graph{e: e, nodes: map[string]task.ID{}}
	g.sub.Job = &task.NewJob{ID: e.newID(), Name: "graph"}
	for _, spec := range nodes {
		name, needs, _ := strings.Cut(spec, ":")
		n := e.draft()
		n.Node = name
		for _, need := range strings.Fields(needs) {
			kind := task.OnSuccess
			switch need[0] {
			case '!':
				kind = task.OnFailed
			case '*':
				kind = task.OnDone
			case '-':
				kind = task.OnUndo
			case '+':
				kind = task.OnUndone
			}
			target, ok := g.nodes[strings.TrimLeft(need, "!*-+")]
			e.require(ok, "graph: %q needs %q, which is not defined before it", name, need)
			n.Needs = append(n.Needs, task.Edge{Needs: target, Kind: kind})
		}
		g.nodes[name] = n.ID
		g.sub.Tasks = append(g.sub.Tasks, n)
	}
	return g
}

// with changes the draft of one node.
func (g *graph) with(node string, opts ...opt) *graph {
	for i := range g.sub.Tasks {
		if g.sub.Tasks[i].Node == node {
			for _, o := range opts {
				o(&g.sub.Tasks[i])
			}
		}
	}
	return g
}

// submit stores the job.
func (g *graph) submit() *graph {
	g.e.Helper()
	g.e.submit(g.sub)
	return g
}

// job submits a graph.
func (e *env) job(nodes ...string) *graph {
	e.Helper()
	return e.graph(nodes...).submit()
}

// id returns the task of a node.
func (g *graph) id(node string) task.ID {
	g.e.Helper()
	id, ok := g.nodes[node]
	g.e.require(ok, "graph has no node %q", node)
	return id
}

// all returns the ids of nodes.
func (g *graph) all(nodes ...string) []task.ID {
	g.e.Helper()
	var ids []task.ID
	for _, n := range nodes {
		ids = append(ids, g.id(n))
	}
	return ids
}

// read returns the job as readers see it.
func (g *graph) read() task.Job {
	g.e.Helper()
	job, err := store.JobOf(g.e.Context(), g.e.s, g.e.ns, g.sub.Job.ID)
	g.e.require(err == nil, "Job(%v): %v", g.sub.Job.ID, err)
	return job
}
