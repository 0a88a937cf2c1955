package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// Observe is what people and programs see, and what tells them that it changed. Derived states are applied: a
// pending task whose dispatch row is due reads as ready, one that is paused, with
// its queue, its type or by itself, as pending/paused, one among the waiters of its key as
// pending/concurrency.
type Observe interface {
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

	// Audit returns what operators did, newest first, and the cursor of the next page,
	// "" at the end; see List. An entry has its place when it is written, so that a page
	// is right whatever others do meanwhile. ErrBadCursor.
	Audit(ctx context.Context, ns string, f AuditFilter) ([]AuditEntry, string, error)

	// Overview returns the parts of an overview that req asks for, of one state of the
	// store; but whether workers are dead is looked up afterwards. What it reads is
	// bounded by MaxCount for each state, type and queue, and by the workers.
	// OverviewJob reads a row for each task of the job instead.
	Overview(ctx context.Context, ns string, req OverviewRequest) (Overview, error)

	// Orphans (CanFindOrphans) returns which of the named tasks run under a lease of a
	// worker whose process is known to be dead, in the order asked. They go on when any
	// worker reaps (Reap takes such leases at once). A task that is not named may be an
	// orphan all the same: there is not always a proof.
	//
	// It is a read: it writes nothing, waits for no writer, and changes neither what a
	// reaper that runs at the same time finds nor whether a worker can join.
	Orphans(ctx context.Context, ns string, ids ...task.ID) ([]task.ID, error)

	// Events (CanKeepEvents) returns the stored events of a task with a higher number
	// than after, in the order of their numbers, at most limit, or 1,000. The rows of an
	// attempt become visible in that order. Nothing for a task that does not exist.
	Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]EventRow, error)

	// Feed (CanKeepFeed) reads what is behind a position in the feed of all that happens
	// in a namespace, which the command KeepFeed begins: to tasks, to jobs, and what
	// attempts store of their steps, progress, output and logs. A row is written in the
	// transaction of what it tells, whichever program makes that, so that it is there if
	// and only if that is, and once. A namespace without a feed pays nothing for it.
	//
	// The rows of a namespace have positions, positive and rising. A reader that asks for
	// what is behind a position, and goes on at [FeedPage].Next, sees each row once: none
	// comes later with a lower position. Those of one task are in the order in which
	// it happened. Positions mean nothing in another namespace.
	Feed(ctx context.Context, ns string, req FeedRequest) (FeedPage, error)

	// WriteStats (CanKeepStats) stores rows of slots of 10 seconds by the store's clock,
	// in one transaction. Their values are absolute: a row replaces the one with the same
	// key, so that writing again is harmless. Rows of slots that began more than StatsLate
	// ago are left out, because they may be part of a minute already. Two rows of one call
	// have different keys; at most MaxStatsWrite come in one call.
	//
	// What is kept decides nothing: it may be lost, and a store without it is whole.
	// Collect makes it coarser with its age (CollectRequest.Stats).
	WriteStats(ctx context.Context, ns string, rows ...StatRow) error

	// ReadStats (CanKeepStats) adds up the rows of the slots that begin in a span of
	// time, by step and by the fields that are asked for, in that order. It reads at most
	// StatsLooks rows, and those of whole slots: Next says where to go on. Errors:
	// ErrStatsQuery, also for a slot with more rows.
	ReadStats(ctx context.Context, ns string, q StatsQuery) (StatsPage, error)

	// Notify (CanNotify) calls fn, possibly concurrently, after commits in ns until stop
	// returns. Notices are hints: losing one costs latency only. fn must not block and
	// must not call the store. complete reports that no change escapes the notices, so
	// that no user needs to poll (a store in this process's memory).
	//
	// awaited, unless nil, returns the tasks and jobs whose ends are waited for; it must
	// not call the store. A store that looks for all of them with one query, each second
	// or so, names in Notice.Tasks those that ended, are blocked or do not exist, whoever
	// wrote what, and all of them while it cannot look. Its answer is complete for
	// these ends.
	Notify(ns string, awaited func() []task.ID, fn func(Notice)) (stop func(), complete bool)

	// Wake tells all users of a namespace, of other processes too, that there may be
	// work. It does not wait for that. It is for callers' transactions, where a store
	// does not learn by itself that one was committed.
	Wake(ns string)
}
