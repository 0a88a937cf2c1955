package wire

import (
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/task"
)

// BulkRequest says which tasks are changed, and how: those of q, or ids.
type BulkRequest struct {
	Verb   ops.BulkVerb `json:"verb"`                     // retry, cancel, delete or unblock
	Q      string       `json:"q,omitempty"`              // of what it selects, what the verb can change, newest first
	IDs    []string     `json:"ids,omitempty" max:"1000"` // at most 1,000
	Newest string       `json:"newest,omitempty"`         // with q: no task that was enqueued after this one
	Next   string       `json:"next,omitempty"`           // that of the answer before
	Limit  int          `json:"limit,omitempty"`          // the most tasks; 0: 1,000, which is the most
	Reason string       `json:"reason,omitempty"`         // for the audit
	DryRun bool         `json:"dry_run,omitempty"`        // change nothing
	Force  bool         `json:"force,omitempty"`          // cancel: running ones end at once

	KeepSteps bool `json:"keep_steps,omitempty"` // retry: although a cleanup ran
	Cleanup   bool `json:"cleanup,omitempty"`    // retry: try undos again that were given up
}

// BulkResult says what was done. While it has a next the same request goes on with that.
type BulkResult struct {
	Done        int           `json:"done"`                   // tasks that were changed; in a dry run: that would be
	Asked       int           `json:"asked"`                  // cancel: of these, those that run and were asked to end
	UndoneFirst int           `json:"undone_first,omitempty"` // cancel, in a dry run: of done, those that would be undone before they end
	AlreadyDone int           `json:"already_done"`           // that were as the verb would have them by then, or are not selected any more
	Refused     []RefusedTask `json:"refused"`                // that could not be changed

	States  map[task.State]int `json:"states,omitempty"`  // in a dry run: how many of done are in which state
	Samples []BulkSample       `json:"samples,omitempty"` // in a dry run: the first 20 of them

	Scanned int     `json:"scanned"`           // tasks that were looked at
	Unread  int     `json:"unread"`            // tasks whose values could not be read: they are not selected
	Newest  task.ID `json:"newest,omitzero"`   // the newest task that was selected: as newest it fixes what another request is for
	Next    string  `json:"next,omitempty"`    // left out: this was the end
	Trouble string  `json:"trouble,omitempty"` // why it ended early
}

// RefusedTask is a task that a verb could not change, and why.
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
