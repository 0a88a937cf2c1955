package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxGraph is how many nodes one page of a Graph has at most.
const MaxGraph = 10_000

// GraphRequest asks for the graph of a job.
type GraphRequest struct {
	Job   task.ID
	After string // cursor of the page before, or any id: what is newer than that
	Limit int    // of nodes; 0, or more than MaxGraph: MaxGraph
}

// Nodes is how many nodes the page may have.
func (r *GraphRequest) Nodes() int {
	if r.Limit <= 0 {
		return MaxGraph
	}
	return min(r.Limit, MaxGraph)
}

// Graph is the tasks of a job and what they need: one page of it, as it was at one
// instant.
type Graph struct {
	Nodes []GraphNode `json:"nodes"` // by ID, the oldest first
	Edges []GraphEdge `json:"edges"` // of the dependents among Nodes, by To, then by From
	Next  string      `json:"next,omitempty"`
}

// GraphNode is a task of a job.
type GraphNode struct {
	ID           task.ID        `json:"id"`
	Node         string         `json:"node,omitempty"`
	Type         string         `json:"task_type"`
	Queue        string         `json:"queue"`
	State        task.State     `json:"state"` // as it reads
	Waiting      task.Waiting   `json:"waiting,omitempty"`
	ErrorKind    task.ErrorKind `json:"error_kind,omitempty"` // of its last error
	AllowFailure bool           `json:"allow_failure,omitempty"`
	Parent       task.ID        `json:"parent_id,omitzero"` // the task that stored it: by a decompose, a call or an add_dependency
	Attempts     int            `json:"attempts"`           // that began
	StartedAt    time.Time      `json:"started_at,omitzero"`
	FinishedAt   time.Time      `json:"finished_at,omitzero"`
}

// GraphEdge says that the task To needs the task From, which may be of another job.
type GraphEdge struct {
	From    task.ID       `json:"from"`
	To      task.ID       `json:"to"`
	Kind    task.EdgeKind `json:"kind"`
	Decided bool          `json:"decided"`           // From has ended, and To knows
	Step    string        `json:"step,omitempty"`    // the call of To whose child From is
	Awaited int           `json:"awaited,omitempty"` // the attempt of To that began to wait; see Need
}
