package cli_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// id returns 00000000000000000000000000 with n at its end.
func id(n byte) task.ID { return task.ID{15: n} }

// histories is a client for a store with these histories.
type histories struct {
	tasks []store.History
	read  map[task.ID]int
	fails task.ID // the task whose history cannot be read

	orphans map[task.ID]bool
}

var errRead = errors.New("the disk is gone")

func (b *histories) History(_ context.Context, want task.ID) (store.History, error) {
	if b.read[want]++; want == b.fails {
		return store.History{}, errRead
	}
	for _, h := range b.tasks {
		if h.Task.ID == want {
			return h, nil
		}
	}
	return store.History{}, fmt.Errorf("task %s: %w", want, store.ErrNotFound)
}

// List returns the tasks of a job, newest first.
func (b *histories) List(_ context.Context, f weaver.Filter) (tasks []weaver.TaskInfo, _ string, _ error) {
	for _, h := range slices.Backward(b.tasks) {
		if !f.Job.IsZero() && h.Task.JobID == f.Job {
			tasks = append(tasks, h.Task)
		}
	}
	return tasks, "", nil
}

func (b *histories) Job(_ context.Context, want task.ID) (weaver.JobInfo, error) {
	return weaver.JobInfo{ID: want, Meta: map[string]string{"weaver.file": "/srv/nightly.yaml"}}, nil
}

func (b *histories) Edges(_ context.Context, job task.ID) (edges []store.GraphEdge, _ error) {
	for _, h := range b.tasks {
		for _, n := range h.Needs {
			if h.Task.JobID == job {
				edges = append(edges, store.GraphEdge{To: h.Task.ID, From: n.ID, Kind: n.Kind, Decided: n.Done})
			}
		}
	}
	return edges, nil
}

func (b *histories) Orphans(_ context.Context, ids ...task.ID) (orphans []task.ID, _ error) {
	for _, id := range ids {
		if b.orphans[id] {
			orphans = append(orphans, id)
		}
	}
	return orphans, nil
}

func (*histories) Workers(context.Context) ([]store.WorkerStatus, error) { return nil, nil }

func (*histories) Overview(context.Context, store.OverviewRequest) (store.Overview, error) {
	return store.Overview{}, nil
}

func (*histories) Stats(context.Context, ops.StatsRequest) (ops.Stats, error) {
	return ops.Stats{}, nil
}

func (b *histories) JobStatus(_ context.Context, want task.ID) (weaver.JobStatus, error) {
	st := weaver.JobStatus{JobInfo: weaver.JobInfo{ID: want, State: task.JobRunning}}
	if !slices.ContainsFunc(b.tasks, func(h store.History) bool { return h.Task.JobID == want }) {
		return st, fmt.Errorf("job %s: %w", want, store.ErrNotFound)
	}
	return st, nil
}

// waiting returns a task that needs others.
func waiting(n byte, needs ...byte) store.History {
	h := store.History{Task: task.Task{ID: id(n), Type: "acme.demo.ok.v1", State: task.Pending, Waiting: task.WaitDeps}}
	for _, other := range needs {
		h.Needs = append(h.Needs, store.Need{ID: id(other), Kind: task.OnSuccess, State: task.Pending})
	}
	return h
}

