package event_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// endingCase is a row of the table: the ending as engines report it and as readers know it later.
type endingCase struct {
	outcome  task.Outcome
	decision task.DecisionKind
	state    task.State
	waiting  task.Waiting
	want     string
}

func TestEnding(t *testing.T) {
	t.Parallel()
	const failure = task.OutcomeFailure
	for _, c := range []endingCase{
		{task.OutcomeSuccess, "", task.Succeeded, "", "task.succeeded"},
		{failure, task.DecideSucceed, task.Succeeded, "", "task.succeeded"},
		{failure, task.DecideMarkDead, task.Failed, "", "task.failed"},
		{failure, "", task.Failed, "", "task.failed"}, // the engine gave up
		{task.OutcomeDecodeFailed, task.DecideMarkDead, task.Failed, "", "task.failed"},
		{task.OutcomeUndone, "", task.Failed, "", "task.failed"},
		{task.OutcomeCancelled, "", task.Cancelled, "", "task.cancelled"},
		{task.OutcomeCancelled, task.DecideAddDependency, task.Cancelled, "", "task.cancelled"},
		{task.OutcomeBlocked, task.DecideBlock, task.Blocked, task.WaitManual, "task.blocked"},
		{task.OutcomeBlocked, "", task.Blocked, task.WaitUndo, "task.blocked"},
		{failure, task.DecideRetry, task.Pending, task.WaitRetry, "task.retrying"},
		{failure, task.DecideRetry, task.Ready, "", "task.retrying"},
		{task.OutcomeBlocked, task.DecideRetry, task.Ready, "", "task.retrying"},
		{task.OutcomeDecodeFailed, task.DecideRetry, task.Pending, task.WaitRetry, "task.retrying"},
		{failure, "", task.Pending, task.WaitRetry, "task.retrying"}, // an error of the engine
		{task.OutcomeSuspended, "", task.Pending, task.WaitSleep, "task.suspended sleep"},
		{task.OutcomeSuspended, "", task.Ready, task.WaitSignal, "task.suspended signal"},
		{task.OutcomeSuspended, "", task.Pending, task.WaitUndo, "task.suspended undo"},
		{task.OutcomeDecompose, "", task.Pending, task.WaitChildren, "task.suspended children"},
		{task.OutcomeAddDependency, "", task.Pending, task.WaitDeps, "task.suspended deps"},
		{task.OutcomeAddDependency, "", task.Ready, "", "task.suspended deps"}, // the dependency had already succeeded
		{failure, task.DecideDecompose, task.Pending, task.WaitChildren, "task.suspended children"},
		{failure, task.DecideAddDependency, task.Ready, "", "task.suspended deps"},
		{failure, task.DecideRepair, task.Pending, task.WaitRepair, "task.suspended repair"},
		{task.OutcomeUndoFailed, "", task.Pending, task.WaitUndo, "task.suspended undo"},
		{failure, task.DecideMarkDead, task.Pending, task.WaitUndo, "task.undoing"},
		{task.OutcomeDecodeFailed, task.DecideMarkDead, task.Pending, task.WaitUndo, "task.undoing"},
		{task.OutcomeCancelled, "", task.Pending, task.WaitUndo, "task.undoing"},
		{task.OutcomeReleased, "", task.Ready, "", "task.released"},
		{task.OutcomeReleased, "", task.Pending, task.WaitUndo, "task.released"},
		{task.OutcomeLeaseLost, "", task.Failed, "", "task.lease_lost"},
		{task.OutcomeLeaseLost, "", task.Pending, task.WaitUndo, "task.lease_lost"},

		{"", "", task.Failed, "", "task.failed"}, // without an attempt
		{"", "", task.Blocked, "", "task.blocked"},

		{failure, "", task.Pending, task.WaitRepair, "task.suspended repair"}, // the decision is unknown
		{failure, "", task.Pending, task.WaitSignal, "task.suspended signal"},

		{task.OutcomeCancelled, "", "", "", "task.cancelled"}, // the state is unknown
		{failure, task.DecideSucceed, "", "", "task.succeeded"},
		{failure, task.DecideMarkDead, "", "", "task.failed"},
		{failure, task.DecideBlock, "", "", "task.blocked"},
		{failure, task.DecideRepair, "", "", "task.suspended repair"},
		{failure, task.DecideRetry, "", "", "task.retrying"},
		{task.OutcomeUndone, "", "", "", "task.suspended undo"},
		{task.OutcomeDecompose, "", "", "", "task.suspended children"},
	} {
		end := event.Ending{Outcome: c.outcome, Decision: c.decision, State: c.state, Waiting: c.waiting}
		ev := end.Event(head("a"))
		got := ev.Type()
		if s, ok := ev.(event.TaskSuspended); ok {
			got += " " + string(s.Waiting)
		}
		if got != c.want || end.Type() != ev.Type() || ev.Head() != head("a") {
			t.Errorf("%s/%s, %s/%s: %s (%s), want %s", c.outcome, c.decision, c.state, c.waiting, got, end.Type(), c.want)
		}
	}
}

