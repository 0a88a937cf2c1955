package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explainread"
	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/task"
)

// reader is the part of a client and its store that explanations need.
type reader = explainread.Source

// masked returns a client that masks tasks for display. Verbs that process a value use the client itself.
func masked(c *weaver.Client) explainread.Masked { return explainread.Masked{Client: c} }

// jobTasks is a job with all its tasks.
type jobTasks = view.JobTasks

// readJob reads a job and its tasks in creation order. It returns ErrNotFound for an unknown job.
func readJob(ctx context.Context, c *weaver.Client, id weaver.JobID) (st jobTasks, err error) {
	if st.JobInfo, err = c.Job(ctx, id); err == nil {
		st.Tasks, err = c.JobTasks(ctx, id)
	}
	return st, err
}

// explains returns the reader for this program's explanations.
func (s *session) explains(read reader) explainread.Reader {
	types := s.types()
	return explainread.Reader{Source: read, TakeOver: s.takeOver, Runs: func(name string) bool { _, known := types[name]; return known }}
}

// takeOver is explainread.Reader.TakeOver: a worker, and a run of the job's file.
func (s *session) takeOver(job *task.Job) []string {
	commands := []string{s.command("worker")}
	if job == nil {
		return commands
	}
	if path := nearby(job.Meta[metaFile]); path != "" {
		commands = append(commands, s.command(append([]string{"run", path}, paramArgsOf(job)...)...))
	}
	return commands
}

// nearby shortens a path for the user: relative if the file is in the current folder or below it.
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

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}