// Why reads the history of each relevant task once.
func TestWhyReadsWhatIsMissing(t *testing.T) {
	t.Parallel()
	blocked := waiting(5)
	blocked.Task.State, blocked.Task.Waiting = task.Blocked, task.WaitManual
	b := &histories{
		tasks: []store.History{waiting(1, 2, 3), waiting(2, 4), waiting(3, 4), waiting(4, 5, 9), blocked, waiting(6)},
		read:  make(map[task.ID]int),
	}
	text, _, err := cli.Why(t.Context(), b, now, 10, id(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Task 00000000000000000000000001, of type acme.demo.ok.v1\n\nIt waits for 2 other tasks.\n  It waits for 00000000000000000000000002 (",
		"        00000000000000000000000004 waits for 00000000000000000000000005 (",
		"waits for 00000000000000000000000009, which no longer exists.\n",
		"What you can do\n  weaver task unblock 00000000000000000000000005\n",
	} {
		if !strings.Contains(text, want) && !strings.Contains(text, strings.TrimLeft(want, " ")) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for n, want := range []int{1: 1, 1, 1, 1, 1, 0, 9: 1} {
		if got := b.read[id(byte(n))]; got != want {
			t.Errorf("the history of task %d was read %d times, want %d", n, got, want)
		}
	}
}

func TestWhyFails(t *testing.T) {
	t.Parallel()
	b := &histories{tasks: []store.History{waiting(1, 2)}, read: make(map[task.ID]int), fails: id(2)}
	if _, _, err := cli.Why(t.Context(), b, now, 10, id(1)); !errors.Is(err, errRead) {
		t.Errorf("a need that cannot be read: %v", err)
	}
	if _, _, err := cli.Why(t.Context(), b, now, 10, id(2)); !errors.Is(err, errRead) {
		t.Errorf("a task that cannot be read: %v", err)
	}
	if _, _, err := cli.Why(t.Context(), b, now, 10, id(3)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("neither a task nor a job: %v, want one that is ErrNotFound", err)
	}
}

// A long past is summarized; its last attempts are shown.
func TestWhyPastIsShort(t *testing.T) {
	t.Parallel()
	h := waiting(1)
	for n := range 14 {
		h.Attempts = append(h.Attempts, task.Attempt{
			No: n + 1, StartedAt: now.Add(time.Duration(n-60) * time.Minute), FinishedAt: now.Add(time.Duration(n-59) * time.Minute), Outcome: task.OutcomeSuspended,
		})
	}
	text, _, err := cli.Why(t.Context(), &histories{tasks: []store.History{h}, read: make(map[task.ID]int)}, now, 10, id(1))
	if err != nil {
		t.Fatal(err)
	}
	if want := "  Before that: 4 attempts (4 suspended), which -o json lists.\n"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
	if n := strings.Count(text, "Attempt "); n != 10 {
		t.Errorf("%d attempts are shown, want 10", n)
	}
}

// The root of a chain of 10,000 tasks is found with three histories: those of the task, of its need and of the root.
func TestWhyReadsLittleOfALongChain(t *testing.T) {
	t.Parallel()
	job := task.ID{0: 7}
	b := &histories{read: make(map[task.ID]int)}
	for n := range 10_000 {
		h := store.History{Task: task.Task{
			ID: task.ID{1: 1, 14: byte(n >> 8), 15: byte(n)}, JobID: job, Node: fmt.Sprint("c", n), Type: "acme.demo.ok.v1",
			State: task.Cancelled, Error: &task.Error{Kind: task.KindDependencyFailed},
		}}
		if n == 0 {
			h.Task.State, h.Task.Error = task.Failed, &task.Error{Kind: task.KindHandler, Message: "exit status 1"}
		} else {
			before := b.tasks[n-1].Task
			h.Needs = []store.Need{{ID: before.ID, Node: before.Node, Kind: task.OnSuccess, State: before.State, Done: true}}
		}
		b.tasks = append(b.tasks, h)
	}
	text, _, err := cli.Why(t.Context(), b, now, 10, b.tasks[9_999].Task.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, answer, _ := strings.Cut(text, "\n\n")
	if want := "c0 failed: exit status 1; c9999 needs it through c9998 … c1.\n"; !strings.HasPrefix(answer, want) {
		t.Errorf("the first line is not %q:\n%s", want, text)
	}
	if len(b.read) != 3 {
		t.Errorf("%d histories were read, want 3", len(b.read))
	}
}

// The commands that take over the tasks of a dead process depend on the origin of the tasks.
func TestWhyProcessIsGone(t *testing.T) {
	t.Parallel()
	runs := func(n byte, job task.ID) store.History {
		return store.History{Task: task.Task{ID: id(n), JobID: job, Type: "acme.demo.ok.v1", State: task.Running, LeasedBy: "web1:7", LeaseExpiresAt: now.Add(time.Minute)}}
	}
	waiter := waiting(4, 3)
	b := &histories{
		tasks:   []store.History{runs(1, task.ID{}), runs(2, id(99)), runs(3, task.ID{}), waiter},
		read:    make(map[task.ID]int),
		orphans: map[task.ID]bool{id(1): true, id(2): true, id(3): true},
	}
	for about, want := range map[task.ID]string{
		id(1):  ", but its process is gone; `weaver worker` goes on.\n",
		id(2):  ", but its process is gone; `weaver worker` or `weaver run /srv/nightly.yaml` goes on.\n",
		id(99): ", but its process is gone; `weaver worker` or `weaver run /srv/nightly.yaml` goes on.\n",
		id(4):  ", but its process is gone; `weaver worker` goes on.\n",
	} {
		text, _, err := cli.Why(t.Context(), b, now, 10, about)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
