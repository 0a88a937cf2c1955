package view

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// Past summarizes the attempts of a task before the last one. The status of a job
// has the last attempt only.
type Past struct {
	Began    time.Time // begin of the first attempt
	Attempts int       // attempts that counted: without those below and sleeps
	Lost     int       // attempts whose process died or stopped responding
	Released int       // attempts ended by an interrupt
	NotRun   int       // attempts that the worker could not run
}

// PastOf returns the past of a task from all its attempts.
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

// String returns the cell of a table.
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

// duration returns the time from the beginning of a task's first attempt to the
// end of its last one, or until now, including waits.
func (s *summary) duration(t *weaver.TaskInfo) time.Duration {
	switch {
	case t.StartedAt.IsZero():
		return 0
	case t.State == task.Running:
		return max(0, s.now.Sub(s.pastOf(t).Began))
	case t.FinishedAt.IsZero():
		return 0 // between two attempts: the end of the last one is unknown
	}
	return max(0, t.FinishedAt.Sub(s.pastOf(t).Began))
}

// pastOf returns the number of attempts of a task, including the current one.
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
