package store

import "context"

// Core is what tasks need to run: they come in, are leased, recorded and ended.
type Core interface {
	// Capabilities returns what the store can do beside what every store does. It is
	// the same for the life of the store, and cheap: it is asked with each claim.
	Capabilities() Capabilities

	// Ready returns nil when the store can be used by this program, else
	// ErrNotMigrated, ErrNewerSchema or ErrUnavailable.
	Ready(ctx context.Context) error

	// Enqueue stores a submission: tasks, their edges, the
	// job when there is one, and the dispatch row of every task without open
	// needs (W1). All or nothing, in one transaction. A store may store a large job in
	// several (ChoreEnqueue): the first decides that all of it is stored, whatever
	// happens, and no task is claimed before the last. With a non-nil tx (made by the adapter's
	// own constructor) it joins the caller's transaction and only inserts: it
	// updates and locks no row that another role waits for.
	//
	// Results come in the order of sub.Tasks. A task whose (type, idempotency
	// key) exists, in the store or earlier in the submission, is not stored:
	// its result names the existing one, DispositionExisting. A job whose (name,
	// idempotency key) exists is not stored either, nor is any of its tasks: every
	// result names that job, DispositionExisting. A task whose ID
	// exists already was stored by an earlier try of the same call: nothing
	// is written again and the result is DispositionCreated.
	//
	// A task with Coalesce is not stored when one of its type has not started and has
	// its idempotency key or, if it has none, its concurrency key, in its queue: that
	// one takes its input and schema version, and nothing else of it, keeps its place,
	// and is the result (DispositionCoalesced). With several the one that is due
	// first counts; only the 100 that are due first are looked at. Tasks of a
	// job, children, and those that are to cancel or paused by themselves are passed
	// over. With a tx it is ErrState: such an enqueue only inserts.
	//
	// Errors: ErrForeignTx (tx of another driver or store), ErrRestartTx,
	// ErrReadOnly, ErrFull, ErrUnavailable.
	Enqueue(ctx context.Context, ns string, tx Tx, sub Submission) ([]Enqueued, error)

	// Join announces a worker process. From then on its leases can be
	// distinguished from those of a dead process. Joining again is a sign of
	// life like a heartbeat. A new worker warms up for a TTL before it is
	// eligible to reap expired leases (Reap).
	Join(ctx context.Context, ns string, w WorkerInfo) error

	// Leave removes a worker that stops. Leases it still holds stay until
	// they expire or are reaped.
	Leave(ctx context.Context, ns string, id WorkerID) error

	// Claim leases up to req.Limit due tasks of the asked lanes, highest
	// priority first, then oldest due first (R3). For each it deletes the
	// dispatch row, raises the epoch, and hands out the lease, only after the
	// commit. Rows of other lanes, of paused queues and types, of a newer schema than the
	// worker reads, and rows that are not due are left alone, and hold no row
	// behind them back. Keyed tasks obey their concurrency key: those over the
	// cap move to the waiters with their original due time. A claim looks at no
	// more than 4 × req.Limit + 256 due rows: those that it takes, moves, or
	// leaves because they may not run (ClaimResult.Stopped). With req.Again it
	// claims nothing new and returns what an earlier call with the same
	// LeaseID claimed and still holds.
	//
	// With req.Wait a store that can (CanWait) holds a claim that found nothing due, for
	// that time at most, and answers it from the very transaction that makes something
	// due, so that an idle worker's next task is stored and leased by one commit. It
	// returns early with nothing when req.Wake receives or ctx ends. A call with Again or
	// IDs does not wait, and a store may always answer at once.
	Claim(ctx context.Context, ns string, req ClaimRequest) (ClaimResult, error)

	// Heartbeat extends leases to now + TTL, never shortening one, and marks
	// the worker as seen (R6). It makes no expiry test: an expired lease that
	// no reaper took is renewed. A worker whose row was forgotten while it was
	// silent gets it back, as a new one. Beats come in the order of req.Leases.
	Heartbeat(ctx context.Context, ns string, req HeartbeatRequest) ([]Beat, error)

	// Record writes what a running attempt has to show, under its lease
	// (R10): a step's value, a failed try, a sleep, tasks started by a step,
	// progress, a checkpoint. A completed step raises step_count, sets crash_count back to
	// 0 and is inserted plainly. Element errors: ErrLeaseLost, ErrStepConflict
	// (another value is recorded under this name), ErrCancelRequested (the task is
	// to be cancelled: the value was not stored, unless it is a cleanup's). The same record again, under
	// the same lease, answers success once more.
	Record(ctx context.Context, ns string, recs ...Record) ([]RecordResult, error)

	// Finish ends attempts (R2, R8): it writes task, attempt and decision,
	// decides edges and releases dependents with their dispatch rows, frees
	// the concurrency key and moves job counters, all in the transaction that
	// passed the guard. One task appears once per batch. Element errors:
	// ErrLeaseLost (nothing was written), ErrConflict (this lease already
	// finished with another outcome: an alarm). Finishing twice with the same
	// content succeeds once and answers success both times.
	//
	// A task whose cancel was requested ends cancelled unless the outcome is
	// success.
	//
	// A decompose stores its children in the same transaction. When all of them have
	// ended, in whatever order and batches, the task is claimable again (JoinRerun),
	// or has ended (JoinComplete): succeeded with the output that came with the
	// decompose, or failed with kind dependency_failed if one of them did not
	// succeed. When a task ends before its children, those that have not ended are
	// cancelled; a retry of the task revives them, and waits for them again.
	//
	// An add_dependency adds an edge for success to any task, so that the end of that
	// one makes the task claimable, or ends it. Whether it would wait for itself is
	// decided in the same transaction.
	//
	// The caller may reuse the list when the call has returned without an error.
	Finish(ctx context.Context, ns string, fins ...Finish) ([]FinishResult, error)

	// Reap ends what time has ended (R7): expired leases of workers go back
	// to claimable, or fail as poison, or end cancelled; leases of processes
	// known to be dead are taken at once; unstarted tasks past their deadline
	// are cancelled and running ones asked to. It is right with any number of
	// reapers at once.
	//
	// After an outage of the store every lease looks expired, and its holders
	// are about to renew it. So expired leases are passed over, and the result
	// says WarmingUp, unless the asking worker is eligible: it was seen (Join,
	// Heartbeat) at most TTL/2 ago, and for a TTL before that without a gap
	// of more than TTL/2.
	//
	// A lost lease counts as a crash if its process is known to be dead, or
	// was last seen more than half of its TTL before the lease's end. A worker
	// without a row, which has left, did not crash.
	Reap(ctx context.Context, ns string, req ReapRequest) (ReapResult, error)
}
