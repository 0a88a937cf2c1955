package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// listed lists changes: "fetch task.started 1", "fetch| line", "fetch: note".
func listed(changes []change) []string {
	var all []string
	for _, c := range changes {
		switch {
		case c.event == nil && c.node == nil: // reason of a standstill: TestStandstill
		case c.event != nil && c.node == nil:
			all = append(all, c.event.Type())
		case c.event != nil:
			all = append(all, fmt.Sprintf("%s %s %d", c.node.key, c.event.Type(), c.event.Head().AttemptNo))
		case c.note != "":
			all = append(all, c.node.key+": "+c.note)
		default:
			all = append(all, c.node.key+"| "+c.line)
		}
	}
	return all
}

func check(t *testing.T, what string, got []change, want ...string) {
	t.Helper()
	if list := listed(got); !slices.Equal(list, want) {
		t.Errorf("%s shows %q, want %q", what, list, want)
	}
}

// fact is one change: its event, and the state of the store after it.
type fact struct {
	event    event.Event // nil: none is emitted
	snapshot JobTasks
	key      string // its display form
}

// life is a possible history of one task.
type life struct {
	name  string
	facts func(j *Job) []fact
}

func (j *Job) fact(ev event.Event) fact {
	h := ev.Head()
	return fact{ev, j.Snapshot(), fmt.Sprintf("%s %s %d", h.Node, ev.Type(), h.AttemptNo)}
}

func lives() []life {
	return []life{
		{"succeeds at the second attempt", func(j *Job) []fact {
			return []fact{
				{nil, j.Snapshot(), ""},
				j.fact(j.Starts("a", At(1))),
				j.fact(j.Retries("a", "no", time.Second, At(2))),
				j.fact(j.Starts("a", At(3))),
				j.fact(j.Succeeds("a", At(4))),
			}
		}},
		{"fails", func(j *Job) []fact {
			return []fact{
				{nil, j.Snapshot(), ""},
				j.fact(j.Starts("a", At(1))),
				j.fact(j.Fails("a", "no", At(2))),
			}
		}},
		{"is blocked and then succeeds", func(j *Job) []fact {
			facts := []fact{
				{nil, j.Snapshot(), ""},
				j.fact(j.Starts("a", At(1))),
				j.fact(j.Blocks("a", "who?", At(2))),
			}
			t := j.Task("a")
			t.State, t.Waiting, t.UpdatedAt = task.Ready, task.WaitNone, At(3)
			return append(
				facts,
				fact{nil, j.Snapshot(), ""},
				j.fact(j.Starts("a", At(4))),
				j.fact(j.Succeeds("a", At(5))),
			)
		}},
		{"fails, is retried by a person, succeeds", func(j *Job) []fact {
			facts := []fact{
				{nil, j.Snapshot(), ""},
				j.fact(j.Starts("a", At(1))),
				j.fact(j.Fails("a", "no", At(2))),
			}
			t := j.Task("a")
			t.State, t.UpdatedAt, t.FinishedAt, t.AttemptCount = task.Ready, At(3), time.Time{}, 0
			t.Epoch++
			return append(
				facts,
				fact{nil, j.Snapshot(), ""},
				j.fact(j.Starts("a", At(4))),
				j.fact(j.Succeeds("a", At(5))),
			)
		}},
	}
}

// Snapshots arrive late, and events of other processes do not arrive at all. In
// every interleaving the state never goes back, every change is shown once and in
// order, and the end is shown.
func TestEventsAndSnapshotsInEveryOrder(t *testing.T) {
	t.Parallel()
	for _, l := range lives() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			facts := l.facts(JobOf("a", "b < a"))
			runs := 0
			for mask := range 1 << len(facts) { // the set of emitted events
				walk(facts, mask, nil, func(way []int) {
					runs++
					meet(t, facts, way)
				})
				if t.Failed() {
					return
				}
			}
			if runs < 30 {
				t.Errorf("only %d ways were tried", runs)
			}
		})
	}
}

// walk tries every interleaving of events and snapshots. Step 2i is the event of
// fact i, and 2i+1 its snapshot. The snapshot of a fact follows the fact, but may
// precede its event, which is emitted after the commit.
func walk(facts []fact, mask int, way []int, visit func([]int)) {
	var step func(events, snapshots int, way []int)
	step = func(events, snapshots int, way []int) {
		for events < len(facts) && (facts[events].event == nil || mask>>events&1 == 0) {
			events++
		}
		if events >= len(facts) && snapshots == len(facts) {
			visit(way)
			return
		}
		if events < len(facts) {
			step(events+1, snapshots, append(slices.Clip(way), 2*events))
		}
		// The store is at most one fact ahead of its emitted event.
		if snapshots < len(facts) && snapshots <= events {
			step(events, snapshots+1, append(slices.Clip(way), 2*snapshots+1))
		}
	}
	step(0, 0, way)
}

