package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var walkCases = []testCase{
	{"random verbs keep the invariants (seed 1)", func(e *env) { walk(e, 1) }},
	{"random verbs keep the invariants (seed 2)", func(e *env) { walk(e, 2) }},
	{"random verbs keep the invariants (seed 3)", func(e *env) { walk(e, 3) }},
	{"random verbs keep the invariants (seed 4)", func(e *env) { walk(e, 4) }},
	{"the same IDs in another namespace change no answer and no row (seed 1)", func(e *env) { walkBeside(e, 1) }},
	{"the same IDs in another namespace change no answer and no row (seed 2)", func(e *env) { walkBeside(e, 2) }},
}

// walk runs random verbs, most of them sensible, and verifies the store from time to time.
func walk(e *env, seed uint64) {
	w := e.walker(seed, seed)
	for i := range 3 * e.h.Repeat {
		did, pause := w.step()
		e.pass(pause)
		if i%20 == 0 || e.Failed() {
			w.look()
		}
		e.require(!e.Failed(), "verb %d of seed %d: %s", i, seed, did)
	}
	w.look()
}

// walkBeside runs the same random verbs in two stores. In one of them, another namespace draws the same IDs and runs
// other verbs.
func walkBeside(e *env, seed uint64) {
	alone, beside := e.on(e.h.Open(e.T), namespace), e.in(otherNamespace)
	alone.follow(e)
	beside.follow(e)
	w, same, other := e.walker(seed, seed), alone.walker(seed, seed), beside.walker(seed, seed+100)
	for i := range 2 * e.h.Repeat {
		began := e.now()
		did, pause := w.step()
		want, _ := same.step()
		e.require(did == want, "verb %d of seed %d differs beside the same IDs:\n got %s\nwant %s", i, seed, did, want)
		other.step()
		e.require(e.now().Equal(began), "the verbs take time, so that instants cannot be compared")
		if i%20 == 0 {
			got, want := e.snap(), alone.snap()
			got.Generation, want.Generation = "", ""
			e.sameJSON("what is stored beside the same IDs", got, want)
			e.sameJSON("the overview", e.overview(everyPart), alone.overview(everyPart))
			filters := mapped(w.graphs, func(g *graph) store.Filter { return store.Filter{Job: g.sub.Job.ID} })
			for _, f := range append(filters, store.Filter{Queue: "q0"}, store.Filter{Labels: map[string]string{"team": "1"}}, store.Filter{States: []task.State{task.Failed}}) {
				f.Limit = store.MaxLimit
				e.lists(f, mapped(of(want.Tasks, func(t task.Task) bool { return f.Selects(&t) }), idOf)...)
			}
			for _, id := range w.ids[max(0, len(w.ids)-5):] {
				got, err := e.s.History(e.Context(), e.ns, id)
				want, err2 := alone.s.History(e.Context(), e.ns, id)
				e.equal("the history", fmt.Sprint(printed(got), err), fmt.Sprint(printed(want), err2))
			}
			e.require(!e.Failed(), "verb %d of seed %d: %s", i, seed, did)
		}
		e.pass(pause)
	}
}

// walker runs random verbs. Walkers with the same order draw IDs at the same verbs, whatever they do with the IDs.
type walker struct {
	*env
	order  *rand.Rand // determines the next verb and its time
	rand   *rand.Rand // everything else
	ids    []task.ID
	graphs []*graph
	held   []store.Claimed // granted leases, including lost ones
	steps  map[string]string
	epochs map[task.ID]int64
	states map[task.ID]task.State
}

func (e *env) walker(order, rest uint64) *walker {
	return &walker{
		env: e, order: rand.New(rand.NewPCG(order, order)), rand: rand.New(rand.NewPCG(rest, rest)),
		steps: map[string]string{}, epochs: map[task.ID]int64{}, states: map[task.ID]task.State{},
	}
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
	opts := []opt{attempts(1000), priority(1 + w.rand.IntN(3)), queue(fmt.Sprint("q", w.rand.IntN(3))), labels("team", fmt.Sprint(w.rand.IntN(3)))}
	if w.rand.IntN(2) == 0 {
		opts = append(opts, key(fmt.Sprint("k", w.rand.IntN(3)), 1+w.rand.IntN(2)))
	}
	if w.rand.IntN(4) == 0 {
		opts = append(opts, after(time.Duration(w.rand.IntN(5))*time.Second))
	}
	if w.rand.IntN(4) == 0 {
		opts = append(opts, expires(time.Duration(1+w.rand.IntN(30))*time.Second))
	}
	if w.rand.IntN(4) == 0 {
		opts = append(opts, input(fmt.Sprintf("%q", strings.Repeat(fmt.Sprint(w.rand.IntN(10)), 5000))))
	}
	return opts
}

// step runs one verb. It returns a description of the verb and its answer, and the pause after it.
func (w *walker) step() (did string, pause time.Duration) {
	w.Helper()
	switch w.order.IntN(17) {
	case 0, 1:
		return w.enqueueSome(), 0
	case 2:
		return w.enqueueJob(), 0
	case 3, 4, 5:
		got := w.a.claim(limit(1+w.rand.IntN(4)), slots(32, 0))
		w.held = append(w.held, got.Tasks...)
		return "claim: " + printed(got), 0
	case 6, 7, 8, 9:
		return w.end(), 0
	case 10, 11:
		return w.recordSomething(), 0
	case 12:
		return "time", time.Duration(w.order.IntN(2000)) * time.Millisecond
	case 13:
		c := pick(w, w.held)
		if w.rand.IntN(2) == 0 {
			return fmt.Sprintf("reap: %v", w.reap()), 0
		}
		return fmt.Sprintf("heartbeat of %v: %v", c.Task.ID, w.a.beat(c.Lease)), 0
	default:
		return w.command(), 0
	}
}

