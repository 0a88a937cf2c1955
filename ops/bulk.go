package ops

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The verbs of Bulk, each a verb of one task. An unblock passes no input, and tasks that wait for an
// answer (Ask) refuse it.
const (
	BulkRetry   BulkVerb = "retry"
	BulkCancel  BulkVerb = "cancel"
	BulkDelete  BulkVerb = "delete"
	BulkUnblock BulkVerb = "unblock"
)

// BulkVerb is a verb of Bulk.
type BulkVerb string

// BulkVerbs lists the verbs of Bulk.
func BulkVerbs() []BulkVerb {
	return []BulkVerb{BulkRetry, BulkCancel, BulkDelete, BulkUnblock}
}

// MaxBulk is the maximum number of tasks that one call of Bulk changes.
const MaxBulk = store.MaxLimit

// BulkRequest selects the tasks and the verb of a Bulk. It has either a Query or IDs.
type BulkRequest struct {
	Verb  BulkVerb
	Query *Query    // changes its matches to which the verb applies, newest first; its Limit is ignored
	IDs   []task.ID // at most 1,000

	Newest    task.ID       // with a Query: skips tasks enqueued later; zero: no bound
	OlderThan time.Duration // with a Query: see OlderThan
	After     string        // Next of the previous call
	Limit     int           // maximum number of tasks; 0 means 1,000, the maximum

	DryRun     bool // change nothing
	Force      bool // BulkCancel: see Force
	KeepSteps  bool // BulkRetry: see KeepSteps
	Cleanups   bool // BulkRetry: see Cleanups
	By, Reason string
}

// BulkResult is the result of one call of Bulk.
type BulkResult struct {
	Done        int           // tasks changed; in a dry run: tasks to change
	Asked       int           // BulkCancel: those of Done that run or clean up, and were asked to end
	UndoneFirst int           // dry run of BulkCancel: those of Done that would be undone before they end; see task.UndoPlan
	AlreadyDone int           // tasks that no longer match the query, or already have the state that the verb leads to
	Refused     []RefusedTask // tasks that could not be changed; in a dry run: as far as known in advance

	Scanned int // number of examined tasks
	Unread  int // see SearchPage

	States  map[task.State]int // dry run: number of Done by state
	Samples []ManyTask         // dry run: the first 20 of Done

	// Newest is the newest selected task, or the Newest of the request. Passed to another call as
	// Newest, it fixes the selection.
	Newest task.ID

	Next string // After of the next call; "" at the end
}
