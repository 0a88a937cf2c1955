package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var walkScenes = []scene{
	{"a random walk of all operations keeps the invariants (seed 1)", func(e *env) { walk(e, 1) }},
	{"a random walk of all operations keeps the invariants (seed 2)", func(e *env) { walk(e, 2) }},
	{"a random walk of all operations keeps the invariants (seed 3)", func(e *env) { walk(e, 3) }},
	{"a random walk of all operations keeps the invariants (seed 4)", func(e *env) { walk(e, 4) }},
}

// walker wanders through a store.
type walker struct {
	*env
	rand   *rand.Rand
	ids    []task.ID
	graphs []*graph
	held   []store.Claimed // leases handed out, lost ones among them
	steps  map[string]string
	epochs map[task.ID]int64
	states map[task.ID]task.State
}

// walk plays random operations, most of them sensible, and looks at the store
// now and then.
func walk(e *env, seed uint64) {
	w := &walker{
		env: e, rand: rand.New(rand.NewPCG(seed, seed)),
		steps: map[string]string{}, epochs: map[task.ID]int64{}, states: map[task.ID]task.State{},
	}
	for i := range 3 * e.h.Repeat {
		what := w.step()
		if i%20 == 0 || e.Failed() {
			w.look()
		}
		if e.Failed() {
			e.Fatalf("operation %d of seed %d: %s", i, seed, what)
		}
	}
	w.look()
}

// pick returns a random element, or the zero value of an empty list.
func pick[T any](w *walker, from []T) T {
	var zero T
	if len(from) == 0 {
		return zero
	}
	return from[w.rand.IntN(len(from))]
}

// options returns random properties for a draft.
func (w *walker) options() []opt {
	opts := []opt{attempts(1000), priority(1 + w.rand.IntN(3)), queue(fmt.Sprint("q", w.rand.IntN(3)))}
	if w.rand.IntN(2) == 0 {
		opts = append(opts, key(fmt.Sprint("k", w.rand.IntN(3)), 1+w.rand.IntN(2)))
	}
	if w.rand.IntN(4) == 0 {
		opts = append(opts, after(time.Duration(w.rand.IntN(5))*time.Second))
	}
	if w.rand.IntN(4) == 0 {
		opts = append(opts, expires(time.Duration(1+w.rand.IntN(30))*time.Second))
	}
	return opts
}

// step does one thing and says what.
func (w *walker) step() string {
	switch w.rand.IntN(16) {
	case 0, 1:
		w.ids = append(w.ids, w.one(w.options()...))
		return "enqueue"
	case 2:
		return w.enqueueJob()
	case 3, 4, 5:
		got := w.a.claim(limit(1+w.rand.IntN(4)), slots(32, 0)).Tasks
		w.held = append(w.held, got...)
		return fmt.Sprintf("claim of %v", claimedIDs(got))
	case 6, 7, 8, 9:
		return w.end()
	case 10:
		return w.showSomething()
	case 11:
		w.pass(time.Duration(w.rand.IntN(2000)) * time.Millisecond)
		return "time"
	case 12:
		if c := pick(w, w.held); w.rand.IntN(2) == 0 {
			w.a.beat(c.Lease)
		}
		return fmt.Sprintf("reap of %v", w.reap().Reaped)
	default:
		return w.command()
	}
}

func (w *walker) enqueueJob() string {
	g := w.graph("a", "b", "c: a", "d: a *b", "e: !a", "f: c d")
	for _, node := range []string{"a", "b", "c", "d", "e", "f"} {
		g.with(node, w.options()...)
	}
	g.submit()
	w.graphs = append(w.graphs, g)
	w.ids = append(w.ids, g.all("a", "b", "c", "d", "e", "f")...)
	return "enqueue of a job"
}

func (w *walker) end() string {
	var fs []store.Finish
	what := "finish"
	for range 1 + w.rand.IntN(3) {
		c := pick(w, w.held)
		o := pick(w, outcomes)
		f := o.end(c)
		if f.Delay == time.Minute {
			f.Delay = time.Second
		}
		fs = append(fs, f)
		what += fmt.Sprintf(" %v with %s;", c.Task.ID, o.name)
	}
	w.finishAll(fs...)
	return what
}

func (w *walker) showSomething() string {
	c := pick(w, w.held)
	name := fmt.Sprint("s", w.rand.IntN(3))
	value := fmt.Sprint(w.rand.IntN(2))
	rs := []store.Record{step(c, name, value), try(c, name, 1), sleep(c, "nap", time.Second), start(c, "start", w.draft(w.options()...))}
	w.recordAll(pick(w, rs))
	return fmt.Sprintf("record of %v", c.Task.ID)
}

func (w *walker) command() string {
	id := pick(w, w.ids)
	cmds := []store.Command{
		cancelOf(id), forceOf(id), retryOf(id), retryOf(id),
		store.UnblockTask{Task: id},
		store.UnblockTask{Task: id},
		store.DeleteTask{Task: id},
		store.PauseQueue{Queue: "q0"},
		store.ResumeQueue{Queue: "q0"},
		store.PauseQueue{Queue: "q1"},
		store.ResumeQueue{Queue: "q1"},
	}
	if len(w.graphs) > 0 && w.rand.IntN(4) == 0 {
		cmds = []store.Command{store.CancelJob{Job: pick(w, w.graphs).sub.Job.ID}}
	}
	cmd := pick(w, cmds)
	got := w.env.command(cmd)
	if d, ok := cmd.(store.DeleteTask); ok && got.Err == nil {
		w.forget(d.Task)
	}
	return fmt.Sprintf("%T %+v: %v", cmd, cmd, got.Err)
}

// look verifies the store and compares it with the last look.
func (w *walker) look() {
	w.Helper()
	w.verify()
	snap := w.snap()
	for _, t := range snap.Tasks {
		if t.Epoch < w.epochs[t.ID] {
			w.Errorf("I4 the epoch of %v went from %d to %d", t.ID, w.epochs[t.ID], t.Epoch)
		}
		if w.states[t.ID] == task.Succeeded && t.State != task.Succeeded {
			w.Errorf("I3 task %v left %s for %s", t.ID, w.states[t.ID], t.State)
		}
		w.epochs[t.ID], w.states[t.ID] = t.Epoch, t.State
	}
	for _, s := range snap.Steps {
		name := fmt.Sprint(s.TaskID, s.Name)
		if s.State != task.StepCompleted {
			continue
		}
		value := fmt.Sprint(string(s.Value), s.WakeAt, s.CompletedAt)
		if old, ok := w.steps[name]; ok && old != value {
			w.Errorf("I6 the step %s changed from %s to %s", name, old, value)
		}
		w.steps[name] = value
	}
}
