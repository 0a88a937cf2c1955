// Package store is Weaver's first port: the truth. Every state change of a
// task happens inside one transaction of a Store, and nothing outside it is
// ever read to decide one.
//
// A Store is three interfaces: Producer (tasks come in, operators act),
// Worker (leases, attempts, steps) and Reader (what people see), plus the
// optional WaitingClaimer, Notifier, StepTxer, JobCounter, OrphanReader, TypeReader and SessionKeeper. The rules that their comments
// cite (R for leases, W for dispatch) are explained in docs/leases.md; package
// storetest is their executable form, and package memstore their smallest
// implementation.
//
// What every method keeps:
//
//   - A method is one or several transactions; when it returns nil for an
//     element, that element is durable. When it returns an error for the
//     call, the outcome of the call is unknown unless the error says
//     otherwise, and the same call may be made again: Enqueue is idempotent
//     by task ID, Claim by lease ID (with Again), Finish and Record by their
//     content.
//   - Batches are not atomic across elements: losers drop out with their own
//     error, winners commit. Enqueue is the exception: all or nothing.
//   - Time is the store's clock, which goes back only if it was ahead of the
//     machine's by more than a day. Callers send
//     durations; the only instant a caller may send is a user's wish
//     (task.New.At, Step.WakeAt).
//   - Instants come back in UTC with microsecond precision.
//   - The context bounds waiting and reading. Once a write has joined a group
//     that is being committed, its caller's context no longer matters: it
//     gets ErrUnknown and the write may or may not have happened.
//   - All methods are safe for concurrent use.
package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// Store is everything an engine needs. Namespaces separate environments: no
// method reads or writes outside the namespace it is given.
type Store interface {
	Producer
	Worker
	Reader
}

// Producer is what submits work and what operators use.
type Producer interface {
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

	// Operate applies commands, each in its own atomic step; those of operators are
	// audited. Results come in order; a command that cannot be applied has
	// its error in its result (ErrNotFound, ErrState, ErrChanged) and
	// changes nothing.
	Operate(ctx context.Context, ns string, cmds ...Command) ([]CommandResult, error)
}

// Worker is what an engine uses to run tasks.
type Worker interface {
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
	Claim(ctx context.Context, ns string, req ClaimRequest) (ClaimResult, error)

	// Heartbeat extends leases to now + TTL, never shortening one, and marks
	// the worker as seen (R6). It makes no expiry test: an expired lease that
	// no reaper took is renewed. A worker whose row was forgotten while it was
	// silent gets it back, as a new one. Beats come in the order of req.Leases.
	Heartbeat(ctx context.Context, ns string, req HeartbeatRequest) ([]Beat, error)

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

	// Record writes what a running attempt has to show, under its lease
	// (R10): a step's value, a failed try, a sleep, tasks started by a step,
	// progress, a checkpoint. A completed step raises step_count, sets crash_count back to
	// 0 and is inserted plainly. Element errors: ErrLeaseLost, ErrStepConflict
	// (another value is recorded under this name), ErrCancelRequested (the task is
	// to be cancelled: the value was not stored, unless it is a cleanup's). The same record again, under
	// the same lease, answers success once more.
	Record(ctx context.Context, ns string, recs ...Record) ([]RecordResult, error)

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

	// Collect removes what the rules of req no longer keep, a bite of it: jobs that
	// have ended, with all their tasks, and tasks outside jobs that have ended, with
	// their children and with their audit; or it drops values. A task stays as long
	// as another one, that is not a task of the same job, has an edge to it: children
	// go with their parents, and what others need or await goes after them. Values
	// are dropped of tasks that succeeded, once no task is left that may read
	// them again (task.Task.ValuesDropped).
	//
	// It goes by IDs, from the oldest to those that were created too late to be old
	// enough, and reads 1,000 rows at most beside those that it moves. It is
	// right with any number of callers at once, each with its own cursor. An error
	// loses nothing: the same bite may be asked for again. With req.Blobs set it
	// collects blobs instead. Errors: ErrBadCursor.
	Collect(ctx context.Context, ns string, req CollectRequest) (CollectResult, error)
}

// Reader is what people and programs see. Derived states are applied: a
// pending task whose dispatch row is due reads as ready, one that is paused, with
// its queue, its type or by itself, as pending/paused, one among the waiters of its key as
// pending/concurrency.
type Reader interface {
	// Ready returns nil when the store can be used by this program, else
	// ErrNotMigrated, ErrNewerSchema or ErrUnavailable.
	Ready(ctx context.Context) error

	// Tasks returns the named tasks that exist, in the order asked.
	Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error)

	// List returns tasks newest first (by ID) and the cursor of the next page,
	// "" at the end. What a store looks at for one page is bounded: a page may
	// hold fewer tasks than asked for, also none, while its cursor says that
	// there may be more. Any id is a cursor, of what is older; anything else that
	// List did not make is ErrBadCursor.
	List(ctx context.Context, ns string, f Filter) ([]task.Task, string, error)

	// History returns everything recorded about one task; ErrNotFound.
	History(ctx context.Context, ns string, id task.ID) (History, error)

	// Needs returns what a task needs, by the need's ID; nothing for a task that
	// does not exist. It reads one row for each need.
	Needs(ctx context.Context, ns string, id task.ID) ([]Need, error)

	// Jobs returns jobs newest first and the cursor of the next page; see List.
	Jobs(ctx context.Context, ns string, f JobFilter) ([]task.Job, string, error)

	// Overview returns the parts of an overview that req asks for, of one state of the
	// store; but whether workers are dead is looked up afterwards. What it reads is
	// bounded by MaxCount for each state, type and queue, and by the workers.
	Overview(ctx context.Context, ns string, req OverviewRequest) (Overview, error)

	// Graph returns the tasks of a job with the edges between them, the oldest first: a
	// page that is one state of the store. A page may hold fewer nodes than asked for
	// while its Next says that there are more. Errors: ErrNotFound, ErrBadCursor.
	Graph(ctx context.Context, ns string, req GraphRequest) (Graph, error)

	// Audit returns what operators did, newest first, and the cursor of the next page,
	// "" at the end; see List. An entry has its place when it is written, so that a page
	// is right whatever others do meanwhile. ErrBadCursor.
	Audit(ctx context.Context, ns string, f AuditFilter) ([]AuditEntry, string, error)

	// Snapshot returns every row of the namespace as one consistent view,
	// for Check and for tests that compare stores.
	Snapshot(ctx context.Context, ns string) (*Snapshot, error)
}
