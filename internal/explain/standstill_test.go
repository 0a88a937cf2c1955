package explain

import (
	"testing"

	"github.com/goweaver/weaver/task"
)

func TestStandstill(t *testing.T) {
	t.Parallel()
	of := func(node string, s task.State, w task.Waiting) task.Task {
		return task.Task{Node: node, State: s, Waiting: w, Queue: "q", ConcurrencyKey: "db", ConcurrencyLimit: 2}
	}
	paused := of("a", task.Pending, task.WaitPaused)
	full := of("b", task.Pending, task.WaitConcurrency)
	person := of("c", task.Blocked, task.WaitManual)
	for _, tc := range []struct {
		tasks []task.Task
		want  string
	}{
		{nil, ""},
		{[]task.Task{of("d", task.Succeeded, ""), of("e", task.Pending, task.WaitDeps), of("f", task.Pending, task.WaitRetry)}, ""},
		{[]task.Task{paused}, `a waits because the queue "q" is paused`},
		{[]task.Task{full, paused, full, person}, `b, b wait for the concurrency key "db", which lets 2 run at once; a waits because the queue "q" is paused; c waits for a person`},
		{[]task.Task{paused, paused, paused, paused}, `4 tasks wait because the queue "q" is paused`},
		{[]task.Task{paused, of("g", task.Running, "")}, ""},
		{[]task.Task{paused, of("g", task.Ready, "")}, ""},
	} {
		if got := Standstill(tc.tasks); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
