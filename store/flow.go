package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Flow is what tasks have to do with each other: jobs, needs, and steps that commit with
// what their function writes.
type Flow interface {
	// StepTx (CanStepTx) begins a transaction, runs fn with it, then guards and records
	// rec with the value that fn returned, and commits (R10). A lease that is lost
	// before fn runs, while it waits for the writer, runs nothing. fn may pass tx to
	// Enqueue. An error of fn rolls back and is returned as it is. Other
	// errors: those of Record, ErrStepTxTooLong, ErrStepTxRefused when the commit broke
	// a constraint, and ErrStepTxEnded when fn ended the transaction itself. Nothing of
	// it is kept then.
	StepTx(ctx context.Context, ns string, rec Record, limit time.Duration, fn func(ctx context.Context, tx Tx) (json.RawMessage, error)) (RecordResult, error)

	// Transient reports whether err, or an error that it wraps, is one of the store's
	// driver that says nothing about the operation that met it: the database was locked,
	// the statement was interrupted, the disk was full or failed, the connection was
	// lost. The same operation may succeed later. User code meets such errors on the
	// connections and transactions that a store hands out.
	Transient(err error) bool

	// Jobs returns jobs newest first and the cursor of the next page; see List.
	Jobs(ctx context.Context, ns string, f JobFilter) ([]task.Job, string, error)

	// Graph returns the tasks of a job with the edges between them, the oldest first: a
	// page that is one state of the store. A page may hold fewer nodes than asked for
	// while its Next says that there are more. Errors: ErrNotFound, ErrBadCursor.
	Graph(ctx context.Context, ns string, req GraphRequest) (Graph, error)

	// Needs returns what a task needs, by the need's ID; nothing for a task that
	// does not exist. It reads one row for each need.
	Needs(ctx context.Context, ns string, id task.ID) ([]Need, error)
}
