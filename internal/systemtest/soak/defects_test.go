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

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undisturbedSize is the size of a run without kills.
var undisturbedSize = stormSize{tasks: 40, nodes: 8, visits: 4, pause: time.Millisecond}

// undisturbedRun runs a producer and a worker in this process until all tasks are done or enough is closed.
func undisturbedRun(t *testing.T, l defects, enough <-chan struct{}) *storm {
	t.Helper()
	s := newStorm(t, undisturbedSize, 0)
	s.lives, s.pids = 2, nil
	o := childConfig{Dir: s.dir, Life: 1, Pause: s.size.pause, Tasks: s.size.tasks, Nodes: s.size.nodes, Visits: s.size.visits}
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
		t.Error("a run without kills does not end")
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

// TestFalseEvidenceIsFound changes the evidence of a run without kills. The check must report each change with its
// kind.
func TestFalseEvidenceIsFound(t *testing.T) {
	t.Parallel()
	whole := undisturbedRun(t, noDefects, nil).evidence()
	if found := whole.check(); len(found) > 0 {
		t.Fatalf("violations in a run without kills:\n%s", strings.Join(found, "\n"))
	}
	for name, f := range falseEvidence {
		t.Run(name, func(t *testing.T) {
			e := whole.clone()
			f.forge(e)
			if found := e.check(); !slices.Contains(kindsOf(found), f.kind) {
				t.Errorf("no violation of the kind %q was found, but %q", f.kind, found)
			}
		})
	}
}

// falseEvidence lists changes of the evidence, with the kind of violation of each. The evidence is of life 2, with
// every kind of task.
var falseEvidence = map[string]struct {
	kind  string
	forge func(e *evidence)
}{
	"a start by a later attempt": {"started", func(e *evidence) {
		l := e.line(lineStart, "plain")
		l.attempt++
		e.log = append(e.log, l)
	}},
	"a start by the same attempt, after the record": {"started", func(e *evidence) {
		l := e.line(lineStart, "plain")
		l.at = time.Unix(0, l.at).Add(time.Hour).UnixNano()
		e.log = append(e.log, l)
	}},
	"a second start":      {"tries", func(e *evidence) { e.log = append(e.log, e.line(lineStart, "plain")) }},
	"a third try":         {"tries", func(e *evidence) { e.log = append(e.log, e.line(lineStart, "shaky")) }},
	"a start is missing":  {"tries", func(e *evidence) { e.drop(e.line(lineStart, "tx")) }},
	"a return is missing": {"tries", func(e *evidence) { e.drop(e.line(lineReturn, "tx")) }},
	"a forgotten value": {"forgotten", func(e *evidence) {
		l := e.line(lineKept, "plain")
		l.name = "one@7"
		e.log = append(e.log, l)
	}},
	"a second call":               {"attempts", func(e *evidence) { e.log = append(e.log, e.line(lineEnter, "plain")) }},
	"a line of no task":           {"unknown", func(e *evidence) { e.log = append(e.log, line{what: lineStart, task: "unknown", name: "one"}) }},
	"a lost task":                 {"lost", func(e *evidence) { e.acks = append(e.acks, ack{3, task.NewIDs(nil).New().String()}) }},
	"a lost job":                  {"lost", func(e *evidence) { e.acks = append(e.acks, ack{jobAck, task.NewIDs(nil).New().String()}) }},
	"an exchanged task":           {"lost", func(e *evidence) { e.acks[len(e.acks)-1].n-- }},
	"a number is missing":         {"numbers", func(e *evidence) { e.size.tasks++ }},
	"a number too many":           {"numbers", func(e *evidence) { e.size.tasks-- }},
	"a row without task":          {"half", func(e *evidence) { e.orders = append(e.orders, orderRow{99, "unknown"}) }},
	"a task without row":          {"half", func(e *evidence) { e.orders = e.orders[1:] }},
	"a visit without row":         {"visit", func(e *evidence) { e.visitRows = e.visitRows[1:] }},
	"a visit with two rows":       {"visit", func(e *evidence) { e.visitRows = append(e.visitRows, e.visitRows[0]) }},
	"a visit without task":        {"visit", func(e *evidence) { e.task("visit").Input = json.RawMessage(`{}`) }},
	"a visit is gone":             {"visit", func(e *evidence) { e.visits = append(e.visits, visit{how: visitCommitted, token: "unknown"}) }},
	"a visit that is rolled back": {"visit", func(e *evidence) { e.visits[0].how = visitRolledBack }},
	"an unserved task ended":      {"unserved", func(e *evidence) { e.task("unserved").State = task.Succeeded }},
	"an unserved task was tried":  {"unserved", func(e *evidence) { e.task("unserved").AttemptNo++ }},
	"an unserved task is gone":    {"unserved", func(e *evidence) { e.task("unserved").Type = childType.Name() }},
	"an unserved task is lost":    {"lost", func(e *evidence) { e.acks = append(e.acks, ack{unservedAck, task.NewIDs(nil).New().String()}) }},
	"an effect is missing":        {"effect", func(e *evidence) { e.effects = e.effects[1:] }},
	"an effect twice":             {"effect", func(e *evidence) { e.effects = append(e.effects, e.effects[0]) }},
	"of another attempt":          {"effect", func(e *evidence) { e.effects[0].attempt++ }},
	"of another process":          {"effect", func(e *evidence) { e.effects[0].life++ }},
	"of a step without tx":        {"effect", func(e *evidence) { e.effects[0].step = "one" }},
	"of an unknown step":          {"effect", func(e *evidence) { e.effects[0].step = "zero" }},
	"a failed task":               {"state", func(e *evidence) { e.task("plain").State = task.Failed }},
	"another output":              {"output", func(e *evidence) { e.task("plain").Output = json.RawMessage(`{"N":1}`) }},
	"another sum":                 {"output", func(e *evidence) { e.task("node").Output = json.RawMessage(`{}`) }},
	"a step is missing":           {"step", func(e *evidence) { e.snap.Steps = e.snap.Steps[1:] }},
	"an unknown step":             {"step", func(e *evidence) { e.snap.Steps[0].Name = "zero" }},
	"another value":               {"step", func(e *evidence) { e.step("plain").Value = json.RawMessage(`{}`) }},
	"an attempt is missing":       {"attempts", func(e *evidence) { e.snap.Attempts = e.snap.Attempts[1:] }},
	"a failed attempt":            {"attempts", func(e *evidence) { e.attempt("plain").Outcome = task.OutcomeFailure }},
	"a cancelled attempt":         {"attempts", func(e *evidence) { e.attempt("plain").Outcome = task.OutcomeCancelled }},
	"a miscounted attempt":        {"attempts", func(e *evidence) { e.task("plain").AttemptCount++ }},
	"a failure forgotten":         {"attempts", func(e *evidence) { e.attempt("flaky").Outcome = task.OutcomeReleased }},
	"a lease lost without a kill": {"leases", func(e *evidence) {
		e.pids = map[int]int{}
		e.attempt("plain").Outcome = task.OutcomeLeaseLost
	}},
	"a worker's row is left": {"leases", func(e *evidence) { e.pids, e.workers = map[int]int{}, 1 }},
	"a key held twice": {"key", func(e *evidence) {
		l := e.line(lineEnter, "keyed")
		for range 1 + limitOf(l.name) {
			l.task += "x"
			e.log = append(e.log, l)
		}
	}},
	"a node too early": {"order", func(e *evidence) {
		l := e.line(lineEnter, "node")
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
	"an error":      {"logged", func(e *evidence) { e.stderr[2] = "time=now level=ERROR msg=oh\n" }},
	"a panic":       {"logged", func(e *evidence) { e.stderr[2] = "panic: oh\n" }},
}

// clone returns a copy of the evidence that may be changed, down to the fields of its rows.
func (e *evidence) clone() *evidence {
	c, snap := *e, *e.snap
	c.snap = &snap
	snap.Tasks, snap.Jobs, snap.Dispatch = slices.Clone(snap.Tasks), slices.Clone(snap.Jobs), slices.Clone(snap.Dispatch)
	snap.Attempts, snap.Steps = slices.Clone(snap.Attempts), slices.Clone(snap.Steps)
	c.log, c.acks, c.stderr = slices.Clone(e.log), slices.Clone(e.acks), maps.Clone(e.stderr)
	c.effects, c.orders = slices.Clone(e.effects), slices.Clone(e.orders)
	c.visits, c.visitRows = slices.Clone(e.visits), slices.Clone(e.visitRows)
	return &c
}

// task returns the last task of a kind: later nodes have needs.
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

// TestLossyStoresAreFound runs without kills on stores that lose acknowledged writes.
func TestLossyStoresAreFound(t *testing.T) {
	t.Parallel()
	forgot := make(chan struct{})
	for name, c := range map[string]struct {
		store  func(s store.Store) store.Store
		enough <-chan struct{}
		kinds  []string
	}{
		"completed steps are not handed out again": {func(s store.Store) store.Store {
			return withoutSteps(s, sync.OnceFunc(func() { close(forgot) }))
		}, forgot, []string{"started"}},
		"completed steps are not stored": {losingSteps, nil, []string{"step", "output"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := undisturbedRun(t, defects{store: c.store}, c.enough).evidence().check()
			for _, kind := range c.kinds {
				if !slices.Contains(kindsOf(found), kind) {
					t.Errorf("no violation of the kind %q was found, but %q", kind, found)
				}
			}
		})
	}
}

// withoutSteps returns a store whose claims omit the steps completed by earlier attempts. noticed is called when a
// step is completed again.
func withoutSteps(s store.Store, noticed func()) store.Store {
	return storehook.New(s, &storehook.Hooks{
		Claim: func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			res, err := next()
			for i := range res.Tasks {
				res.Tasks[i].Steps = nil
			}
			return res, err
		},
		Record: func(_ context.Context, _ []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			res, err := next()
			for _, r := range res {
				if errors.Is(r.Err, store.ErrStepConflict) {
					noticed()
				}
			}
			return res, err
		},
	})
}

// losingSteps returns a store that acknowledges completed steps without storing them.
func losingSteps(s store.Store) store.Store {
	return storehook.New(s, &storehook.Hooks{
		Record: func(ctx context.Context, recs []store.Record, _ func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			res := make([]store.RecordResult, len(recs))
			for i, rec := range recs {
				if rec.Step != nil && rec.Step.Kind == task.KindStep && rec.Step.State == task.StepCompleted {
					res[i].Step = *rec.Step
					continue
				}
				got, err := s.Record(ctx, weaver.DefaultNamespace, rec)
				if err != nil {
					return nil, err
				}
				res[i] = got[0]
			}
			return res, nil
		},
	})
}
