package wire

import (
	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// JobDraft is a job to submit.
type JobDraft struct {
	Name           string            `json:"name"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Budget         BudgetDraft       `json:"budget,omitzero"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	MaxParallel    int               `json:"max_parallel,omitempty"` // maximum number of its tasks that run at once
	Tasks          []NodeDraft       `json:"tasks" max:"10000"`
}

// BudgetDraft limits a job; 0 means unlimited.
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
	IfFailed     []string `json:"if_failed,omitempty" max:"10000"` // run when one of these nodes fails
	IfDone       []string `json:"if_done,omitempty" max:"10000"`   // run when these nodes have ended
	Undoes       string   `json:"undoes,omitempty"`                // the node that it undoes if the job fails; it has no other dependencies
	AllowFailure bool     `json:"allow_failure,omitempty"`
}

// Submitted is the result of submitting a job.
type Submitted struct {
	ID          weaver.JobID      `json:"id"`
	Disposition store.Disposition `json:"disposition"` // created or existing
}

// JobResult is the outcome of a job, or its present state.
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
	Reason   string         `json:"reason,omitempty"` // the reason for its failure, or for its wait
	Attempts int            `json:"attempts"`
	Allowed  bool           `json:"allowed,omitempty"` // it failed, which the job permits
}

// CancelAck is the result of cancelling a job.
type CancelAck struct {
	Cancelled   int `json:"cancelled"`    // tasks that ended at once
	Asked       int `json:"asked"`        // running tasks whose end was requested
	AlreadyDone int `json:"already_done"` // tasks that had already ended
}

// RetryAck is the result of retrying a job.
type RetryAck struct {
	Retried int `json:"retried"` // tasks, without those that were cancelled because of them
}

// JobStates returns the states of jobs by which they are listed.
func JobStates() []task.JobState {
	return []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled}
}