func meet(t *testing.T, facts []fact, way []int) {
	t.Helper()
	m := JobOf("a", "b < a").model()
	n := m.byName["a"]
	var all []string
	place := 0
	for _, step := range way {
		if step%2 == 0 {
			all = append(all, listed(m.observe(facts[step/2].event))...)
		} else {
			all = append(all, listed(m.reconcile(facts[step/2].snapshot, At(9)))...)
		}
		now := 2 * n.attempt
		if n.state != task.Running {
			now++
		}
		if now < place {
			t.Errorf("way %v goes back to attempt %d, %s", way, n.attempt, n.state)
		}
		place = now
	}
	last := facts[len(facts)-1].snapshot.Tasks[0]
	if n.state != last.State || n.attempt != last.AttemptNo {
		t.Errorf("way %v ends as attempt %d, %s, want %d, %s", way, n.attempt, n.state, last.AttemptNo, last.State)
	}
	// The shown changes are a subsequence of the facts.
	at := 0
	var keys []string
	for _, f := range facts {
		keys = append(keys, f.key)
	}
	for _, key := range all {
		if !strings.HasPrefix(key, "a task.") {
			continue // notes, and the outcome of b
		}
		i := slices.Index(keys[at:], key)
		if i < 0 {
			t.Errorf("way %v shows %q twice or too late: %q", way, key, all)
			return
		}
		at += i + 1
	}
	if at != len(facts) {
		t.Errorf("way %v does not show the end: %q", way, all)
	}
}

func TestStaleSnapshots(t *testing.T) {
	t.Parallel()
	j := JobOf("a", "b < a")
	m := j.model()
	fresh := j.Snapshot()
	m.observe(j.Starts("a", At(1)))
	running := j.Snapshot()
	check(t, "a snapshot from before the start", m.reconcile(fresh, At(2)))
	if n := m.byName["a"]; n.state != task.Running {
		t.Errorf("the snapshot undid the start: %s", n.state)
	}
	m.observe(j.Fails("a", "no", At(3)))
	check(t, "a snapshot from before the end", m.reconcile(running, At(4)))
	check(t, "a snapshot from before everything", m.reconcile(fresh, At(4)))
	if n := m.byName["a"]; n.state != task.Failed || n.err == nil {
		t.Errorf("the snapshot undid the end: %s, %v", n.state, n.err)
	}
	after := j.Snapshot()
	check(t, "the snapshot after it", m.reconcile(after, At(5)), "b task.cancelled 0")
	check(t, "the same snapshot", m.reconcile(after, At(6)))
	check(t, "an old one once more", m.reconcile(fresh, At(7)))
	if b := m.byName["b"]; b.state != task.Cancelled || b.note() != "a did not succeed" {
		t.Errorf("b is %s: %s", b.state, b.note())
	}
	// A person retries a: the epoch rises, and b waits again.
	for i := range j.Tasks {
		j.Tasks[i].Epoch++
	}
	j.Task("a").State, j.Task("a").FinishedAt = task.Ready, time.Time{}
	b := j.Task("b")
	b.State, b.Waiting, b.FinishedAt, b.Error = task.Pending, task.WaitDeps, time.Time{}, nil
	check(t, "a retry", m.reconcile(j.Snapshot(), At(8)), "a: is tried again", "b: is tried again")
	check(t, "a snapshot of the failure", m.reconcile(after, At(9)))
	if n := m.byName["a"]; n.state != task.Ready {
		t.Errorf("the snapshot undid the retry: %s", n.state)
	}
}

func TestForeignAndUnknownTasks(t *testing.T) {
	t.Parallel()
	j := JobOf("a")
	m := j.model()
	other := event.TaskStarted{Header: event.Header{JobID: ID(99), TaskID: j.Tasks[0].ID, AttemptNo: 1}}
	check(t, "an event of another job", m.observe(other))
	outside := event.TaskStarted{Header: event.Header{TaskID: j.Tasks[0].ID, AttemptNo: 1}}
	check(t, "an event of a task without a job", m.observe(outside))
	check(t, "an event of a job", m.observe(event.JobStarted{JobHeader: event.JobHeader{JobID: j.ID}}))

	j.Tasks = append(j.Tasks, weaver.TaskInfo{ID: ID(7), JobID: j.ID, Node: "child", ParentID: j.Tasks[0].ID, State: task.Ready})
	check(t, "an event of a new task", m.observe(j.Starts("child", At(1))), "child task.started 1")
	j.Tasks = append(j.Tasks, weaver.TaskInfo{ID: ID(8), JobID: j.ID, State: task.Running, AttemptNo: 1, StartedAt: At(1)})
	check(t, "a snapshot of a new task", m.reconcile(j.Snapshot(), At(2)), ID(8).String()+" task.started 1")
	if got := drawn(m, 9); got != "a\n└─ child\n"+ID(8).String()+"\n" {
		t.Errorf("drawn:\n%s", got)
	}
	empty := newModel(JobTasks{}, nil, nil)
	if f := empty.frame(80, 24, Start, At(1)); len(f.text(text.Painter{}, 80)) != 1 {
		t.Error("a job without tasks is more than its total")
	}
}

