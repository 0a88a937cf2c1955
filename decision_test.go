package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// chooses is a Decider with one answer for the first failure of tasks of the type whole, and no answer
// for others.
func chooses(dec decide.Decision) decide.Decider {
	return decide.Func(func(in decide.Input) decide.Decision {
		if in.Task.Type != whole.Name() || in.Task.AttemptNo > 1 {
			return decide.Decision{}
		}
		dec.Reason = task.Reason{Policy: "test", Version: 1, Text: "the test says so"}
		return dec
	})
}

// tooLarge fails, and succeeds when it has children.
var tooLarge = whole.Handler(func(ctx context.Context, _ int) (string, error) {
	children, err := weaver.Children(ctx)
	if err != nil || len(children) == 0 {
		return "", errors.Join(err, errors.New("too large"))
	}
	var said []string
	for _, c := range children {
		said = append(said, c.Node+" "+string(c.State)+" "+string(c.Output))
	}
	return strings.Join(said, ", "), nil
})

func TestDecidedWaitIsAnEvent(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		var mu sync.Mutex
		var got []event.TaskSuspended
		dec := decide.Decision{Kind: task.DecideDecompose, Children: []task.Draft{{Type: piece.Name(), Input: json.RawMessage(`1`)}}}
		fx.runConfig(fx.store, weaver.Config{Decider: chooses(dec), Handlers: []weaver.Handler{tooLarge, pieceHandler()}, Sink: event.SinkFunc(func(ev event.Event) {
			mu.Lock()
			defer mu.Unlock()
			if ev, ok := ev.(event.TaskSuspended); ok {
				got = append(got, ev)
			}
		})})
		_ = result(fx, enqueue(fx, whole, 0))
		synctest.Wait() // events follow the state that Wait saw
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 1 || got[0].Error == nil || got[0].Error.Message != "too large" || !got[0].WakeAt.IsZero() {
			fx.Errorf("events %+v", got)
		}
		lines := fx.log.lines(fx, "attempt failed")
		if len(lines) != 1 || lines[0]["decision"] != "decompose" {
			fx.Errorf("the log has %v", lines)
		}
	})
}

func plain(t testing.TB, d weaver.Draft) task.Draft {
	t.Helper()
	p, err := d.Plain()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDeciderDecomposes(t *testing.T) {
	run := func(fx *fixture, dec decide.Decision) {
		fx.runConfig(fx.store, weaver.Config{Decider: chooses(dec), Handlers: []weaver.Handler{tooLarge, pieceHandler()}})
	}
	subtest(t, "rerun", func(fx *fixture) {
		run(fx, decide.Decision{Kind: task.DecideDecompose, Children: []task.Draft{
			{Type: piece.Name(), Input: json.RawMessage(`1`), Queue: "small", Priority: 2, MaxAttempts: 3, Labels: map[string]string{"a": "b"}},
			{Type: piece.Name(), Input: json.RawMessage(`2`), Node: "two"},
		}})
		h := enqueue(fx, whole, 0, weaver.MaxAttempts(2), weaver.ExpireAfter(time.Hour))
		equal(fx, "output", result(fx, h), "decompose[0] succeeded 2, two succeeded 4")
		fx.wantOutcomes(h.ID(), task.OutcomeFailure, task.OutcomeSuccess)
		hist := fx.history(h.ID())
		equal(fx, "attempts that count", hist.Task.AttemptCount, 2)
		d := hist.Decisions[0]
		equal(fx, "the decision", d.Kind, task.DecideDecompose)
		equal(fx, "its reason", d.Reason.Text, "the test says so")
		equal(fx, "its children", len(d.ChildIDs), 2)
		if a := d.Reason.Asked; a == nil || a.TimeLeft <= 0 || a.AttemptCount != 0 {
			fx.Errorf("what the Decider was asked with: %+v", a)
		}
		child := fx.get(d.ChildIDs[0])
		if child.Queue != "small" || child.Priority != 2 || child.MaxAttempts != 3 || child.Labels["a"] != "b" || child.ParentID != h.ID() {
			fx.Errorf("the child %+v", child)
		}
		equal(fx, "what the type has", fx.get(d.ChildIDs[1]).MaxAttempts, 1)
	})
	subtest(t, "complete", func(fx *fixture) {
		run(fx, decide.Decision{Kind: task.DecideDecompose, Join: task.JoinComplete, Output: json.RawMessage(`"in pieces"`), Children: []task.Draft{plain(fx, piece.With(1))}})
		h := enqueue(fx, whole, 0)
		equal(fx, "output", result(fx, h), "in pieces")
		fx.wantOutcomes(h.ID(), task.OutcomeFailure)
	})
	many := make([]task.Draft, task.MaxChildren+1)
	for want, dec := range map[string]decide.Decision{
		"no child is named":          {},
		`type "acme.no.such.v1"`:     {Children: []task.Draft{{Type: "acme.no.such.v1"}}},
		"child 0: invalid input":     {Children: []task.Draft{{Type: piece.Name(), Input: json.RawMessage(`"x"`)}}},
		"child 0: invalid option":    {Children: []task.Draft{{Type: piece.Name(), Input: json.RawMessage(`1`), Priority: 12}}},
		"Node":                       {Children: []task.Draft{{Type: piece.Name(), Input: json.RawMessage(`1`), Node: strings.Repeat("n", 300)}}},
		"10000 are allowed":          {Children: many},
		`the join "later"`:           {Join: "later", Children: []task.Draft{plain(t, piece.With(1))}},
		"an output that is not JSON": {Join: task.JoinComplete, Output: json.RawMessage(`{`), Children: []task.Draft{plain(t, piece.With(1))}},
	} {
		subtest(t, "falls back to the default: "+want, func(fx *fixture) {
			dec.Kind = task.DecideDecompose
			run(fx, dec)
			h := enqueue(fx, whole, 0)
			fails(fx, h)
			d := fx.history(h.ID()).Decisions[0]
			equal(fx, "the decision", d.Kind, task.DecideMarkDead)
			equal(fx, "what the Decider chose", d.Reason.Said, task.DecideDecompose)
			wantError(fx, errors.New(d.Reason.Fallback), nil, want)
			wantError(fx, errors.New(d.Reason.Text), nil, "the decider chose decompose, which cannot be done here", want, "the default decided")
		})
	}
	subtest(t, "falls back to the default: too deep, or too many in all", func(fx *fixture) {
		deep := decide.Func(func(in decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideDecompose, Join: task.JoinComplete, Children: []task.Draft{{Type: whole.Name(), Input: json.RawMessage("0")}}}
		})
		var last weaver.TaskID
		fx.runConfig(fx.store, weaver.Config{Decider: deep, Handlers: []weaver.Handler{whole.Handler(func(ctx context.Context, _ int) (string, error) {
			last = weaver.Current(ctx).TaskID
			return "", errors.New("too large")
		})}})
		h := enqueue(fx, whole, 0)
		fails(fx, h)
		got := fx.history(last)
		equal(fx, "depth", got.Task.Depth, task.MaxDepth)
		wantError(fx, errors.New(got.Decisions[0].Reason.Text), nil, "depth 8", "the default decided", "no attempts are left")
		equal(fx, "its error is that of the handler", got.Task.Error.Kind, task.KindHandler)
	})
}

