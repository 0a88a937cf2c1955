package store

import (
	"context"

	"github.com/goweaver/weaver/task"
)

// EdgeReader is implemented by stores that read the whole graph of a job at
// once. With it a reader follows needs over any number of tasks without a
// History for each.
type EdgeReader interface {
	// Edges returns the edges of the tasks of a job, by Task, then by Needs; none
	// for a job that does not exist. It reads a row for each task of the job and
	// one for each edge.
	Edges(ctx context.Context, ns string, job task.ID) ([]EdgeRow, error)
}
