package wire

import (
	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// JobDraft is a job that is to be submitted.
type JobDraft struct {
	Name           string            `json:"name"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Budget         BudgetDraft       `json:"budget,omitzero"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	Tasks          []NodeDraft       `json:"tasks" max:"10000"`
}

// BudgetDraft limits a job; 0: without limit.
type BudgetDraft struct {
	MaxAttemptsPerTask int   `json:"max_attempts_per_task,omitempty"`
	MaxTotalAttempts   int   `json:"max_total_attempts,omitempty"`
	MaxDuration        Span  `json:"max_duration,omitempty"`
	MaxCost            int64 `json:"max_cost,omitempty"` // micro-units
	MaxRepairs         int   `json:"max_repairs,omitempty"`
	MaxNoProgress      int   `json:"max_no_progress,omitempty"`
}

// NodeDraft is a task of a job.
type NodeDraft struct {
	Node string `json:"node"` // its name in the job
	Draft
	Needs        []string `json:"needs,omitempty" max:"10000"`     // nodes that must succeed
	IfFailed     []string `json:"if_failed,omitempty" max:"10000"` // it runs when one of these fails
	IfDone       []string `json:"if_done,omitempty" max:"10000"`   // it runs when these have ended
	Undoes       string   `json:"undoes,omitempty"`                // a node that it undoes, when the job goes wrong; it has no other needs
	AllowFailure bool     `json:"allow_failure,omitempty"`
}

// Submitted answers a job.
type Submitted struct {
	ID          weaver.JobID      `json:"id"`
	Disposition store.Disposition `json:"disposition"` // created or existing
}

// JobResult is how a job ended, or where it stands.
type JobResult struct {
	ID         weaver.JobID  `json:"id"`
	Name       string        `json:"name"`
	State      task.JobState `json:"state"`
	Completed  []JobTask     `json:"completed"`
	Failed     []JobTask     `json:"failed"`
	Incomplete []JobTask     `json:"incomplete"`
}

// JobTask is a task of a JobResult.
type JobTask struct {
	ID       weaver.TaskID  `json:"id"`
	Node     string         `json:"node"`
	Type     string         `json:"task_type"`
	State    weaver.State   `json:"state"`
	Kind     task.ErrorKind `json:"error_kind,omitempty"`
	Reason   string         `json:"reason,omitempty"` // why it did not succeed, or what it waits for
	Attempts int            `json:"attempts"`
	Allowed  bool           `json:"allowed,omitempty"` // it failed, and may
}

// CancelAck answers the cancel of a job.
type CancelAck struct {
	Cancelled   int `json:"cancelled"`    // tasks that ended at once
	Asked       int `json:"asked"`        // that run, and were asked to end
	AlreadyDone int `json:"already_done"` // that had ended
}

// RetryAck answers the retry of a job.
type RetryAck struct {
	Retried int `json:"retried"` // tasks; those that were cancelled because of them are not counted
}

// JobStates returns the states of jobs by which they are listed.
func JobStates() []task.JobState {
	return []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled}
}
