package store

import (
	"github.com/goweaver/weaver/task"
)

// Submission is what Enqueue stores together. With Job set every task belongs
// to it and carries a Node name; edges name tasks of the same submission and
// form no cycle (the caller checked). Tasks of a job carry no idempotency key; the
// job itself may.
type Submission struct {
	Job   *task.NewJob
	Tasks []task.New
}

// Disposition says what an enqueue did.
type Disposition string

// The dispositions of an enqueue. A task is coalesced when one that has not started
// took its input.
const (
	DispositionCreated   Disposition = "created"
	DispositionExisting  Disposition = "existing"
	DispositionCoalesced Disposition = "coalesced"
)

// Enqueued answers one task of a submission.
type Enqueued struct {
	ID          task.ID
	Disposition Disposition
	Job         task.ID // the existing job under the submission's key: the task was not stored, and ID is zero
}
