package ops

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// ManyAck is the result of a verb for all tasks that a filter selects.
type ManyAck struct {
	Done        int           // tasks changed; in a DryRun: tasks to change
	Asked       int           // CancelMany: those of Done that run or clean up, and were asked to end
	UndoneFirst int           // DryRun of CancelMany: those of Done that would be undone before they end; see task.UndoPlan
	AlreadyDone int           // tasks that ended, were revived or were deleted meanwhile, for instance with a task that they need
	Refused     []RefusedTask // tasks that could not be changed
	Tasks       []ManyTask    // DryRun: the tasks of Done, newest first

	// After is the cursor: every selected task at least as new as this one was processed. As
	// Filter.After it continues the verb in another call.
	After string
}

// ManyTask is a task listed by a DryRun.
type ManyTask struct {
	ID    task.ID
	Type  string
	Queue string
	State task.State
}

// RefusedTask is a task that a verb could not change, with the error, for example ErrState.
type RefusedTask struct {
	ID  task.ID
	Err error
}

// PruneAck is the result of Prune, or in a DryRun its preview.
type PruneAck struct {
	Tasks   int   // deleted tasks outside jobs, including children
	Jobs    int   // deleted jobs
	Dropped int   // tasks whose values were deleted
	Freed   int64 // bytes of the store's file returned to the file system
}

// ForgetRequest selects the tasks that Forget erases.
type ForgetRequest struct {
	Labels map[string]string // all of them; at least one

	// Cancel cancels unfinished tasks first. Running tasks are asked to end and are refused
	// until they have; with Force they end at once.
	Cancel, Force bool

	// Also is called with the tasks that are about to be erased, so that the program can erase
	// its own data about them. An error ends the call; the next call finds those tasks again.
	// It may receive a task more than once. Optional.
	Also func(ctx context.Context, tasks []task.Task) error

	// KeepFile skips rewriting the store's file: copies in unused parts of its pages stay
	// until a Forget without it.
	KeepFile bool

	DryRun     bool   // change nothing, and list the tasks
	By, Reason string // for the audit
}

// ForgetAck is the result of Forget.
type ForgetAck struct {
	Done      int           // forgotten tasks; in a DryRun: tasks to forget
	Cancelled int           // those of Done that were cancelled first
	Refused   []RefusedTask // tasks that stay, with the reason
	Tasks     []ManyTask    // DryRun: the tasks of Done
	Blobs     int           // blobs deleted from the bucket
	Rewritten int64         // size in bytes of the rewritten store file; 0: not rewritten
}

// RetryAck is the result of RetryJob.
type RetryAck struct {
	Retried int // retried tasks, without the cancelled dependents that revive with them
}

// CancelAck is the result of CancelJob. Each field counts tasks.
type CancelAck struct {
	Cancelled   int // ended at once
	Asked       int // asked to end, or run once more to clean up
	AlreadyDone int // had ended before
}

// SearchPage is a page of a Search.
type SearchPage struct {
	Items []task.Task // newest first; large inputs and outputs as in List

	// Scanned is the number of examined tasks among those that the Filter selects. OldestSeen is the
	// oldest of them: no newer match was left out. It is zero if no task was examined.
	Scanned    int
	OldestSeen task.ID

	// Unread counts examined tasks whose queried input or output could not be read: it is sealed with
	// a key that the client lacks, or the bucket failed. They do not match.
	Unread int

	Next string // Filter.After for the next page of the same query; "" at the end
}

// Rewrapped is the result of one batch of a Rewrap.
type Rewrapped struct {
	Values int    // values now sealed with the newest key
	Blobs  int    // blobs in the bucket now sealed with the newest key
	Plain  int    // unsealed blobs, stored before a codec was configured; unchanged
	Failed int    // values and blobs that could not be opened; unchanged
	Why    error  // error of the first of Failed
	Next   string // cursor of the next batch; "" at the end
}
