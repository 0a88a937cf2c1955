package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// JobCounts is where the tasks of a job stand.
type JobCounts struct {
	States  map[task.State]int   // only those in which some are
	Waiting map[task.Waiting]int // of those that are pending or blocked; without those that have no reason
	NextDue time.Time            // when the first of those that wait for a time is due; zero: none does
	Lanes   []LaneCount          // of those that are ready, the most first
}

// LaneCount is how many ready tasks a lane has.
type LaneCount struct {
	Queue string
	Type  string
	Ready int
}

// Add counts n tasks that read as t.
func (c *JobCounts) Add(t *task.Task, n int) {
	if c.States == nil {
		c.States, c.Waiting = make(map[task.State]int), make(map[task.Waiting]int)
	}
	c.States[t.State] += n
	if t.State == task.Ready {
		i := slices.IndexFunc(c.Lanes, func(l LaneCount) bool { return l.Queue == t.Queue && l.Type == t.Type })
		if i < 0 {
			i = len(c.Lanes)
			c.Lanes = append(c.Lanes, LaneCount{Queue: t.Queue, Type: t.Type})
		}
		c.Lanes[i].Ready += n
	}
	if t.Waiting != task.WaitNone {
		c.Waiting[t.Waiting] += n
	}
	if t.State == task.Pending && waitsForTime(t.Waiting) && !t.ReadyAt.IsZero() && (c.NextDue.IsZero() || t.ReadyAt.Before(c.NextDue)) {
		c.NextDue = t.ReadyAt
	}
}

// waitsForTime reports whether a pending task is due at an instant that is set.
func waitsForTime(w task.Waiting) bool {
	return !w.OnTasks() && w != task.WaitConcurrency && w != task.WaitPaused
}

// Sort puts the lanes into their order.
func (c *JobCounts) Sort() {
	slices.SortFunc(c.Lanes, func(a, b LaneCount) int {
		return cmp.Or(b.Ready-a.Ready, cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
}
