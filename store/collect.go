package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Retention is one rule of how long what has ended is kept. It speaks of tasks
// outside jobs and of whole jobs, or, with Values, of what succeeded tasks hold.
type Retention struct {
	States []task.State  // any of them, those of jobs that ended by the same names; empty: all that are terminal
	Types  []string      // any of them; empty: all, and jobs, which have no type
	Age    time.Duration // since the end; < 0: for ever
	Values bool          // only step values, signals, input, output and progress go; the rest stays
}

// CollectRequest asks for one bite of what a store no longer has to keep.
type CollectRequest struct {
	// Retain are the rules of retention, in order: the first that matches decides,
	// among those with Values and among those without. What none matches is kept.
	Retain []Retention
	// Limit is how many rows are moved before the bite ends; 0: 500, at most 500.
	// What was begun then moves 500 more at most; the rest of it is a chore.
	Limit int
	// After is where to go on: Next of the call before. "": at the oldest.
	After string
	// DryRun counts and changes nothing.
	DryRun bool
	// Blobs asks for a bite of the blobs instead, and for nothing else.
	Blobs *CollectBlobs
	// Expiries asks for inputs with fields whose time has passed instead, and for nothing
	// else: of up to ExpiryBite tasks that have ended. What is named is not named again
	// for some minutes, in which the caller gives the command ExpireInput.
	Expiries bool
	// Feed asks for some hundred rows of the feed instead that are older than it keeps
	// them, and for nothing else (CanKeepFeed).
	Feed bool
	// Stats asks for old statistics instead, and for nothing else (CanKeepStats).
	Stats *CollectStats
}

// CollectStats asks for a bite of old statistics: rows of StatsMinuteAfter are added up to
// minutes, those of StatsHourAfter to hours, and what is older than Keep is removed. A
// minute and an hour no longer say which worker it was. Each row is added once, whoever
// calls at the same time.
type CollectStats struct {
	Keep time.Duration // 0: StatsKept, < 0: for ever
}

// ExpiryBite is of how many tasks fields expire in one call at most.
const ExpiryBite = 100

// DueExpiry is a task of whose input fields have expired.
type DueExpiry struct {
	Task    task.ID
	Elapsed time.Duration // since its input was stored
}

// CollectResult is what a bite did.
type CollectResult struct {
	Tasks   int       // outside jobs that went, with all that was recorded about them; or that chores remove now
	Jobs    int       // that went, with their tasks; or that chores remove now
	Dropped int       // tasks whose values went
	Gone    []task.ID // those tasks and jobs
	Freed   int64     // bytes that were given back to the file system
	Next    string
	Blobs   CollectedBlobs // if it was asked for them
	Expired []DueExpiry    // the same
	Stats   StatsMerged    // the same
	More    bool           // of the feed and of statistics: there may be more, call again
}

// Done reports whether the bite came to the young: the next call begins at the
// oldest again.
func (r *CollectResult) Done() bool { return r.Next == "" }

// Add adds what a further bite did.
func (r *CollectResult) Add(more CollectResult) {
	r.Tasks += more.Tasks
	r.Jobs += more.Jobs
	r.Dropped += more.Dropped
	r.Freed += more.Freed
	r.Gone = append(r.Gone, more.Gone...)
	r.Next = more.Next
}
