package ops

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// ManyAck says what a verb did to the tasks that a filter selects.
type ManyAck struct {
	Done        int           // that it changed; in a DryRun: that it would
	Asked       int           // CancelMany: of these, those that run, or clean up, and were asked to end
	UndoneFirst int           // in a DryRun of CancelMany: of Done, those that would be undone before they end; see task.UndoPlan
	AlreadyDone int           // that ended, were brought back or were deleted meanwhile, for instance with what they need
	Refused     []RefusedTask // that it could not change
	Tasks       []ManyTask    // in a DryRun: those of Done, newest first

	// After is how far it came: every selected task that is not older than this
	// one was looked at. As Filter.After it lets another call do the rest.
	After string
}

// ManyTask is a task that a DryRun lists.
type ManyTask struct {
	ID    task.ID
	Type  string
	Queue string
	State task.State
}

// RefusedTask is a task that a verb could not change, with the reason: ErrState
// and the like.
type RefusedTask struct {
	ID  task.ID
	Err error
}

// PruneAck says what went by Prune; in a DryRun: what would.
type PruneAck struct {
	Tasks   int   // outside jobs, children among them
	Jobs    int   // whole
	Dropped int   // tasks that lost their values
	Freed   int64 // bytes of the store's file that were given back
}

// ForgetRequest says which tasks Forget erases.
type ForgetRequest struct {
	Labels map[string]string // of the tasks: all of them; at least one

	// Cancel has tasks that have not ended cancelled first. Those that run are asked to end,
	// and are among the refused until they have; with Force they end at once.
	Cancel, Force bool

	// Also is called with tasks that are about to be erased, for what the program keeps of
	// them elsewhere. An error ends the call: those tasks are found again. It may get a task
	// more than once. Nil: nothing.
	Also func(ctx context.Context, tasks []task.Task) error

	// KeepFile leaves the store's file as it is: copies that a database left in unused parts
	// of its pages stay until a Forget without it.
	KeepFile bool

	DryRun     bool   // change nothing, and list the tasks
	By, Reason string // for the audit
}

// ForgetAck says what Forget did.
type ForgetAck struct {
	Done      int           // tasks that were forgotten; in a DryRun: that would be
	Cancelled int           // of these, how many were cancelled for it
	Refused   []RefusedTask // that stay, and why
	Tasks     []ManyTask    // in a DryRun: those of Done
	Blobs     int           // that were deleted from the bucket
	Rewritten int64         // bytes of the store's file that was written anew; 0: it was not
}

// RetryAck says what RetryJob did.
type RetryAck struct {
	Retried int // tasks; those that were cancelled because of them revive with them and are not counted
}

// CancelAck says what CancelJob did.
type CancelAck struct {
	Cancelled   int // ended at once
	Asked       int // run, and were asked to end, or run once more to clean up
	AlreadyDone int // had ended before
}

// SearchPage is what a Search has found.
type SearchPage struct {
	Items []task.Task // newest first; of large inputs and outputs what List has

	// Scanned is how many tasks were looked at, of those that the Filter selects, and
	// OldestSeen how far the search came: no task that matches and that is newer was
	// left out. Zero: it came to no task.
	Scanned    int
	OldestSeen task.ID

	// Unread is how many of them had an input or output that is asked about and that
	// could not be read (it is sealed with a key that the client lacks, or the bucket did
	// not give it): they do not match.
	Unread int

	Next string // Filter.After for the same query to go on; "": there are no more
}

// Rewrapped is what a bite of a Rewrap did.
type Rewrapped struct {
	Values int    // that are sealed with the newest key now
	Blobs  int    // the same, in the bucket
	Plain  int    // blobs that were put before the codec was on: they stay as they are
	Failed int    // values and blobs that could not be opened: they stay as they are
	Why    error  // of the first of them
	Next   string // where to go on; "": all was looked at
}
