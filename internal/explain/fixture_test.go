package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The instant of the explanations, and instants around it.
var (
	now   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock = explain.Clock{Now: now, Zone: time.UTC}
)

func ago(d time.Duration) time.Time { return now.Add(-d) }
func in(d time.Duration) time.Time  { return now.Add(d) }

// id returns 00000000000000000000000000 with n at its end.
func id(n byte) task.ID { return task.ID{15: n} }

const charge = "acme.billing.charge.v1"

// book holds histories and jobs for the tests.
type book struct {
	tasks   []store.History
	job     task.Job // set with inJob
	inJob   []task.Task
	running explain.Running
	root    []*task.Task
	gone    map[task.ID][]string
}

// explain explains a task, or the job if the ID is zero. It reads missing histories from the book.
func (b book) explain(t *testing.T, about task.ID, depth int) *explain.Explanation {
	t.Helper()
	e := explain.Explainer{
		Clock:   clock,
		Command: func(args ...string) string { return "weaver " + strings.Join(args, " ") },
		Depth:   depth,
		Root:    b.root,
	}
	e.Gone = b.gone
	known := make(explain.Known)
	for range 100 {
		x, missing := e.Job(&b.job, b.inJob, known)
		if !about.IsZero() {
			x, missing = e.Task(b.history(about), b.running, known)
		}
		if len(missing) == 0 {
			return x
		}
		for _, id := range missing {
			if _, twice := known[id]; twice {
				t.Fatalf("the history of %s is missing, though it is known", id)
			}
			known[id] = b.history(id)
		}
	}
	t.Fatal("there is always a history missing")
	return nil
}

func (b book) history(want task.ID) *store.History {
	for i := range b.tasks {
		if b.tasks[i].Task.ID == want {
			return &b.tasks[i]
		}
	}
	return nil
}

// shown returns an explanation as lines, as the command line prints it.
func shown(x *explain.Explanation) string {
	lines := []string{x.Title(), x.Root, x.Summary}
	var causes func(list []explain.Cause, margin string)
	causes = func(list []explain.Cause, margin string) {
		for _, c := range list {
			lines = append(lines, margin+c.Sentence)
			causes(c.Because, margin+"  ")
		}
	}
	causes(x.Because, "  ")
	lines = append(lines, x.Notes...)
	for _, h := range x.Past {
		lines = append(lines, "  "+h.Sentence)
	}
	for _, a := range x.Actions {
		lines = append(lines, "  "+a.Command, "      "+a.Effect)
	}
	return strings.Join(lines, "\n")
}

// a returns the history of a task with default values.
func a(n byte, state task.State, change ...func(*store.History)) store.History {
	h := store.History{Task: task.Task{
		ID: id(n), Type: charge, Queue: "billing", Priority: 5, State: state,
		AttemptNo: 0, MaxAttempts: 5, CreatedAt: ago(time.Hour),
	}}
	if state.Terminal() {
		h.Task.FinishedAt = ago(time.Minute)
	}
	for _, c := range change {
		c(&h)
	}
	return h
}

func named(node string) func(*store.History) {
	return func(h *store.History) { h.Task.Node, h.Task.JobID = node, id(99) }
}

func waits(w task.Waiting, due time.Time) func(*store.History) {
	return func(h *store.History) { h.Task.Waiting, h.Task.ReadyAt = w, due }
}

func failed(kind task.ErrorKind, message string) func(*store.History) {
	return func(h *store.History) { h.Task.Error = &task.Error{Kind: kind, Message: message} }
}

func needs(list ...store.Need) func(*store.History) {
	return func(h *store.History) { h.Needs = list }
}

func need(h store.History, done bool) store.Need {
	return store.Need{ID: h.Task.ID, Node: h.Task.Node, Kind: task.OnSuccess, State: h.Task.State, Done: done}
}

func runs(no int, worker string, since, leaseEnd time.Time) func(*store.History) {
	return func(h *store.History) {
		t := &h.Task
		t.AttemptNo, t.LeasedBy, t.StartedAt, t.LeaseExpiresAt = no, worker, since, leaseEnd
	}
}

// tried adds an attempt of one second.
func tried(no int, worker string, at time.Time, o task.Outcome, e *task.Error) func(*store.History) {
	return func(h *store.History) {
		h.Task.AttemptNo = no
		if task.Counts(o, task.KindNone) {
			h.Task.AttemptCount++
		}
		h.Attempts = append(h.Attempts, task.Attempt{TaskID: h.Task.ID, No: no, Worker: worker, StartedAt: at, FinishedAt: at.Add(time.Second), Outcome: o, Error: e})
	}
}

// decided adds the decision after the last attempt.
func decided(kind task.DecisionKind, due time.Time, text string) func(*store.History) {
	return func(h *store.History) {
		h.Decisions = append(h.Decisions, task.Decision{
			TaskID: h.Task.ID, AttemptNo: h.Task.AttemptNo, Kind: kind, NextReadyAt: due,
			Reason: task.Reason{Policy: "default", Version: 1, Text: text},
		})
	}
}

func with(change func(t *task.Task)) func(*store.History) {
	return func(h *store.History) { change(&h.Task) }
}

// why explains the first task of the histories.
func why(t *testing.T, hs ...store.History) string {
	t.Helper()
	return shown(book{tasks: hs}.explain(t, hs[0].Task.ID, 10))
}

// says fails the test for every line that the text lacks.
func says(t *testing.T, text string, lines ...string) {
	t.Helper()
	have := strings.Split(text, "\n")
	for _, line := range lines {
		if !slices.Contains(have, line) {
			t.Errorf("this line is missing:\n%s\nin:\n%s", line, text)
		}
	}
}

// neverSays fails the test for every part that the text contains.
func neverSays(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q should not be in:\n%s", part, text)
		}
	}
}

// undoAttempts adds attempts of an undo phase; the first began half an hour ago.
func undoAttempts(outcomes ...task.Outcome) func(*store.History) {
	return func(h *store.History) {
		for i, o := range outcomes {
			a := task.Attempt{TaskID: h.Task.ID, No: i + 1, Outcome: o, StartedAt: ago(30*time.Minute - time.Duration(i)*time.Minute)}
			a.FinishedAt = a.StartedAt.Add(time.Second)
			if o == task.OutcomeUndoFailed {
				a.Error = &task.Error{Kind: task.KindHandler, Step: "refund", Message: "psp 503"}
			}
			h.Attempts = append(h.Attempts, a)
		}
	}
}