func TestDeciderAddsADependency(t *testing.T) {
	again := whole.Handler(func(ctx context.Context, _ int) (string, error) {
		if weaver.Current(ctx).AttemptNo > 1 {
			return "now", nil
		}
		return "", errors.New("the other one is not there")
	})
	run := func(fx *fixture, on weaver.TaskID) {
		fx.runConfig(fx.store, weaver.Config{Decider: chooses(decide.Decision{Kind: task.DecideAddDependency, DependsOn: on}), Handlers: []weaver.Handler{again, pieceHandler()}})
	}
	subtest(t, "runs again when that has succeeded", func(fx *fixture) {
		other := enqueue(fx, piece, 1, weaver.Delay(time.Hour))
		run(fx, other.ID())
		began := time.Now()
		h := enqueue(fx, whole, 0)
		equal(fx, "output", result(fx, h), "now")
		near(fx, "it waited", time.Since(began), time.Hour)
		fx.wantOutcomes(h.ID(), task.OutcomeFailure, task.OutcomeSuccess)
		equal(fx, "the decision", fx.history(h.ID()).Decisions[0].Kind, task.DecideAddDependency)
	})
	for want, id := range map[string]func(fx *fixture) weaver.TaskID{
		"the id is zero":   func(*fixture) weaver.TaskID { return weaver.TaskID{} },
		"there is no task": func(*fixture) weaver.TaskID { return weaver.TaskID{1} },
		"ended failed": func(fx *fixture) weaver.TaskID {
			h := enqueue(fx, piece, -1)
			fx.idle(pieceHandler())
			return h.ID()
		},
	} {
		subtest(t, "falls back to the default: "+want, func(fx *fixture) {
			run(fx, id(fx))
			h := enqueue(fx, whole, 0)
			fails(fx, h)
			wantError(fx, errors.New(fx.history(h.ID()).Decisions[0].Reason.Text), nil, "the decider chose add_dependency", want, "the default decided")
		})
	}
}

func TestPlainDraft(t *testing.T) {
	t.Parallel()
	opts := []weaver.EnqueueOption{
		weaver.Queue("q"), weaver.Priority(2), weaver.Delay(time.Minute), weaver.ExpireAfter(time.Hour), weaver.MaxAttempts(7), weaver.Backoff(time.Second),
		weaver.BackoffMax(time.Minute), weaver.Timeout(time.Second), weaver.CleanupWhenCancelled(), weaver.ConcurrencyKey("k", 3), weaver.Label("l", "1"), weaver.Metadata("m", "2"),
	}
	got, err := json.Marshal(plain(t, piece.With(5, opts...)))
	want := `{"task_type":"engine.children.piece.v1","input":5,"queue":"q","priority":2,"delay_ns":60000000000,"expire_after_ns":3600000000000,"max_attempts":7,` +
		`"backoff_ns":1000000000,"backoff_max_ns":60000000000,"timeout_ns":1000000000,"cleanup_when_cancelled":true,"concurrency_key":"k","concurrency_limit":3,` +
		`"labels":{"l":"1"},"metadata":{"m":"2"}}`
	if err != nil || string(got) != want {
		t.Errorf("Plain:\n%s, want\n%s (%v)", got, want, err)
	}
	for name, d := range map[string]weaver.Draft{
		"empty": {}, "of a bad option": piece.With(1, weaver.Priority(12)), "with a key": piece.With(1, weaver.IdempotencyKey("k")),
	} {
		if _, err := d.Plain(); err == nil {
			t.Errorf("a draft %s is made plain", name)
		}
	}
}