// EndingOf is the inverse of Event.
func TestEndingOf(t *testing.T) {
	t.Parallel()
	h, failure := head("a"), task.Error{Kind: task.KindHandler, Message: "no"}
	events := []event.Event{
		event.TaskSucceeded{Header: h, Output: json.RawMessage(`1`), Duration: 1},
		event.TaskFailed{Header: h, Error: failure, Allowed: true, Duration: 1},
		event.TaskRetrying{Header: h, Error: failure, Delay: 2, Duration: 1},
		event.TaskBlocked{Header: h, Error: failure, Duration: 1},
		event.TaskCancelled{Header: h, Error: failure, Duration: 1},
		event.TaskUndoing{Header: h, Error: failure, EndsAs: task.Failed, Duration: 1},
		event.TaskUndoing{Header: h, Error: failure, EndsAs: task.Cancelled, Duration: 1},
		event.TaskReleased{Header: h, Error: &failure, Duration: 1},
		event.TaskLeaseLost{Header: h, State: task.Ready, Crash: true, Duration: 1},
		event.TaskSuspended{Header: h, Waiting: task.WaitSleep, WakeAt: time.Unix(1, 0), Duration: 1},
	}
	for _, why := range []task.Waiting{task.WaitChildren, task.WaitDeps, task.WaitRepair, task.WaitUndo} {
		events = append(events, event.TaskSuspended{Header: h, Waiting: why, Error: &failure}, event.TaskSuspended{Header: h, Waiting: why})
	}
	for _, ev := range events {
		end, ok := event.EndingOf(ev)
		if got := end.Event(h); !ok || !event.EndsAttempt(ev) || !reflect.DeepEqual(got, ev) {
			t.Errorf("%#v tells of %+v, which leads to %#v", ev, end, got)
		}
	}
	if end, ok := event.EndingOf(event.TaskStarted{}); ok || event.EndsAttempt(event.StepFailed{}) {
		t.Errorf("task.started tells of %+v", end)
	}
}

func TestEndingSequence(t *testing.T) {
	t.Parallel()
	var last int64
	for _, o := range []task.Outcome{task.OutcomeFailure, task.OutcomeLeaseLost, task.OutcomeNone} {
		seq := event.Ending{Outcome: o}.Sequence(3)
		if seq <= last || event.EpochOf(seq) != 3 || seq <= event.Sequence(3, 1000) {
			t.Errorf("the end by %q has the number %d, after %d", o, seq, last)
		}
		last = seq
	}
}

// Every event type has an entry in kinds, which Decode and feeds use.
func TestKinds(t *testing.T) {
	t.Parallel()
	own := []string{"job.started", "job.blocked", "job.finished"} // emitted only by the command
	for _, name := range []string{"event.go", "job.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name == "Type" {
				typ := strings.Trim(f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value, `"`)
				if slices.Contains(event.FeedTypes(), typ) == slices.Contains(own, typ) {
					t.Errorf("%s: of feeds, or of the command?", typ)
				}
			}
			return true
		})
	}
}