// printed formats an answer without the fields that differ between stores.
func printed(answer any) string {
	if r, ok := answer.(store.ClaimResult); ok {
		r.Tasks = slices.Clone(r.Tasks)
		for i := range r.Tasks {
			r.Tasks[i].Lease.Generation = ""
		}
		answer = r
	}
	text, err := json.Marshal(answer)
	return fmt.Sprint(string(text), err)
}

// enqueueSome submits two tasks, of which the second may need the first.
func (w *walker) enqueueSome() string {
	x, y := w.draft(w.options()...), w.draft(w.options()...)
	switch w.rand.IntN(3) {
	case 0:
		y.Needs = []task.Edge{{Needs: x.ID, Kind: pick(w, []task.EdgeKind{task.OnSuccess, task.OnFailed, task.OnDone})}}
	case 1:
		y.IdempotencyKey = fmt.Sprint(w.rand.IntN(30))
	}
	got := w.submit(store.Submission{Tasks: []task.New{x, y}})
	w.ids = append(w.ids, got[0].ID, got[1].ID)
	return fmt.Sprintf("enqueue: %v", got)
}

func (w *walker) enqueueJob() string {
	g := w.graph(pick(w, [][]string{{"a", "b", "c: a", "d: a *b", "e: !a", "f: c d"}, {"a", "b: a", "c", "d: c", "e: *c !b", "f: e"}})...)
	nodes := []string{"a", "b", "c", "d", "e", "f"}
	for _, node := range nodes {
		g.with(node, w.options()...)
	}
	g.submit()
	w.graphs = append(w.graphs, g)
	w.ids = append(w.ids, g.all(nodes...)...)
	return "enqueue of a job"
}

func (w *walker) end() string {
	var fs []store.Finish
	did := "finish"
	for range 1 + w.rand.IntN(3) {
		c, o := pick(w, w.held), pick(w, outcomes)
		f := o.end(c)
		f.Delay = min(f.Delay, time.Second)
		fs = append(fs, f)
		did += fmt.Sprintf(" %v with %s;", c.Task.ID, o.name)
	}
	for _, got := range w.finishAll(fs...) {
		did += fmt.Sprintf(" %s %s %v %s", got.State, got.Waiting, got.Err, printed(got.Overruled))
	}
	return did
}

func (w *walker) recordSomething() string {
	c, child := pick(w, w.held), w.draft(w.options()...)
	name, value := fmt.Sprint("s", w.rand.IntN(3)), fmt.Sprint(w.rand.IntN(2))
	r := pick(w, []store.Record{
		step(c, name, value), step(c, name, value), try(c, name, 1), sleep(c, "nap", time.Second), start(c, "start", child),
		wait(c, fmt.Sprint("w", w.rand.IntN(3)), fmt.Sprint("sig", w.rand.IntN(2)), time.Duration(w.rand.IntN(3))*time.Second),
		wait(c, "w3", "sig0", 0), withdraw(c, "w3", "sig0"), called(c, fmt.Sprint("call", w.rand.IntN(2)), 1+w.rand.IntN(2), w.rand.IntN(2), child),
	})
	got := w.recordAll(r)[0]
	return fmt.Sprintf("record of %v: %s %v %v", c.Task.ID, printed(got.Step), got.Enqueued, got.Err)
}

func (w *walker) command() string {
	id := pick(w, w.ids)
	cmds := []store.Command{
		cancelOf(id), forceOf(id), retryOf(id), retryOf(id), unblockOf(id, ""), unblockOf(id, `1`), deleteOf(id),
		pauseOf("q0"), resumeOf("q0"), pauseOf("q1"), resumeOf("q1"),
		signalOf(id, fmt.Sprint("sig", w.rand.IntN(2)), fmt.Sprint(w.rand.IntN(4)), fmt.Sprint(w.rand.IntN(2))),
	}
	if len(w.graphs) > 0 && w.rand.IntN(4) == 0 {
		cmds = []store.Command{cancelJobOf(pick(w, w.graphs).sub.Job.ID)}
	}
	cmd := pick(w, cmds)
	got := w.env.command(cmd)
	if d, ok := cmd.(store.DeleteTask); ok && got.Err == nil {
		w.forget(d.Task)
	}
	return fmt.Sprintf("%T %+v: %+v", cmd, cmd, got)
}

// look verifies the store and compares it with the last look.
func (w *walker) look() {
	w.Helper()
	w.verify()
	snap := w.snap()
	for _, t := range snap.Tasks {
		w.check(t.Epoch >= w.epochs[t.ID], "I4 the epoch of %v went from %d to %d", t.ID, w.epochs[t.ID], t.Epoch)
		w.check(w.states[t.ID] != task.Succeeded || t.State == task.Succeeded, "I3 task %v left %s for %s", t.ID, w.states[t.ID], t.State)
		w.epochs[t.ID], w.states[t.ID] = t.Epoch, t.State
	}
	for _, s := range snap.Steps {
		if s.State != task.StepCompleted {
			continue
		}
		name := fmt.Sprint(s.TaskID, s.Name)
		value := fmt.Sprint(string(s.Value), s.WakeAt, s.CompletedAt)
		old, ok := w.steps[name]
		w.check(!ok || old == value, "I6 the step %s changed from %s to %s", name, old, value)
		w.steps[name] = value
	}
}
