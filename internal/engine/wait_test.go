package engine

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
)

// Of several waits the earliest end counts, and the reason that a person may have to act on.
func TestWaitFor(t *testing.T) {
	soon, later, never := time.Unix(1, 0), time.Unix(2, 0), time.Time{}
	type wait struct {
		why   task.Waiting
		until time.Time
	}
	for _, tt := range []struct {
		waits []wait
		want  wait
	}{
		{[]wait{{task.WaitSleep, later}}, wait{task.WaitSleep, later}},
		{[]wait{{task.WaitSignal, never}}, wait{task.WaitSignal, never}},
		{[]wait{{task.WaitSleep, later}, {task.WaitSignal, never}}, wait{task.WaitSignal, later}},
		{[]wait{{task.WaitSignal, never}, {task.WaitSleep, later}, {task.WaitSleep, soon}}, wait{task.WaitSignal, soon}},
		{[]wait{{task.WaitSignal, later}, {task.WaitChildren, never}}, wait{task.WaitSignal, later}},
		{[]wait{{task.WaitChildren, never}, {task.WaitSleep, soon}}, wait{task.WaitChildren, soon}},
		{[]wait{{task.WaitSleep, soon}, {task.WaitChildren, never}, {task.WaitSignal, later}}, wait{task.WaitSignal, soon}},
	} {
		a := new(Attempt)
		for _, w := range tt.waits {
			a.waitFor(w.why, w.until)
		}
		if got := (wait{a.waiting, a.wakeAt}); got != tt.want {
			t.Errorf("%v: waits for %v, want %v", tt.waits, got, tt.want)
		}
	}
}

func TestChildIndex(t *testing.T) {
	for node, want := range map[string]int{"fan[0]": 0, "build/fan[9999]": 9999, "a[7]/first[1][0]": 0, "fan": -1, "fan[x]": -1, "fan[-1]": -1, "fan[1": -1, "": -1} {
		got, err := childIndex(node)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", node, got, want)
		}
	}
}
