package view

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// Past is what a task did before its last attempt, which is all that a job's
// status has.
type Past struct {
	Began    time.Time // its first attempt
	Attempts int       // that counted: all but those below and those that slept
	Lost     int       // attempts whose process died or fell silent
	Released int       // attempts that an interrupt ended
	NotRun   int       // attempts that their worker could not run
}

// PastOf returns the past of a task from its attempts, the last one included.
func PastOf(attempts []task.Attempt) Past {
	var p Past
	for i := range attempts {
		a := &attempts[i]
		if p.Began.IsZero() || a.StartedAt.Before(p.Began) {
			p.Began = a.StartedAt
		}
		switch a.Outcome {
		case task.OutcomeLeaseLost:
			p.Lost++
		case task.OutcomeReleased:
			if a.Error != nil {
				p.NotRun++
			} else {
				p.Released++
			}
		case task.OutcomeSuspended:
		default:
			p.Attempts++
		}
	}
	return p
}

// String is the cell of a table.
func (p Past) String() string {
	said := fmt.Sprint(p.Attempts)
	if p.Lost > 0 {
		said += fmt.Sprintf(", %d lost", p.Lost)
	}
	if p.Released > 0 {
		said += fmt.Sprintf(", %d interrupted", p.Released)
	}
	if p.NotRun > 0 {
		said += fmt.Sprintf(", %d not run", p.NotRun)
	}
	return said
}

// duration is how long a task took from the beginning of its first attempt to the
// end of its last one, or takes until now: with the waits between them.
func (s *summary) duration(t *weaver.TaskInfo) time.Duration {
	switch {
	case t.StartedAt.IsZero():
		return 0
	case t.State == task.Running:
		return max(0, s.now.Sub(s.pastOf(t).Began))
	case t.FinishedAt.IsZero():
		return 0 // between two attempts: when the last one ended is not known
	}
	return max(0, t.FinishedAt.Sub(s.pastOf(t).Began))
}

// pastOf returns the attempts of a task, the current one included.
func (s *summary) pastOf(t *weaver.TaskInfo) Past {
	if p, ok := s.past[t.ID]; ok {
		return p
	}
	p := Past{Began: t.StartedAt, Attempts: t.AttemptCount}
	if t.State == task.Running {
		p.Attempts++
	}
	return p
}
