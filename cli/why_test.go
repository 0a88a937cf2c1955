package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// id returns 00000000000000000000000000 with n at its end.
func id(n byte) task.ID { return task.ID{15: n} }

// histories is a client whose store has these.
type histories struct {
	tasks []weaver.History
	read  map[task.ID]int
	fails task.ID // whose history cannot be read
}

var errRead = errors.New("the disk is gone")

func (b *histories) History(_ context.Context, want task.ID) (weaver.History, error) {
	if b.read[want]++; want == b.fails {
		return weaver.History{}, errRead
	}
	for _, h := range b.tasks {
		if h.Task.ID == want {
			return h, nil
		}
	}
	return weaver.History{}, fmt.Errorf("task %s: %w", want, store.ErrNotFound)
}

func (b *histories) List(context.Context, weaver.Filter) ([]weaver.TaskInfo, string, error) {
	return nil, "", nil
}

func (b *histories) JobStatus(_ context.Context, want task.ID) (weaver.JobStatus, error) {
	return weaver.JobStatus{}, fmt.Errorf("job %s: %w", want, store.ErrNotFound)
}

// waiting is a task that needs others.
func waiting(n byte, needs ...byte) weaver.History {
	h := weaver.History{Task: task.Task{ID: id(n), Type: "acme.demo.ok.v1", State: task.Pending, Waiting: task.WaitDeps}}
	for _, other := range needs {
		h.Needs = append(h.Needs, store.Need{ID: id(other), Kind: task.OnSuccess, State: task.Pending})
	}
	return h
}

// Why reads the history of each task that matters, once.
func TestWhyReadsWhatIsMissing(t *testing.T) {
	t.Parallel()
	blocked := waiting(5)
	blocked.Task.State, blocked.Task.Waiting = task.Blocked, task.WaitManual
	b := &histories{
		tasks: []weaver.History{waiting(1, 2, 3), waiting(2, 4), waiting(3, 4), waiting(4, 5, 9), blocked, waiting(6)},
		read:  make(map[task.ID]int),
	}
	text, _, err := cli.Why(t.Context(), b, now, 10, id(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Task 00000000000000000000000001, of type acme.demo.ok.v1\n\nIt waits for 2 other tasks.\n  It waits for 00000000000000000000000002 (",
		"        00000000000000000000000004 waits for 00000000000000000000000005 (",
		"waits for 00000000000000000000000009, which is not there any more.\n",
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
	b := &histories{tasks: []weaver.History{waiting(1, 2)}, read: make(map[task.ID]int), fails: id(2)}
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

// A long past is counted before its last attempts are shown.
func TestWhyPastIsShort(t *testing.T) {
	t.Parallel()
	h := waiting(1)
	for n := range 14 {
		h.Attempts = append(h.Attempts, task.Attempt{
			No: n + 1, StartedAt: now.Add(time.Duration(n-60) * time.Minute), FinishedAt: now.Add(time.Duration(n-59) * time.Minute), Outcome: task.OutcomeSuspended,
		})
	}
	text, _, err := cli.Why(t.Context(), &histories{tasks: []weaver.History{h}, read: make(map[task.ID]int)}, now, 10, id(1))
	if err != nil {
		t.Fatal(err)
	}
	if want := "  Before that: 4 attempts (4 suspended), which -o json tells.\n"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
	if n := strings.Count(text, "Attempt "); n != 10 {
		t.Errorf("%d attempts are shown, want 10", n)
	}
}
