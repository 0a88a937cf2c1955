package store

import "context"

// Core holds the operations to run tasks: enqueue, lease, record and finish.
type Core interface {
	// Capabilities returns the optional features of the store. It is constant for the life of the
	// store, and cheap: every claim calls it.
	Capabilities() Capabilities

	// Ready returns nil if this program can use the store, else ErrNotMigrated, ErrNewerSchema or
	// ErrUnavailable.
	Ready(ctx context.Context) error

	// Enqueue stores a submission in one transaction, all or nothing: tasks, their edges, the job if
	// it has one, and the dispatch row of every task without open needs (W1). A store may split a
	// large job into several transactions (ChoreEnqueue): the first commits the whole job, whatever
	// happens later, and no task is claimed before the last. With a non-nil tx (made by the adapter's
	// own constructor) Enqueue joins the caller's transaction and only inserts: it updates and locks
	// no row that another role waits for.
	//
	// Results are in the order of sub.Tasks. A task whose (type, idempotency key) exists, in the store
	// or earlier in the submission, is not stored: its result names the existing task,
	// DispositionExisting. If the (name, idempotency key) of a job exists, neither the job nor any of
	// its tasks is stored: every result names that job, DispositionExisting. A task whose ID exists
	// was stored by an earlier try of the same call: nothing is written and the result is
	// DispositionCreated.
	//
	// A task with Coalesce is not stored if an unstarted task of its type and queue has its
	// idempotency key or, without one, its concurrency key. The existing task takes the new input
	// and schema version only, keeps its place, and is the result (DispositionCoalesced). Among
	// several, the one that is due first is used; only the 100 that are due first are examined. Tasks
	// of a job, children, and tasks asked to cancel or paused individually are skipped. With a tx it
	// is ErrState: such an enqueue only inserts.
	//
	// Errors: ErrForeignTx (tx of another driver or store), ErrRestartTx,
	// ErrReadOnly, ErrFull, ErrUnavailable.
	Enqueue(ctx context.Context, ns string, tx Tx, sub Submission) ([]Enqueued, error)

	// Join announces a worker process. From then on its leases can be distinguished from those of a
	// dead process. Joining again counts as a heartbeat. A new worker warms up for a TTL before it may
	// reap expired leases (Reap).
	Join(ctx context.Context, ns string, w WorkerInfo) error

	// Leave removes a worker that stops. Its remaining leases stay until they expire or are reaped.
	Leave(ctx context.Context, ns string, id WorkerID) error

	// Claim leases up to req.Limit due tasks of the requested lanes, highest priority first, then
	// oldest due first (R3). For each it deletes the dispatch row, raises the epoch, and returns the
	// lease only after the commit. It skips rows of other lanes, of paused queues and types, of a
	// newer schema than the worker reads, and rows that are not due; they do not block later rows.
	// Keyed tasks obey their concurrency key: those over the cap move to the waiters with their
	// original due time. A claim reads at most 4 × req.Limit + 256 due rows: those that it takes,
	// moves, or leaves because they may not run (ClaimResult.Stopped). With req.Again it claims
	// nothing new and returns the tasks that an earlier call with the same LeaseID claimed and still
	// holds.
	//
	// With req.Wait a store that supports it (CanWait) holds a claim without due tasks, at most that
	// long, and answers it in the same transaction that makes a task due: an idle worker's next task
	// is stored and leased by one commit. It returns early and empty when req.Wake receives or ctx
	// ends. A call with Again or IDs does not wait, and a store may always answer at once.
	Claim(ctx context.Context, ns string, req ClaimRequest) (ClaimResult, error)

	// Heartbeat extends leases to now + TTL, never shortening one, and marks the worker as seen (R6).
	// It does not test for expiry: an expired lease that no reaper took is renewed. A silent worker
	// whose row was deleted is stored again, as a new worker. Beats are in the order of req.Leases.
	Heartbeat(ctx context.Context, ns string, req HeartbeatRequest) ([]Beat, error)

	// Record writes the results of a running attempt under its lease (R10): a step's value, a failed
	// try, a sleep, tasks started by a step, progress, a checkpoint. A completed step is a plain
	// insert, raises step_count and resets crash_count to 0. Element errors: ErrLeaseLost;
	// ErrStepConflict (another value is recorded under this name); ErrCancelRequested (the task must
	// end, and the value was not stored, unless it is a cleanup's). Repeating a record under the same
	// lease succeeds again.
	Record(ctx context.Context, ns string, recs ...Record) ([]RecordResult, error)

	// Finish ends attempts (R2, R8). In the transaction that checked the lease it writes task, attempt
	// and decision, decides edges, releases dependents with their dispatch rows, frees the concurrency
	// key and moves job counters. A task appears at most once per batch. Element errors: ErrLeaseLost
	// (nothing was written); ErrConflict (this lease already finished with another outcome: an alarm).
	// Repeating a finish with the same content succeeds again without effect.
	//
	// A task whose cancel was requested ends cancelled unless the outcome is
	// success.
	//
	// A decompose stores its children in the same transaction. When all of them have ended, in any
	// order and batches, the task is claimable again (JoinRerun) or ends (JoinComplete): succeeded
	// with the output of the decompose, or failed with kind dependency_failed if a child did not
	// succeed. When a task ends before its children, the unfinished ones are cancelled; a retry of the
	// task revives them and waits for them again.
	//
	// An add_dependency adds a success edge to any task; the end of that task makes this one
	// claimable, or ends it. The same transaction checks for a cycle.
	//
	// The caller may reuse the slice when the call has returned without an error.
	Finish(ctx context.Context, ns string, fins ...Finish) ([]FinishResult, error)

	// Reap processes expired leases and deadlines (R7). Tasks of expired leases become claimable, fail
	// as poison, or end cancelled. Leases of processes known to be dead are taken at once. Unstarted
	// tasks past their deadline are cancelled, and running ones are asked to end. Concurrent reapers
	// are safe.
	//
	// After an outage of the store every lease looks expired, while its holder is about to renew it.
	// Reap therefore skips expired leases and returns WarmingUp unless the calling worker is eligible:
	// it was seen (Join, Heartbeat) at most TTL/2 ago, and for a TTL before that without a gap of more
	// than TTL/2.
	//
	// A lost lease counts as a crash if its process is known to be dead, or was last seen more than
	// half of its TTL before the lease's end. A worker without a row has left and did not crash.
	Reap(ctx context.Context, ns string, req ReapRequest) (ReapResult, error)
}
