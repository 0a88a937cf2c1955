package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxGraph is the maximum number of nodes in one page of a Graph.
const MaxGraph = 10_000

// GraphRequest asks for the graph of a job.
type GraphRequest struct {
	Job   task.ID
	After string // cursor of the previous page, or any ID: exclusive lower bound
	Limit int    // number of nodes; 0, or more than MaxGraph, means MaxGraph
}

// Nodes returns the maximum number of nodes in the page.
func (r *GraphRequest) Nodes() int {
	if r.Limit <= 0 {
		return MaxGraph
	}
	return min(r.Limit, MaxGraph)
}

// Graph is one page of the tasks of a job and their needs, from one snapshot.
type Graph struct {
	Nodes []GraphNode `json:"nodes"` // by ID, oldest first
	Edges []GraphEdge `json:"edges"` // edges whose To is in Nodes, by To, then by From
	Next  string      `json:"next,omitempty"`
}

// GraphNode is a task of a job.
type GraphNode struct {
	ID           task.ID        `json:"id"`
	Node         string         `json:"node,omitempty"`
	Type         string         `json:"task_type"`
	Queue        string         `json:"queue"`
	State        task.State     `json:"state"` // derived state
	Waiting      task.Waiting   `json:"waiting,omitempty"`
	ErrorKind    task.ErrorKind `json:"error_kind,omitempty"` // of its last error
	AllowFailure bool           `json:"allow_failure,omitempty"`
	Parent       task.ID        `json:"parent_id,omitzero"` // the task that stored it, by a decompose, a call or an add_dependency
	Attempts     int            `json:"attempts"`           // number of attempts begun
	StartedAt    time.Time      `json:"started_at,omitzero"`
	FinishedAt   time.Time      `json:"finished_at,omitzero"`
}

// GraphEdge is a need: the task To needs the task From, which may belong to another job.
type GraphEdge struct {
	From    task.ID       `json:"from"`
	To      task.ID       `json:"to"`
	Kind    task.EdgeKind `json:"kind"`
	Decided bool          `json:"decided"`           // From has ended, and To has recorded its end
	Step    string        `json:"step,omitempty"`    // the call of To that stored From
	Awaited int           `json:"awaited,omitempty"` // the attempt of To that began the wait; see Need
}