func TestSnapshotsAlone(t *testing.T) {
	t.Parallel()
	j := JobOf("a", "b < a", "c")
	m := j.model()
	j.Starts("a", At(1))
	j.Task("a").Progress = &task.Progress{Current: 1, Total: 4, Message: "reading"}
	check(t, "a start in another process", m.reconcile(j.Snapshot(), At(2)), "a task.started 1")
	a := m.byName["a"]
	if a.note() != "1 of 4: reading" || !a.begun.Equal(At(1)) {
		t.Errorf("a says %q since %s", a.note(), a.begun)
	}
	j.Retries("a", "exit status 3\nlast words", 4*time.Second, At(2))
	got := m.reconcile(j.Snapshot(), At(2))
	check(t, "a retry in another process", got, "a task.retrying 1")
	if ev := got[0].event.(event.TaskRetrying); ev.Delay != 4*time.Second || ev.Duration != time.Second || ev.Error.Message == "" || !ev.At.Equal(At(2)) {
		t.Errorf("the event: %+v", ev)
	}
	if long, _ := a.status(At(3)); long != "retry in 3s" || a.note() != "exit status 3" {
		t.Errorf("a: %s, %q", long, a.note())
	}
	// Between two snapshots it ran, lost its worker, ran again and ended.
	j.Starts("a", At(6))
	j.Starts("a", At(7))
	j.Succeeds("a", At(9))
	got = m.reconcile(j.Snapshot(), At(10))
	check(t, "much at once", got, "a task.started 3", "a task.succeeded 3")
	if ev := got[1].event.(event.TaskSucceeded); ev.Duration != 2*time.Second || !ev.At.Equal(At(9)) || ev.Namespace != m.namespace {
		t.Errorf("the event: %+v", ev)
	}
	// Its worker released it.
	j.Starts("b", At(10))
	m.reconcile(j.Snapshot(), At(10))
	j.Task("b").State = task.Ready
	check(t, "a lost worker", m.reconcile(j.Snapshot(), At(11)), "b: was stopped, and begins again with the next worker")
	// It sleeps.
	j.Starts("b", At(11))
	b := j.Task("b")
	b.State, b.Waiting, b.ReadyAt = task.Pending, task.WaitSleep, At(20)
	check(t, "a sleep", m.reconcile(j.Snapshot(), At(12)), "b task.started 2", "b task.suspended 2")
	if long, short := m.byName["b"].status(At(12)); long != "wakes in 8s" || short != "asleep" {
		t.Errorf("b: %s, %s", long, short)
	}
	// An operator cancels a task that does not run.
	c := j.Task("c")
	c.State, c.FinishedAt, c.CancelBy, c.CancelReason = task.Cancelled, At(12), "ops", "too late"
	got = m.reconcile(j.Snapshot(), At(12))
	check(t, "a cancel", got, "c task.cancelled 0")
	if ev := got[0].event.(event.TaskCancelled); ev.Error.Kind != task.KindCancelled || ev.Error.Message != "ops: too late" {
		t.Errorf("the event: %+v", ev)
	}
}

func TestBlockedJob(t *testing.T) {
	t.Parallel()
	j := JobOf("a", "b < a")
	m := j.model()
	m.observe(j.Starts("a", At(1)))
	m.observe(j.Blocks("a", "who?", At(2)))
	j.State = task.JobBlocked
	got := m.reconcile(j.Snapshot(), At(3))
	check(t, "the snapshot", got, "job.blocked")
	if ev := got[0].event.(event.JobBlocked); !slices.Equal(ev.Blocked, []string{"a"}) || ev.Name != j.Name || ev.JobID != j.ID {
		t.Errorf("the event: %+v", ev)
	}
	check(t, "the same snapshot", m.reconcile(j.Snapshot(), At(4)))
	j.State, j.Task("a").State = task.JobRunning, task.Ready
	check(t, "the help of a person", m.reconcile(j.Snapshot(), At(5)), "a: is unblocked")
	j.State, j.Task("a").State = task.JobBlocked, task.Blocked
	check(t, "another block", m.reconcile(j.Snapshot(), At(6)), "a task.blocked 1", "job.blocked")
}
