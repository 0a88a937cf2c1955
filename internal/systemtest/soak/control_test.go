package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// calmSize is that of a day without a storm.
var calmSize = stormSize{tasks: 40, nodes: 8, pause: time.Millisecond}

// calmDay runs a producer and a worker in this process, until everything is
// done or enough was seen.
func calmDay(t *testing.T, l lies, enough <-chan struct{}) *storm {
	t.Helper()
	s := newStorm(t, calmSize, 0)
	s.lives, s.pids = 2, nil
	o := orders{Dir: s.dir, Life: 1, Pause: s.size.pause, Tasks: s.size.tasks, Nodes: s.size.nodes}
	if err := runProducer(t.Context(), o, strings.NewReader(fmt.Sprintln(o.Tasks))); err != nil {
		t.Fatalf("the producer: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.Life = 2
	w, err := newWorker(ctx, o, l)
	if err != nil {
		t.Fatalf("the worker: %v", err)
	}
	ran := make(chan error, 1)
	go func() { ran <- w.run(ctx) }()
	if enough != nil {
		<-enough
	} else if !s.untilDone() {
		t.Error("a calm day does not end")
	}
	stop()
	if err := <-ran; err != nil {
		t.Fatalf("the worker: %v", err)
	}
	return s
}

func kindsOf(found []string) (kinds []string) {
	for _, v := range found {
		kind, _, _ := strings.Cut(v, ":")
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// TestForgeriesAreFound changes the evidence of a day on which nothing went
// wrong. The judge must see each change for what it is.
func TestForgeriesAreFound(t *testing.T) {
	t.Parallel()
	whole := calmDay(t, honest, nil).evidence()
	if found := whole.judge(); len(found) > 0 {
		t.Fatalf("violations on a calm day:\n%s", strings.Join(found, "\n"))
	}
	for name, f := range forgeries {
		t.Run(name, func(t *testing.T) {
			e := whole.clone()
			f.forge(e)
			if found := e.judge(); !slices.Contains(kindsOf(found), f.kind) {
				t.Errorf("no violation of the kind %q was found, but %q", f.kind, found)
			}
		})
	}
}

// forgeries are changes of the evidence, and the kind of violation that each
// is. The evidence is of life 2, with every kind of task.
var forgeries = map[string]struct {
	kind  string
	forge func(e *evidence)
}{
	"a start by a later attempt": {"started", func(e *evidence) {
		l := e.line(saysStart, "plain")
		l.attempt++
		e.log = append(e.log, l)
	}},
	"a start by the same attempt, after the record": {"started", func(e *evidence) {
		l := e.line(saysStart, "plain")
		l.at = time.Unix(0, l.at).Add(time.Hour).UnixNano()
		e.log = append(e.log, l)
	}},
	"a second start":      {"tries", func(e *evidence) { e.log = append(e.log, e.line(saysStart, "plain")) }},
	"a third try":         {"tries", func(e *evidence) { e.log = append(e.log, e.line(saysStart, "shaky")) }},
	"a start is missing":  {"tries", func(e *evidence) { e.drop(e.line(saysStart, "tx")) }},
	"a return is missing": {"tries", func(e *evidence) { e.drop(e.line(saysReturn, "tx")) }},
	"a forgotten value": {"forgotten", func(e *evidence) {
		l := e.line(saysKept, "plain")
		l.name = "one@7"
		e.log = append(e.log, l)
	}},
	"a second call":         {"attempts", func(e *evidence) { e.log = append(e.log, e.line(saysEnter, "plain")) }},
	"a line of nobody":      {"unknown", func(e *evidence) { e.log = append(e.log, line{what: saysStart, task: "nobody", name: "one"}) }},
	"a lost task":           {"lost", func(e *evidence) { e.acks = append(e.acks, ack{3, task.NewIDs(nil).New().String()}) }},
	"a lost job":            {"lost", func(e *evidence) { e.acks = append(e.acks, ack{jobAck, task.NewIDs(nil).New().String()}) }},
	"an exchanged task":     {"lost", func(e *evidence) { e.acks[len(e.acks)-1].n-- }},
	"a number is missing":   {"numbers", func(e *evidence) { e.size.tasks++ }},
	"a number too many":     {"numbers", func(e *evidence) { e.size.tasks-- }},
	"a row without task":    {"half", func(e *evidence) { e.orders = append(e.orders, orderRow{99, "nobody"}) }},
	"a task without row":    {"half", func(e *evidence) { e.orders = e.orders[1:] }},
	"an effect is missing":  {"effect", func(e *evidence) { e.effects = e.effects[1:] }},
	"an effect twice":       {"effect", func(e *evidence) { e.effects = append(e.effects, e.effects[0]) }},
	"of another attempt":    {"effect", func(e *evidence) { e.effects[0].attempt++ }},
	"of another process":    {"effect", func(e *evidence) { e.effects[0].life++ }},
	"of a step without tx":  {"effect", func(e *evidence) { e.effects[0].step = "one" }},
	"of a step unheard of":  {"effect", func(e *evidence) { e.effects[0].step = "zero" }},
	"a failed task":         {"state", func(e *evidence) { e.task("plain").State = task.Failed }},
	"another output":        {"output", func(e *evidence) { e.task("plain").Output = json.RawMessage(`{"N":1}`) }},
	"another sum":           {"output", func(e *evidence) { e.task("node").Output = json.RawMessage(`{}`) }},
	"a step is missing":     {"step", func(e *evidence) { e.snap.Steps = e.snap.Steps[1:] }},
	"an unknown step":       {"step", func(e *evidence) { e.snap.Steps[0].Name = "zero" }},
	"another value":         {"step", func(e *evidence) { e.step("plain").Value = json.RawMessage(`{}`) }},
	"an attempt is missing": {"attempts", func(e *evidence) { e.snap.Attempts = e.snap.Attempts[1:] }},
	"a failed attempt":      {"attempts", func(e *evidence) { e.attempt("plain").Outcome = task.OutcomeFailure }},
	"a poisoned attempt":    {"attempts", func(e *evidence) { e.attempt("plain").Outcome = task.OutcomeCancelled }},
	"a miscounted attempt":  {"attempts", func(e *evidence) { e.task("plain").AttemptCount++ }},
	"a failure forgotten":   {"attempts", func(e *evidence) { e.attempt("flaky").Outcome = task.OutcomeReleased }},
	"a lease lost alive": {"leases", func(e *evidence) {
		e.pids = map[int]int{}
		e.attempt("plain").Outcome = task.OutcomeLeaseLost
	}},
	"a worker's row is left": {"leases", func(e *evidence) { e.pids, e.workers = map[int]int{}, 1 }},
	"a key held twice": {"key", func(e *evidence) {
		l := e.line(saysEnter, "keyed")
		for range 1 + limitOf(l.name) {
			l.task += "x"
			e.log = append(e.log, l)
		}
	}},
	"a node too early": {"order", func(e *evidence) {
		l := e.line(saysEnter, "node")
		e.log = append([]line{l}, e.log...)
	}},
	"no job":             {"job", func(e *evidence) { e.snap.Jobs = nil }},
	"a failed job":       {"job", func(e *evidence) { e.snap.Jobs[0].State = task.JobFailed }},
	"a child too many":   {"children", func(e *evidence) { e.snap.Tasks = append(e.snap.Tasks, *e.task("child")) }},
	"a child is missing": {"children", func(e *evidence) { e.task("child").Input = json.RawMessage(`{}`) }},
	"a dispatch row": {"doctor", func(e *evidence) {
		e.snap.Dispatch = append(e.snap.Dispatch, store.DispatchRow{Task: e.task("plain").ID})
	}},
	"a broken page": {"integrity", func(e *evidence) { e.integrity = "row 1 missing from index" }},
	"an alarm":      {"complaint", func(e *evidence) { e.stderr[2] = "time=now level=ERROR msg=oh\n" }},
	"a panic":       {"complaint", func(e *evidence) { e.stderr[2] = "panic: oh\n" }},
}

// clone returns evidence that may be changed, down to the fields of its rows.
func (e *evidence) clone() *evidence {
	c, snap := *e, *e.snap
	c.snap = &snap
	snap.Tasks, snap.Jobs, snap.Dispatch = slices.Clone(snap.Tasks), slices.Clone(snap.Jobs), slices.Clone(snap.Dispatch)
	snap.Attempts, snap.Steps = slices.Clone(snap.Attempts), slices.Clone(snap.Steps)
	c.log, c.acks, c.stderr = slices.Clone(e.log), slices.Clone(e.acks), maps.Clone(e.stderr)
	c.effects, c.orders = slices.Clone(e.effects), slices.Clone(e.orders)
	return &c
}

// task is the last task of a kind: nodes have needs then.
func (e *evidence) task(kind string) *task.Task {
	for i := len(e.snap.Tasks) - 1; i >= 0; i-- {
		var in order
		if json.Unmarshal(e.snap.Tasks[i].Input, &in) == nil && in.Kind == kind {
			return &e.snap.Tasks[i]
		}
	}
	panic("no task " + kind)
}

func (e *evidence) line(what, kind string) line {
	id := e.task(kind).ID.String()
	i := slices.IndexFunc(e.log, func(l line) bool { return l.what == what && l.task == id })
	return e.log[i]
}

func (e *evidence) drop(gone line) {
	e.log = slices.DeleteFunc(e.log, func(l line) bool { return l == gone })
}

func (e *evidence) step(kind string) *task.Step {
	id := e.task(kind).ID
	return &e.snap.Steps[slices.IndexFunc(e.snap.Steps, func(s task.Step) bool { return s.TaskID == id })]
}

func (e *evidence) attempt(kind string) *task.Attempt {
	id := e.task(kind).ID
	return &e.snap.Attempts[slices.IndexFunc(e.snap.Attempts, func(a task.Attempt) bool { return a.TaskID == id })]
}

// TestLyingStoresAreFound runs calm days on stores that lose what they were
// told to keep.
func TestLyingStoresAreFound(t *testing.T) {
	t.Parallel()
	forgot := make(chan struct{})
	for name, lie := range map[string]struct {
		store  func(s store.Store) store.Store
		enough <-chan struct{}
		kinds  []string
	}{
		"completed steps are not handed out again": {func(s store.Store) store.Store {
			return &forgetful{probe: s.(*probe), noticed: sync.OnceFunc(func() { close(forgot) })}
		}, forgot, []string{"started"}},
		"completed steps are not stored": {func(s store.Store) store.Store {
			return &pretender{probe: s.(*probe)}
		}, nil, []string{"step", "output"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := calmDay(t, lies{store: lie.store}, lie.enough).evidence().judge()
			for _, kind := range lie.kinds {
				if !slices.Contains(kindsOf(found), kind) {
					t.Errorf("no violation of the kind %q was found, but %q", kind, found)
				}
			}
		})
	}
}

// forgetful does not tell later attempts what earlier ones completed.
type forgetful struct {
	*probe
	noticed func() // that a step was completed again
}

func (f *forgetful) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	return withoutSteps(f.probe.Claim(ctx, ns, req))
}

func (f *forgetful) ClaimOrWait(ctx context.Context, ns string, req store.ClaimRequest, wait time.Duration, wake <-chan struct{}) (store.ClaimResult, error) {
	return withoutSteps(f.probe.ClaimOrWait(ctx, ns, req, wait, wake))
}

func withoutSteps(res store.ClaimResult, err error) (store.ClaimResult, error) {
	for i := range res.Tasks {
		res.Tasks[i].Steps = nil
	}
	return res, err
}

func (f *forgetful) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	res, err := f.probe.Record(ctx, ns, recs...)
	for _, r := range res {
		if errors.Is(r.Err, store.ErrStepConflict) {
			f.noticed()
		}
	}
	return res, err
}

// pretender acknowledges completed steps and does not store them.
type pretender struct{ *probe }

func (p *pretender) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	res := make([]store.RecordResult, len(recs))
	for i, rec := range recs {
		if rec.Step != nil && rec.Step.Kind == task.KindStep && rec.Step.State == task.StepCompleted {
			res[i].Step = *rec.Step
			continue
		}
		got, err := p.probe.Record(ctx, ns, rec)
		if err != nil {
			return nil, err
		}
		res[i] = got[0]
	}
	return res, nil
}
