package view

import (
	"testing"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

func TestTries(t *testing.T) {
	t.Parallel()
	j := JobOf("a")
	m := j.model()
	a := m.byName["a"]
	tries := func(want int) {
		t.Helper()
		if got := a.try(); got != want {
			t.Errorf("attempt %d, %s: try %d, want %d", a.attempt, a.state, got, want)
		}
	}
	m.observe(j.Starts("a", At(1)))
	tries(1)
	m.observe(event.TaskSuspended{Header: j.Head("a", At(2)), Waiting: task.WaitSleep, WakeAt: At(3)})
	m.observe(j.Starts("a", At(3)))
	tries(1) // a sleep does not count
	m.observe(event.TaskRetrying{Header: j.Head("a", At(4)), Error: task.Error{Kind: task.KindInternal}})
	m.observe(j.Starts("a", At(5)))
	tries(1) // nor does an error of the engine
	m.observe(j.Retries("a", "no", 0, At(6)))
	tries(1)
	m.observe(j.Starts("a", At(7)))
	tries(2)
	m.reconcile(j.Snapshot(), At(7))
	tries(2)
	m.observe(j.Fails("a", "no", At(8)))
	tries(2)
}

func TestOutput(t *testing.T) {
	t.Parallel()
	j := JobOf("a")
	m := j.model()
	a := m.byName["a"]
	m.observe(j.Starts("a", At(1)))
	check(t, "half a line", m.observe(j.Prints("a", "read")), "a stream.chunk 1")
	if a.note() != "read" {
		t.Errorf("a says %q", a.note())
	}
	check(t, "its end and more", m.observe(j.Prints("a", "ing\n\nnext\r")), "a stream.chunk 1", "a| reading", "a| ")
	if a.note() != "next" {
		t.Errorf("a says %q", a.note())
	}
	stderr := event.StreamChunk{Header: j.Head("a", At(1)), Stream: "stderr", Data: "warn"}
	check(t, "the other stream", m.observe(stderr), "a stream.chunk 1")
	numbers := event.StreamChunk{Header: j.Head("a", At(1)), Stream: "rows", Data: 3}
	check(t, "another stream", m.observe(numbers), "a stream.chunk 1")
	if a.note() != "warn" {
		t.Errorf("a says %q", a.note())
	}
	check(t, "progress", m.observe(event.Progress{Header: j.Head("a", At(1)), Progress: task.Progress{Current: 2}}), "a progress 1")
	if a.note() != "2" {
		t.Errorf("a says %q", a.note())
	}
	late := j.Snapshot()
	late.Tasks[0].Progress = &task.Progress{Current: 1}
	m.reconcile(late, At(2))
	if a.note() != "2" {
		t.Errorf("an old snapshot makes a say %q", a.note())
	}
	check(t, "a step", m.observe(event.StepStarted{Header: j.Head("a", At(1)), Step: "charge"}), "a step.started 1")
	if a.note() != "step charge" {
		t.Errorf("a says %q", a.note())
	}
	check(t, "the end", m.observe(j.Succeeds("a", At(2))), "a| next", "a| warn", "a task.succeeded 1")
	if a.note() != "warn" {
		t.Errorf("a says %q", a.note())
	}
}

func TestOutputOfAnEndInASnapshot(t *testing.T) {
	t.Parallel()
	j := JobOf("a")
	m := j.model()
	m.observe(j.Starts("a", At(1)))
	m.observe(j.Prints("a", "half"))
	end := j.Succeeds("a", At(2))
	check(t, "the snapshot", m.reconcile(j.Snapshot(), At(3)), "a| half", "a task.succeeded 1")
	check(t, "the event, late", m.observe(end))
}
