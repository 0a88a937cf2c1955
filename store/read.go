package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// Filter selects tasks; empty fields select all.
type Filter struct {
	States     []task.State      // any of them
	Types      []string          // any of them; one that ends in ".*" is every type that begins as it does: "acme.billing.*"
	Queue      string            // this one
	Job        task.ID           // of this job
	Parent     task.ID           // children of this task, and tasks that its steps started
	Labels     map[string]string // all of them
	Waiting    []task.Waiting    // that wait for any of them
	ErrorKinds []task.ErrorKind  // whose last error (task.Task.Error) is of any of them

	CreatedAfter  time.Time // enqueued then or later
	CreatedBefore time.Time // enqueued earlier, and not at that instant

	Limit int    // 0: 50; at most 1,000
	After string // cursor of the page before, or any id: what is older than that
}

// Selects reports whether the filter asks for a task. Its page (Limit, After)
// is not looked at.
func (f *Filter) Selects(t *task.Task) bool {
	if len(f.States) > 0 && !slices.Contains(f.States, t.State) ||
		!f.OfLane(t.Queue, t.Type) ||
		!f.Job.IsZero() && f.Job != t.JobID ||
		!f.Parent.IsZero() && f.Parent != t.ParentID ||
		len(f.Waiting) > 0 && !slices.Contains(f.Waiting, t.Waiting) ||
		len(f.ErrorKinds) > 0 && !slices.Contains(f.ErrorKinds, t.End().Kind) {
		return false
	}
	if from, to := f.Created(); t.ID.Compare(from) < 0 || to != nil && t.ID.Compare(*to) >= 0 {
		return false
	}
	for k, v := range f.Labels {
		if got, ok := t.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// OfLane reports whether the filter may ask for tasks of a queue and type.
func (f *Filter) OfLane(queue, taskType string) bool {
	return (f.Queue == "" || f.Queue == queue) && (len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(want string) bool { return OfType(want, taskType) }))
}

// OfType reports whether a type is the one that a Filter names, or one of those: see
// Filter.Types.
func OfType(want, taskType string) bool {
	if begin, ok := strings.CutSuffix(want, "*"); ok && strings.HasSuffix(begin, ".") {
		return strings.HasPrefix(taskType, begin)
	}
	return want == taskType
}

// Created is CreatedAfter and CreatedBefore as a range of ids, which have the time in
// them: from is in it, to is not; nil: it has no end.
func (f *Filter) Created() (from task.ID, to *task.ID) {
	if !f.CreatedAfter.IsZero() {
		var ok bool
		if from, ok = task.FirstID(f.CreatedAfter); !ok {
			return from, &task.ID{} // later than any id
		}
	}
	if !f.CreatedBefore.IsZero() {
		if end, ok := task.FirstID(f.CreatedBefore); ok {
			to = &end
		}
	}
	return from, to
}

// Page sizes of List and Jobs.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
)

// PageLimit returns the page size that a filter's Limit asks for.
func PageLimit(limit int) int {
	switch {
	case limit <= 0:
		return DefaultLimit
	case limit > MaxLimit:
		return MaxLimit
	}
	return limit
}

// JobFilter selects jobs; empty fields select all.
type JobFilter struct {
	ID     task.ID // only this one, whatever the rest says; see JobOf
	Name   string
	States []task.JobState
	Limit  int
	After  string // see Filter
}

// JobOf reads one job. ErrNotFound: it does not exist.
func JobOf(ctx context.Context, r Flow, ns string, id task.ID) (task.Job, error) {
	notFound := fmt.Errorf("%w: job %s", ErrNotFound, id)
	if id.IsZero() {
		return task.Job{}, notFound
	}
	list, _, err := r.Jobs(ctx, ns, JobFilter{ID: id})
	switch {
	case err != nil:
		return task.Job{}, err
	case len(list) == 0:
		return task.Job{}, notFound
	}
	return list[0], nil
}

// History is everything recorded about one task.
type History struct {
	Task      task.Task
	Attempts  []task.Attempt  // by number; the running one last, without FinishedAt
	Decisions []task.Decision // by attempt
	Steps     []task.Step     // by index, then attempt and try
	Signals   []task.Signal   // oldest first

	Checkpoints []task.Checkpoint // by name
	Artifacts   []task.Artifact   // oldest first (by ID)

	Needs      []Need // what it waits or waited for
	Dependents []Need // who waits for it (ID and state are the dependent's)
	Audit      []AuditEntry
	Holders    []task.ID   // running tasks with its concurrency key, while it waits for that
	Ahead      task.ID     // the due task of its queue and type that comes first, while its concurrency key has room and it waits for that
	TaskPause  *AuditEntry // if it is paused by itself
	TypePause  *AuditEntry // while it has not ended, and its type is paused
	QueuePause *AuditEntry // while it has not ended, and its queue is paused
}

// Need is one edge, seen from a task.
type Need struct {
	ID    task.ID       `json:"id"`
	Node  string        `json:"node,omitempty"`
	Kind  task.EdgeKind `json:"kind"`
	State task.State    `json:"state"`
	Done  bool          `json:"done"` // the edge was decided

	Step       string      `json:"step,omitempty"`        // the call whose child it is
	Awaited    int         `json:"awaited,omitempty"`     // the attempt that began to wait for it: a child (of Kind done), or one that it asked for (success); 0: none
	EndedState task.State  `json:"ended_state,omitempty"` // of an awaited one: with which it ended the wait
	EndedError *task.Error `json:"ended_error,omitempty"` // and why, unless it succeeded: kind, code and message, of which the first 1,024 bytes are kept

	ErrorKind    task.ErrorKind `json:"error_kind,omitempty"`    // with which the task ended
	AllowFailure bool           `json:"allow_failure,omitempty"` // of the task
}

// End is how the task at the other end of the edge ended, or that it has not.
func (n *Need) End() task.End {
	return task.End{State: n.State, Kind: n.ErrorKind, AllowFailure: n.AllowFailure}
}
