package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// Filter selects tasks. An empty field matches every task.
type Filter struct {
	States     []task.State // any of them
	Types      []string     // any of them; a trailing ".*" matches a prefix: "acme.billing.*"
	Queue      string
	Job        task.ID
	Parent     task.ID           // parent of children, or task whose steps started them
	Labels     map[string]string // all of them
	Waiting    []task.Waiting    // any of them
	ErrorKinds []task.ErrorKind  // of the last error (task.Task.Error), any of them

	CreatedAfter  time.Time // inclusive lower bound of the enqueue time
	CreatedBefore time.Time // exclusive upper bound of the enqueue time

	Limit int    // 0 means 50; at most 1,000
	After string // cursor of the previous page, or any ID: exclusive upper bound
}

// Selects reports whether a task matches the filter. It ignores Limit and After.
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

// OfLane reports whether the filter may match tasks of a queue and type.
func (f *Filter) OfLane(queue, taskType string) bool {
	return (f.Queue == "" || f.Queue == queue) && (len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(want string) bool { return OfType(want, taskType) }))
}

// OfType reports whether a type matches the wanted type or prefix; see Filter.Types.
func OfType(want, taskType string) bool {
	if begin, ok := strings.CutSuffix(want, "*"); ok && strings.HasSuffix(begin, ".") {
		return strings.HasPrefix(taskType, begin)
	}
	return want == taskType
}

// Created returns CreatedAfter and CreatedBefore as a range of IDs, which contain the time: from is
// inclusive, to exclusive; a nil to means no upper bound.
func (f *Filter) Created() (from task.ID, to *task.ID) {
	if !f.CreatedAfter.IsZero() {
		var ok bool
		if from, ok = task.FirstID(f.CreatedAfter); !ok {
			return from, &task.ID{} // greater than any ID
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

// PageLimit returns the page size for a filter's Limit.
func PageLimit(limit int) int {
	switch {
	case limit <= 0:
		return DefaultLimit
	case limit > MaxLimit:
		return MaxLimit
	}
	return limit
}

// JobFilter selects jobs. An empty field matches every job.
type JobFilter struct {
	ID     task.ID // only this job, whatever the other fields hold; see JobOf
	Name   string
	States []task.JobState
	Limit  int
	After  string // see Filter
}

// JobOf reads one job. Error: ErrNotFound.
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

// History holds all records of one task.
type History struct {
	Task      task.Task
	Attempts  []task.Attempt  // by number; the running one last, without FinishedAt
	Decisions []task.Decision // by attempt
	Steps     []task.Step     // by index, then attempt and try
	Signals   []task.Signal   // oldest first

	Checkpoints []task.Checkpoint // by name
	Artifacts   []task.Artifact   // oldest first (by ID)

	Needs      []Need // tasks that it waits or waited for
	Dependents []Need // tasks that wait for it (ID and state are the dependent's)
	Audit      []AuditEntry
	Holders    []task.ID   // running tasks that hold its concurrency key, while it waits for the key
	Limits     []LimitRow  // limits that do not let it start, while it is due
	Ahead      task.ID     // first due task of its queue and type, while it waits for a concurrency key with free room
	TaskPause  *AuditEntry // if it is paused individually
	TypePause  *AuditEntry // while it has not ended and its type is paused
	QueuePause *AuditEntry // while it has not ended and its queue is paused
}

// Need is one edge as seen from a task.
type Need struct {
	ID    task.ID       `json:"id"`
	Node  string        `json:"node,omitempty"`
	Kind  task.EdgeKind `json:"kind"`
	State task.State    `json:"state"`
	Done  bool          `json:"done"` // the edge was decided

	Step       string      `json:"step,omitempty"`        // the call that stored this child
	Awaited    int         `json:"awaited,omitempty"`     // the attempt that began the wait for a child (Kind done) or a requested task (success); 0: not awaited
	EndedState task.State  `json:"ended_state,omitempty"` // final state of an awaited task when it ended the wait
	EndedError *task.Error `json:"ended_error,omitempty"` // its error, unless it succeeded: kind, code and message, cut to 1,024 bytes

	ErrorKind    task.ErrorKind `json:"error_kind,omitempty"`    // final error kind of the task
	AllowFailure bool           `json:"allow_failure,omitempty"` // of the task
}

// End returns the end of the task at the other end of the edge, or that it has not ended.
func (n *Need) End() task.End {
	return task.End{State: n.State, Kind: n.ErrorKind, AllowFailure: n.AllowFailure}
}
