package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Flow links tasks with jobs, needs and user data: it reads jobs and dependency graphs, and runs steps
// in a transaction with the user's own writes.
type Flow interface {
	// StepTx (CanStepTx) begins a transaction, runs fn, checks the lease, records rec with the value
	// that fn returned, and commits (R10). If the lease is lost while StepTx waits for the writer, fn
	// does not run. fn may pass tx to Enqueue. An error of fn rolls back and is returned unchanged.
	// Other errors: those of Record; ErrStepTxTooLong; ErrStepTxRefused when the commit broke a
	// constraint; ErrStepTxEnded when fn ended the transaction itself. All of them roll back.
	StepTx(ctx context.Context, ns string, rec Record, limit time.Duration, fn func(ctx context.Context, tx Tx) (json.RawMessage, error)) (RecordResult, error)

	// Transient reports whether err, or an error that it wraps, is a transient error of the store's
	// driver: a locked database, an interrupted statement, a full or failed disk, a lost connection.
	// The same operation may succeed later. User code meets such errors on the connections and
	// transactions that a store hands out.
	Transient(err error) bool

	// Jobs returns jobs newest first and the cursor of the next page; see List.
	Jobs(ctx context.Context, ns string, f JobFilter) ([]task.Job, string, error)

	// Graph returns one page of the tasks of a job with their edges, oldest first. A page is a
	// consistent snapshot. It may hold fewer nodes than asked for while Next is not empty. Errors:
	// ErrNotFound, ErrBadCursor.
	Graph(ctx context.Context, ns string, req GraphRequest) (Graph, error)

	// Needs returns the needs of a task, ordered by ID, and an empty list for an unknown task. It
	// reads one row for each need.
	Needs(ctx context.Context, ns string, id task.ID) ([]Need, error)
}
