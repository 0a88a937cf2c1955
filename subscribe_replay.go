package weaver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// replay derives events from the rows of a task: all events of the task itself, by number, and those
// of its steps without an event row.
type replay struct {
	ns string
	*store.History
}

func (r *replay) header(attemptNo int, at time.Time, sequence int64) event.Header {
	t := &r.Task
	return event.Header{
		At: at, Namespace: r.ns, TaskID: t.ID, TaskType: t.Type, JobID: t.JobID, Node: t.Node, AttemptNo: attemptNo, Sequence: sequence,
	}
}

// life returns the events of the task itself, by number.
func (r *replay) life() []event.Event {
	t := &r.Task
	list := []event.Event{event.TaskEnqueued{Header: r.header(0, t.CreatedAt, event.FirstSequence(0)), Queue: t.Queue, Input: t.Input}}
	ended := false
	for i := range r.Attempts {
		a := &r.Attempts[i]
		list = append(list, event.TaskStarted{Header: r.header(a.No, a.StartedAt, event.FirstSequence(a.Epoch)), Input: t.Input})
		if !a.FinishedAt.IsZero() {
			ended = i == len(r.Attempts)-1 && a.Outcome != task.OutcomeLeaseLost && t.State.Terminal() && t.FinishedAt.Equal(a.FinishedAt)
			list = append(list, r.end(a, ended))
		}
	}
	if t.State.Terminal() && !ended { // ended by a reaper, an operator, a need or its children
		end := r.last()
		list = append(list, end.Event(r.header(0, t.FinishedAt, end.Sequence(t.Epoch))))
	}
	return list
}

// last returns the event of the task's end.
func (r *replay) last() event.Ending {
	t := &r.Task
	return event.Ending{State: t.State, Output: t.Output, Error: t.Error, Allowed: t.AllowFailure}
}

// end returns the event of an attempt's end; last reports that the task ended with it.
func (r *replay) end(a *task.Attempt, last bool) event.Event {
	var end event.Ending
	if last {
		end = r.last()
	} else {
		end = event.Ending{Error: a.Error, Allowed: r.Task.AllowFailure}
		for i := range r.Decisions {
			if d := &r.Decisions[i]; d.AttemptNo == a.No {
				end.Decision, end.Delay = d.Kind, max(0, d.NextReadyAt.Sub(a.FinishedAt))
			}
		}
		if a.Outcome == task.OutcomeSuspended {
			end.Waiting, end.WakeAt = r.waited(a)
		}
		if r.begins(a, end.Decision) {
			end.Waiting = task.WaitUndo
			if r.Task.Undo != nil {
				end.EndsAs = r.Task.Undo.EndsAs
			}
		}
	}
	end.Outcome, end.Duration = a.Outcome, a.FinishedAt.Sub(a.StartedAt)
	return end.Event(r.header(a.No, a.FinishedAt, end.Sequence(a.Epoch)))
}

// begins reports whether the undo phase of the task began with the end of an attempt without a
// decision to continue: an attempt of that phase is next, or still to come.
func (r *replay) begins(a *task.Attempt, decided task.DecisionKind) bool {
	switch a.Outcome {
	case task.OutcomeFailure, task.OutcomeCancelled, task.OutcomeBlocked, task.OutcomeDecodeFailed:
	default:
		return false
	}
	if decided != "" && decided != task.DecideMarkDead {
		return false
	}
	u := r.Task.Undo
	for i := range r.Attempts {
		next := &r.Attempts[i]
		if next.No <= a.No || next.Outcome == task.OutcomeReleased || next.Outcome == task.OutcomeLeaseLost {
			continue
		}
		if u != nil && !next.StartedAt.Before(u.Began) {
			break
		}
		return next.Outcome == task.OutcomeUndone || next.Outcome == task.OutcomeUndoFailed
	}
	return u != nil && u.Began.Equal(a.FinishedAt)
}

// waited returns the waiting reason of a suspended attempt and its latest wake time; zero: no time
// limit. Of several waits it chooses as the engine does: the earliest instant; a signal before
// children, and a time last.
func (r *replay) waited(a *task.Attempt) (why task.Waiting, until time.Time) {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.AttemptNo > a.No || !s.CompletedAt.IsZero() && !s.CompletedAt.After(a.FinishedAt) && s.Kind != task.KindSleep {
			continue // of a later attempt, or already ended
		}
		switch s.Kind {
		case task.KindSignal:
			why = task.WaitSignal
		case task.KindCall:
			if why != task.WaitSignal {
				why = task.WaitChildren
			}
		case task.KindSleep:
			if !s.WakeAt.After(a.FinishedAt) {
				continue
			}
			if why == task.WaitNone {
				why = task.WaitSleep
			}
		default:
			continue
		}
		if !s.WakeAt.IsZero() && (until.IsZero() || s.WakeAt.Before(until)) {
			until = s.WakeAt
		}
	}
	return why, until
}

// tryOf identifies a try of a step.
type tryOf struct {
	attempt int
	step    string
	try     int
}

// steps returns the events of the steps that an attempt recorded, except known ones. They have no
// number.
func (r *replay) steps(a *task.Attempt, known map[tryOf]bool) []event.Event {
	var found []*task.Step
	for i := range r.Steps {
		s := &r.Steps[i]
		key := tryOf{s.AttemptNo, s.Name, s.Try}
		if s.AttemptNo != a.No || s.State == task.StepWaiting || s.State == task.StepBegun || s.Kind != task.KindStep && s.Kind != task.KindCleanup && s.Kind != task.KindUndo || known[key] {
			continue
		}
		known[key] = true
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(x, y *task.Step) int {
		return cmp.Or(x.CompletedAt.Compare(y.CompletedAt), cmp.Compare(x.Index, y.Index), cmp.Compare(x.Try, y.Try))
	})
	var list []event.Event
	for _, s := range found {
		h, took := r.header(a.No, s.CompletedAt, 0), s.CompletedAt.Sub(s.StartedAt)
		if s.Error != nil {
			list = append(list, event.StepFailed{Header: h, Step: s.Name, Index: s.Index, Try: s.Try, Error: *s.Error, Duration: took, Undo: s.Kind == task.KindUndo})
		} else {
			list = append(list, event.StepCompleted{Header: h, Step: s.Name, Index: s.Index, Output: s.Value, Duration: took, Undo: s.Kind == task.KindUndo})
		}
	}
	return list
}

// stored builds the event of a row.
func (r *replay) stored(row *store.EventRow, known map[tryOf]bool) (event.Event, error) {
	epoch := event.EpochOf(row.Seq)
	no := 0
	for i := range r.Attempts {
		if r.Attempts[i].Epoch == epoch {
			no = r.Attempts[i].No
		}
	}
	if err := seal.Failure(row.Body); err != nil {
		return nil, fmt.Errorf("event %d of task %s, %s, cannot be read: %w", row.Seq, r.Task.ID, row.Type, err)
	}
	ev, err := event.Decode(row.Type, r.header(no, row.At, row.Seq), row.Body)
	switch done := ev.(type) {
	case event.StepFailed:
		known[tryOf{no, done.Step, done.Try}] = true
	case event.StepCompleted:
		if s := r.completed(done.Step, no); s != nil {
			done.Output = s.Value
			known[tryOf{no, s.Name, s.Try}] = true
		}
		ev = done
	}
	return ev, err
}

// completed returns the completed step of a name that an attempt recorded, or nil.
func (r *replay) completed(name string, attempt int) *task.Step {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Name == name && s.State == task.StepCompleted && s.AttemptNo == attempt {
			return s
		}
	}
	return nil
}
