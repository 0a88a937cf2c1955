package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var sqlEdgesOfJob = `
SELECT ` + edgeColumns.List() + ` FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id IN (
  SELECT task_id FROM weaver_tasks INDEXED BY weaver_tasks_by_job WHERE namespace = ?1 AND job_id = ?2)`

// Edges implements store.EdgeReader.
func (s *Store) Edges(ctx context.Context, ns string, job task.ID) (edges []store.EdgeRow, err error) {
	err = s.read(ctx, ns, func(v *View) (err error) {
		edges, err = edgeColumns.All(v.stmt(sqlEdgesOfJob).Text(1, ns).ID(2, &job))
		return err
	})
	slices.SortFunc(edges, func(a, b store.EdgeRow) int {
		return cmp.Or(a.Task.Compare(b.Task), a.Needs.Compare(b.Needs))
	})
	return edges, err
}
