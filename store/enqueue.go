package store

import (
	"github.com/goweaver/weaver/task"
)

// Submission is the argument of Enqueue. With Job set every task belongs
// to it and carries a Node name; edges name tasks of the same submission and
// form no cycle (the caller checked). Tasks of a job carry no idempotency key; the
// job itself may.
type Submission struct {
	Job   *task.NewJob
	Tasks []task.New
}

// Disposition is the effect of an enqueue.
type Disposition string

// The dispositions of an enqueue. A task is coalesced when an unstarted task took its input.
const (
	DispositionCreated   Disposition = "created"
	DispositionExisting  Disposition = "existing"
	DispositionCoalesced Disposition = "coalesced"
)

// Enqueued answers one task of a submission.
type Enqueued struct {
	ID          task.ID
	Disposition Disposition
	Job         task.ID // the existing job with the submission's key: the task was not stored, and ID is zero
}
