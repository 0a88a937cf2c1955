package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/monitor"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// reader is what an explanation needs of a client and its store.
type reader interface {
	History(context.Context, weaver.TaskID) (weaver.History, error)
	List(context.Context, weaver.Filter) ([]weaver.TaskInfo, string, error)
	Job(context.Context, weaver.JobID) (weaver.JobInfo, error)
	JobStatus(context.Context, weaver.JobID) (weaver.JobStatus, error)
	JobTasks(context.Context, weaver.JobID) ([]weaver.TaskInfo, error)
	Edges(context.Context, weaver.JobID) ([]store.GraphEdge, error)
	Orphans(context.Context, ...weaver.TaskID) ([]weaver.TaskID, error)
}

// clientReader is a client with all edges of a job, and with the dead workers' tasks
// where its store knows them.
type clientReader struct{ *weaver.Client }

// Edges returns the edges of the tasks of a job.
func (c clientReader) Edges(ctx context.Context, job weaver.JobID) (edges []store.GraphEdge, err error) {
	for req := (weaver.GraphRequest{Job: job}); ; {
		g, err := c.Graph(ctx, req)
		if err != nil {
			return nil, err
		}
		edges = append(edges, g.Edges...)
		if req.After = g.Next; req.After == "" {
			return edges, nil
		}
	}
}

func (c clientReader) Orphans(ctx context.Context, ids ...weaver.TaskID) ([]weaver.TaskID, error) {
	if r, ok := c.Store().(store.OrphanReader); ok {
		return r.Orphans(ctx, c.Namespace(), ids...)
	}
	return nil, nil
}

// rootOf finds the way from a task to the root cause of its wait or cancel, from
// all tasks and edges of its job.
func rootOf(ctx context.Context, read reader, t *task.Task) ([]*task.Task, error) {
	if t.JobID.IsZero() || t.State != task.Pending && t.State != task.Cancelled {
		return nil, nil
	}
	edges, err := read.Edges(ctx, t.JobID)
	if err != nil || len(edges) == 0 {
		return nil, err
	}
	tasks, err := read.JobTasks(ctx, t.JobID)
	if err != nil {
		return nil, err
	}
	return explain.RootOf(t, tasks, edges), nil
}

// jobTasks is a job with all its tasks.
type jobTasks = monitor.JobTasks

// readJob reads a job and its tasks, in the order of their creation; ErrNotFound.
func readJob(ctx context.Context, c *weaver.Client, id weaver.JobID) (st jobTasks, err error) {
	if st.JobInfo, err = c.Job(ctx, id); err == nil {
		st.Tasks, err = c.JobTasks(ctx, id)
	}
	return st, err
}

// findGone adds those of the tasks to c.Gone whose worker is known to be dead.
func (s *session) findGone(ctx context.Context, read reader, c explain.Clock, tasks ...*task.Task) error {
	byID := make(map[task.ID]*task.Task)
	var running []task.ID
	for _, t := range tasks {
		if _, known := c.Gone[t.ID]; t.State == task.Running && !known {
			byID[t.ID] = t
			running = append(running, t.ID)
		}
	}
	if len(running) == 0 {
		return nil
	}
	orphans, err := read.Orphans(ctx, running...)
	if err != nil {
		return err
	}
	files := make(map[task.ID][]string) // how run names the job
	for _, id := range orphans {
		c.Gone[id] = []string{s.command("worker")}
		job := byID[id].JobID
		if job.IsZero() {
			continue
		}
		if _, seen := files[job]; !seen {
			j, err := read.Job(ctx, job)
			if err != nil {
				return err
			}
			files[job] = nil
			if path := nearby(j.Meta[metaFile]); path != "" {
				files[job] = append([]string{"run", path}, paramArgsOf(&j)...)
			}
		}
		if files[job] != nil {
			c.Gone[id] = append(c.Gone[id], s.command(files[job]...))
		}
	}
	return nil
}

// nearby is the path of a file as a person types it here: relative when the file
// is in this folder or below it.
func nearby(path string) string {
	here, err := os.Getwd()
	if err != nil || path == "" {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// pointers are those to the elements of a list.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// jobOf reads the job of a task that its deadline may have ended; nil for other
// tasks.
func jobOf(ctx context.Context, read reader, t *task.Task) (*task.Job, error) {
	if t.JobID.IsZero() || t.State != task.Cancelled {
		return nil, nil
	}
	j, err := read.Job(ctx, t.JobID)
	return &j, err
}
