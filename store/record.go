package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Record is what a running attempt writes.
type Record struct {
	Lease    task.Lease
	Step     *task.Step     // TaskID and CompletedAt are filled in by the store; StartedAt too, from Elapsed
	Elapsed  time.Duration  // of the step
	Sleep    time.Duration  // a sleep step: wake after this long, by the store's clock; with Step.WakeAt set that instant counts
	Tasks    []task.New     // a start step: enqueued in the same transaction; when the first has an idempotency key, the store fills in the id that stands under it as the step's value
	Progress *task.Progress // latest report
}

// RecordResult answers one Record.
type RecordResult struct {
	Err      error
	Step     task.Step  // as stored, or as it stood already
	Enqueued []Enqueued // one per Tasks
}

// StepTxer is implemented by stores that can run a step's function inside
// the transaction that records it.
type StepTxer interface {
	// StepTx begins a transaction, runs fn with it, then guards and records
	// rec with the value that fn returned, and commits (R10). A lease that is lost
	// before fn runs, while it waits for the writer, runs nothing. fn may pass tx to
	// Enqueue. An error of fn rolls back and is returned as it is. Other
	// errors: those of Record, ErrStepTxTooLong, and ErrStepTxEnded when fn ended
	// the transaction itself, of which nothing is kept then.
	StepTx(ctx context.Context, ns string, rec Record, limit time.Duration, fn func(ctx context.Context, tx Tx) (json.RawMessage, error)) (RecordResult, error)
}

// Tx is a caller's transaction, wrapped by the adapter that knows its driver.
type Tx interface {
	// Driver names the adapter, for messages.
	Driver() string
	// Handle returns what user code works with: a *sql.Tx or a pgx.Tx.
	Handle() any
}
