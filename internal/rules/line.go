package rules

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxLineLanes is the maximum number of lanes in a store.Line: of the task's type, and again of the
// other types of its queue.
const MaxLineLanes = 100

// LineBound bounds the rows of a lane that are claimed before a task: those before (At, ID), at most
// Most.
type LineBound struct {
	At   time.Time
	ID   task.ID
	Most int
}

// BoundOf returns which due rows of a lane are claimed before own. turns is the number of rows of
// own's lane before own.
func BoundOf(own, lane *store.DispatchRow, turns int, now time.Time) LineBound {
	due := now.Truncate(time.Microsecond).Add(time.Microsecond)
	switch {
	case lane.Priority > own.Priority:
		return LineBound{}
	case lane.Priority < own.Priority:
		return LineBound{At: due, Most: store.MaxCount + 1}
	case lane.Type == own.Type && lane.Group != own.Group: // they take turns
		return LineBound{At: due, Most: min(turns, store.MaxCount) + 1}
	}
	return LineBound{At: own.AvailableAt, ID: own.Task, Most: store.MaxCount + 1}
}

// LaneAhead is a lane of own's queue with the number of its rows that are claimed before own.
type LaneAhead struct {
	Type, Group string
	N           int
	First       time.Time // due time of the first of them
}

// LineOf returns the line of a due task. limits are all of its lane; cut reports that lanes are missing.
func LineOf(t *task.Task, own *store.DispatchRow, lanes []LaneAhead, cut bool, limits []store.LimitRow, now time.Time) *store.Line {
	line := &store.Line{Since: own.AvailableAt, Ahead: store.Count{More: cut}, Queue: store.Count{More: cut}}
	for i := range lanes {
		l := &lanes[i]
		line.Queue = line.Queue.Plus(store.CountOf(l.N))
		if l.Type != own.Type || l.N == 0 {
			continue
		}
		line.Ahead = line.Ahead.Plus(store.CountOf(l.N))
		if l.First.Before(line.Since) {
			line.Since = l.First
		}
	}
	for i := range limits {
		l := &limits[i]
		ownRate(l, t)
		if l.Running == 0 && l.Starts == 0 && !l.RestUntil.After(now) {
			continue
		}
		of := store.LimitLine{LimitRow: *l, Ahead: store.Count{More: cut}}
		for j := range lanes {
			if slices.Contains(store.LimitNames(own.Queue, lanes[j].Type, lanes[j].Group), l.Name) {
				of.Ahead = of.Ahead.Plus(store.CountOf(lanes[j].N))
			}
		}
		line.Limits = append(line.Limits, of)
	}
	return line
}
