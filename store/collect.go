package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Retention is one retention rule for finished tasks outside jobs and for whole jobs or, with Values,
// for the values of succeeded tasks.
type Retention struct {
	States []task.State  // any of them, also for jobs by the same names; empty: every terminal state
	Types  []string      // any of them; empty: all types, and jobs, which have no type
	Age    time.Duration // time since the end; < 0: keep forever
	Values bool          // delete only step values, signals, input, output and progress
}

// CollectRequest asks a store to delete one batch of expired data.
type CollectRequest struct {
	// Retain holds the retention rules in order: the first match decides, separately for rules with
	// Values and without. Unmatched tasks and jobs are kept.
	Retain []Retention
	// Limit is the number of rows after which the batch ends; 0: 500, at most 500. A started deletion
	// moves at most 500 more; a chore does the rest.
	Limit int
	// After is the cursor: Next of the previous call. "" starts at the oldest.
	After string
	// DryRun counts without changing data.
	DryRun bool
	// Blobs asks for a batch of blobs only.
	Blobs *CollectBlobs
	// Expiries asks only for inputs with expired fields, of up to ExpiryBite finished tasks. A
	// returned task is not returned again for some minutes, in which the caller issues the command
	// ExpireInput.
	Expiries bool
	// Feed asks only for some hundred feed rows past their retention (CanKeepFeed).
	Feed bool
	// Stats asks only for old statistics (CanKeepStats).
	Stats *CollectStats
}

// CollectStats asks for a batch of old statistics: rows older than StatsMinuteAfter are merged to
// minutes, older than StatsHourAfter to hours, and older than Keep are removed. Merged rows do not
// name the worker. Each row is merged once, also with concurrent callers.
type CollectStats struct {
	Keep time.Duration // 0: StatsKept; < 0: keep forever
}

// ExpiryBite is the maximum number of tasks in one call with Expiries.
const ExpiryBite = 100

// DueExpiry is a task with expired input fields.
type DueExpiry struct {
	Task    task.ID
	Elapsed time.Duration // time since its input was stored
}

// CollectResult is the result of a batch.
type CollectResult struct {
	Tasks   int       // tasks outside jobs deleted with all their records, or left to chores
	Jobs    int       // jobs deleted with their tasks, or left to chores
	Dropped int       // tasks whose values were deleted
	Gone    []task.ID // those tasks and jobs
	Freed   int64     // bytes returned to the file system
	Next    string
	Blobs   CollectedBlobs // with CollectRequest.Blobs
	Expired []DueExpiry    // with CollectRequest.Expiries
	Stats   StatsMerged    // with CollectRequest.Stats
	More    bool           // with Feed or Stats: there may be more, call again
}

// Done reports whether the batch reached rows too young to expire: the next call starts at the oldest
// again.
func (r *CollectResult) Done() bool { return r.Next == "" }

// Add adds the result of a further batch.
func (r *CollectResult) Add(more CollectResult) {
	r.Tasks += more.Tasks
	r.Jobs += more.Jobs
	r.Dropped += more.Dropped
	r.Freed += more.Freed
	r.Gone = append(r.Gone, more.Gone...)
	r.Next = more.Next
}
