package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// Observe holds the reads of people and programs, and the notices of changes. Reads return derived
// states: a pending task whose dispatch row is due reads as ready. A paused task, by its queue, its
// type or itself, reads as pending/paused; a waiter of a concurrency key reads as pending/concurrency.
type Observe interface {
	// Tasks returns the named tasks that exist, in the order asked.
	Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error)

	// List returns tasks newest first (by ID) and the cursor of the next page, "" at the end. A store
	// reads a bounded number of rows for one page, so a page may hold fewer tasks than asked for, even
	// zero, before the end. Any ID is a valid cursor and an exclusive upper bound. Any other text that
	// List did not return is ErrBadCursor.
	List(ctx context.Context, ns string, f Filter) ([]task.Task, string, error)

	// History returns all records of one task. Error: ErrNotFound.
	History(ctx context.Context, ns string, id task.ID) (History, error)

	// Audit returns the operators' commands, newest first, and the cursor of the next page, "" at the
	// end; see List. Entries never move, so concurrent writes do not disturb paging. Error:
	// ErrBadCursor.
	Audit(ctx context.Context, ns string, f AuditFilter) ([]AuditEntry, string, error)

	// Overview returns the requested parts of an overview, read from one snapshot. Only the check for
	// dead workers happens later. Its reads are bounded by MaxCount for each state, type and queue,
	// and by the number of workers. OverviewJob instead reads a row for each task of the job.
	Overview(ctx context.Context, ns string, req OverviewRequest) (Overview, error)

	// Orphans (CanFindOrphans) returns the named tasks whose lease belongs to a worker of a process
	// known to be dead, in the order asked. Reap of any worker takes such leases at once. A task that
	// is not returned may still be an orphan: a proof of death is not always available.
	//
	// Orphans only reads. It waits for no writer and affects neither a concurrent reaper nor a worker
	// that joins.
	Orphans(ctx context.Context, ns string, ids ...task.ID) ([]task.ID, error)

	// Events (CanKeepEvents) returns the stored events of a task numbered higher than after, in order,
	// at most limit or 1,000. The rows of an attempt become visible in order. It returns no rows for
	// an unknown task.
	Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]EventRow, error)

	// Feed (CanKeepFeed) reads the rows after a position in the feed of a namespace, which the command
	// KeepFeed begins. The feed holds the changes of tasks and jobs, and the steps, progress, output
	// and logs that attempts store. A row is committed with the change that it describes, by every
	// program, so it exists exactly when the change does. A namespace without a feed has no cost.
	//
	// Positions are positive and ascend within a namespace. A reader that continues at [FeedPage].Next
	// sees each row once: no row appears later at a lower position. The rows of one task are in the
	// order of their changes.
	Feed(ctx context.Context, ns string, req FeedRequest) (FeedPage, error)

	// Schedules (CanSchedule) returns schedules, and the fires of one; see ScheduleFilter. The command
	// WriteSchedule writes them.
	Schedules(ctx context.Context, ns string, f ScheduleFilter) (SchedulePage, error)

	// Limits (CanLimit) returns limits with their use; see LimitFilter. The commands SetLimit and Rest
	// write them.
	Limits(ctx context.Context, ns string, f LimitFilter) (LimitPage, error)

	// WriteStats (CanKeepStats) stores rows of 10-second slots, by the store's clock, in one
	// transaction. Values are absolute: a row replaces the row with the same key, so repeating a write
	// is harmless. Rows of slots that began more than StatsLate ago are dropped, because they may
	// already be merged into a minute. Two rows of one call must have different keys; one call takes
	// at most MaxStatsWrite.
	//
	// Statistics decide nothing and may be lost. Collect merges them into coarser rows with age
	// (CollectRequest.Stats).
	WriteStats(ctx context.Context, ns string, rows ...StatRow) error

	// ReadStats (CanKeepStats) sums the rows of the slots that begin in a span of time, grouped by
	// step and the requested fields, in that order. It reads at most StatsLooks rows, and only whole
	// slots; Next continues. Error: ErrStatsQuery, also for a single slot with more rows.
	ReadStats(ctx context.Context, ns string, q StatsQuery) (StatsPage, error)

	// Notify (CanNotify) calls fn, possibly concurrently, after commits in ns until stop returns.
	// Notices are hints: a lost one costs latency only. fn must not block and must not call the store.
	// complete reports that every change produces a notice, so users need not poll (a store in this
	// process's memory).
	//
	// awaited, if not nil, returns the tasks and jobs whose ends are awaited; it must not call the
	// store. A store may query all of them about once a second. It then names in Notice.Tasks those
	// that ended, are blocked or do not exist, whoever wrote the change, and names all of them while
	// it cannot query. Its answer is complete for these ends.
	Notify(ns string, awaited func() []task.ID, fn func(Notice)) (stop func(), complete bool)

	// Wake tells all users of a namespace, including other processes, that work may be available, and
	// returns without waiting. Callers use it after committing their own transaction, which a store
	// cannot observe.
	Wake(ns string)
}
