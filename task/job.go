package task

import "time"

// MetaPrefix begins the job metadata keys reserved for the weaver command. MetaParams is the key of the pipeline's
// params.
const (
	MetaPrefix = "weaver."
	MetaParams = MetaPrefix + "params"
)

// NewJob is a job about to be stored with its tasks.
type NewJob struct {
	ID     ID
	Name   string
	Budget Budget
	Meta   map[string]string

	BasedOn        []ID   // jobs whose results this job uses; retention removes them after it
	IdempotencyKey string // unique per (namespace, name) while the job exists; optional
}

// ParallelKey returns the concurrency key that the tasks of a job have if it restricts how many of them run at once.
func ParallelKey(job ID) string { return "job/" + job.String() }

// JobState is the state of a job as a whole.
type JobState string

// The states of a job.
const (
	JobRunning   JobState = "running"
	JobBlocked   JobState = "blocked"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Terminal reports whether a job in this state has no unfinished task.
func (s JobState) Terminal() bool {
	return s == JobSucceeded || s == JobFailed || s == JobCancelled
}

// Job is a job as a reader sees it. Its state follows from its counters.
type Job struct {
	ID              ID                `json:"id"`
	Name            string            `json:"name"`
	State           JobState          `json:"state"`
	Budget          Budget            `json:"budget"`
	Meta            map[string]string `json:"meta,omitempty"`
	BasedOn         []ID              `json:"based_on,omitempty"` // jobs whose results this job uses; retention removes them after it
	IdempotencyKey  string            `json:"idempotency_key,omitempty"`
	Counters        JobCounters       `json:"counters"`
	AttemptsUsed    int               `json:"attempts_used,omitempty"` // attempts of all tasks that count; maintained only if the budget limits attempts
	Cost            int64             `json:"cost,omitempty"`          // micro-units, of all tasks; maintained only if the budget limits cost
	ExhaustedAt     time.Time         `json:"exhausted_at,omitzero"`   // when a total of the budget was used up before the job was complete
	CancelRequested bool              `json:"cancel_requested,omitempty"`
	CancelBy        string            `json:"cancel_by,omitempty"`
	CancelReason    string            `json:"cancel_reason,omitempty"`
	DeadlineAt      time.Time         `json:"deadline_at,omitzero"`
	CreatedAt       time.Time         `json:"created_at"`
	UpdatedAt       time.Time         `json:"updated_at"`
	FinishedAt      time.Time         `json:"finished_at,omitzero"`
}

// JobCounters summarise a job's tasks. They change only with a task's transition, in the same transaction.
type JobCounters struct {
	Total      int `json:"total"`
	Unfinished int `json:"unfinished"` // not in a terminal state
	Movable    int `json:"movable"`    // unfinished and able to progress without a person: see Movable
	Failed     int `json:"failed"`     // ended against the job: see End.Against
	Allowed    int `json:"allowed"`    // failed without effect on the job: see End.Allowed
	Succeeded  int `json:"succeeded"`
}

// Add returns c with d added to every field.
func (c JobCounters) Add(d JobCounters) JobCounters {
	c.Total += d.Total
	c.Unfinished += d.Unfinished
	c.Movable += d.Movable
	c.Failed += d.Failed
	c.Allowed += d.Allowed
	c.Succeeded += d.Succeeded
	return c
}

// Sub returns c with d taken from every field.
func (c JobCounters) Sub(d JobCounters) JobCounters {
	return c.Add(JobCounters{-d.Total, -d.Unfinished, -d.Movable, -d.Failed, -d.Allowed, -d.Succeeded})
}

// Count returns the contribution of one task to its job's counters. The delta of a transition is
// Count(after).Sub(Count(before)); a claim changes nothing. For timed see [Movable].
func Count(e End, w Waiting, j Join, timed bool) JobCounters {
	c := JobCounters{Total: 1}
	if !e.State.Terminal() {
		c.Unfinished = 1
	}
	if Movable(e.State, w, j, timed) {
		c.Movable = 1
	}
	if e.Against() {
		c.Failed = 1
	}
	if e.Allowed() {
		c.Allowed = 1
	}
	if e.State == Succeeded {
		c.Succeeded = 1
	}
	return c
}

// Movable reports whether a task can progress without a person: it is ready or running, is due at a later time, or
// waits for a concurrency key. A task that waits for its needs or children progresses only when they do, and one of
// those is counted instead. A dependency that the handler asked for may be outside the job ([JoinOutside]). timed
// reports that the stored ReadyAt is set: a task suspended until a signal or the end of children then continues at
// that time at the latest.
func Movable(s State, w Waiting, j Join, timed bool) bool {
	switch s {
	case Ready, Running:
		return true
	case Pending:
		switch w {
		case WaitDeps:
			return j == JoinOutside
		case WaitRepair:
			return false // the repair is a task of the job
		case WaitSignal, WaitChildren:
			return j == JoinNone && timed
		}
		return true
	}
	return false
}

// JobStateOf derives a job's state from its counters.
func JobStateOf(c JobCounters, cancelRequested bool) JobState {
	switch {
	case c.Movable > 0:
		return JobRunning
	case c.Unfinished > 0:
		return JobBlocked
	case cancelRequested:
		return JobCancelled
	case c.Failed > 0:
		return JobFailed
	}
	return JobSucceeded
}
