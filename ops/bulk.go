package ops

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The verbs of Bulk: those of one task. An unblock gives no input, and is refused by tasks
// that wait for an answer (Ask).
const (
	BulkRetry   BulkVerb = "retry"
	BulkCancel  BulkVerb = "cancel"
	BulkDelete  BulkVerb = "delete"
	BulkUnblock BulkVerb = "unblock"
)

// BulkVerb is what Bulk does to tasks.
type BulkVerb string

// BulkVerbs lists the verbs of Bulk.
func BulkVerbs() []BulkVerb {
	return []BulkVerb{BulkRetry, BulkCancel, BulkDelete, BulkUnblock}
}

// MaxBulk is how many tasks one call of Bulk changes at most.
const MaxBulk = store.MaxLimit

// BulkRequest says which tasks Bulk changes, and how. It has either a Query or IDs.
type BulkRequest struct {
	Verb  BulkVerb
	Query *Query    // of what it asks for, what the verb can change, newest first; its Limit does not count
	IDs   []task.ID // these, at most 1,000

	Newest    task.ID       // with a Query: no task that was enqueued later; zero: any
	OlderThan time.Duration // with a Query: see OlderThan
	After     string        // Next of the call before
	Limit     int           // the most tasks; 0: 1,000, which is the most

	DryRun     bool // change nothing
	Force      bool // BulkCancel: see Force
	KeepSteps  bool // BulkRetry: see KeepSteps
	Cleanups   bool // BulkRetry: see Cleanups
	By, Reason string
}

// BulkResult says what a call of Bulk did.
type BulkResult struct {
	Done        int           // tasks that it changed; in a dry run: that it would
	Asked       int           // BulkCancel: of these, those that run, or clean up, and were asked to end
	UndoneFirst int           // BulkCancel, in a dry run: of these, those that would be undone before they end; see task.UndoPlan
	AlreadyDone int           // that the query selects no more, or that are as the verb would have them, by now
	Refused     []RefusedTask // that it could not change; in a dry run: as far as that is known before

	Scanned int // tasks that were looked at
	Unread  int // see SearchPage

	States  map[task.State]int // in a dry run: how many of Done are in which state
	Samples []ManyTask         // in a dry run: the first 20 of them

	// Newest is the newest task that was selected, or that of the request: as Newest of
	// another call it fixes what that one is for.
	Newest task.ID

	Next string // After for the next call to go on; "": this one came to the end
}
