package wire

import (
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/task"
)

// BulkRequest selects tasks by q or ids, and a verb to apply to them.
type BulkRequest struct {
	Verb   ops.BulkVerb `json:"verb"`                     // retry, cancel, delete or unblock
	Q      string       `json:"q,omitempty"`              // the tasks that match it and that the verb can change, newest first
	IDs    []string     `json:"ids,omitempty" max:"1000"` // at most 1,000
	Newest string       `json:"newest,omitempty"`         // with q: exclude tasks that were enqueued after this one
	Next   string       `json:"next,omitempty"`           // the next of the previous response
	Limit  int          `json:"limit,omitempty"`          // limit of tasks; 0 means the maximum, 1,000
	Reason string       `json:"reason,omitempty"`         // for the audit log
	DryRun bool         `json:"dry_run,omitempty"`        // change nothing
	Force  bool         `json:"force,omitempty"`          // cancel: end running tasks at once

	KeepSteps bool `json:"keep_steps,omitempty"` // retry: also if a cleanup has run
	Cleanup   bool `json:"cleanup,omitempty"`    // retry: retry the undos that were given up
}

// BulkResult is the result of a BulkRequest. If it has a next, repeat the request with it.
type BulkResult struct {
	Done        int           `json:"done"`                   // tasks changed; in a dry run: tasks that would be changed
	Asked       int           `json:"asked"`                  // cancel: running tasks of done, whose end was requested
	UndoneFirst int           `json:"undone_first,omitempty"` // cancel, in a dry run: tasks of done that would first be undone
	AlreadyDone int           `json:"already_done"`           // tasks that already were in the resulting state, or are not selected any more
	Refused     []RefusedTask `json:"refused"`                // tasks that could not be changed

	States  map[task.State]int `json:"states,omitempty"`  // in a dry run: tasks of done by state
	Samples []BulkSample       `json:"samples,omitempty"` // in a dry run: the first 20 tasks of done

	Scanned int     `json:"scanned"`           // tasks read
	Unread  int     `json:"unread"`            // tasks whose values could not be read: they are not selected
	Newest  task.ID `json:"newest,omitzero"`   // the newest selected task: pass it as newest to fix the selection of further requests
	Next    string  `json:"next,omitempty"`    // left out at the end
	Trouble string  `json:"trouble,omitempty"` // the reason if it ended early
}

// RefusedTask is a task that a verb could not change, and the reason.
type RefusedTask struct {
	ID      task.ID  `json:"id"`
	Problem *Problem `json:"problem"`
}

// BulkSample is a task that a dry run lists.
type BulkSample struct {
	ID    task.ID    `json:"id"`
	Type  string     `json:"task_type"`
	Queue string     `json:"queue"`
	State task.State `json:"state"`
}
