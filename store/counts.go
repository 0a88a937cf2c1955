package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// JobCounts counts the tasks of a job by state, waiting reason and lane.
type JobCounts struct {
	States  map[task.State]int   // only states with tasks
	Waiting map[task.Waiting]int // pending and blocked tasks that have a reason
	NextDue time.Time            // soonest due time among tasks that wait for a time; zero: no such task
	Lanes   []LaneCount          // lanes of ready tasks, largest first
}

// LaneCount is the number of ready tasks in a lane.
type LaneCount struct {
	Queue string
	Type  string
	Ready int
}

// Add counts n tasks with the state of t.
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

// waitsForTime reports whether a pending task is due at a known instant.
func waitsForTime(w task.Waiting) bool {
	return !w.OnTasks() && w != task.WaitConcurrency && w != task.WaitPaused
}

// Sort sorts the lanes.
func (c *JobCounts) Sort() {
	slices.SortFunc(c.Lanes, func(a, b LaneCount) int {
		return cmp.Or(b.Ready-a.Ready, cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
}
