package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxSimilar is the maximum number of job names kept for a suggestion.
const maxSimilar = 1000

// jobSearch scans the jobs once, newest first and no further than needed, for all interpretations of an argument.
type jobSearch struct {
	*resolver
	paths map[string]string    // by searched word
	found map[string]*task.Job // by searched word
	names []string             // names of the scanned jobs
	from  string               // cursor
	ended bool
}

func newJobSearch(r *resolver, arg string, list []reading) *jobSearch {
	s := &jobSearch{resolver: r, paths: map[string]string{arg: absolute(arg)}, found: make(map[string]*task.Job)}
	for _, way := range list {
		s.paths[way.job] = absolute(way.job)
	}
	return s
}

// near returns a path relative to the current folder, if it is there or below.
func near(path string) string {
	here, err := filepath.Abs(".")
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return path
}

// absolute returns the absolute path of a word; "" on an error.
func absolute(word string) string {
	path, err := filepath.Abs(word)
	if err != nil || word == "" {
		return ""
	}
	return path
}

// called returns the job with an ID, or the latest with a name or file; nil if there is no match.
func (s *jobSearch) called(ctx context.Context, word string) (*task.Job, error) {
	if s.found[word] == nil {
		job, err := s.byItsID(ctx, word)
		if err != nil {
			return nil, err
		}
		s.found[word] = job
	}
	for s.found[word] == nil && !s.ended {
		if err := s.page(ctx); err != nil {
			return nil, err
		}
	}
	return s.found[word], nil
}

func (s *jobSearch) page(ctx context.Context) error {
	jobs, next, err := s.client.Jobs(ctx, store.JobFilter{Limit: store.MaxLimit, After: s.from})
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		for word, path := range s.paths {
			if s.found[word] == nil && (j.Name == word || path != "" && j.Meta[metaFile] == path) {
				s.found[word] = j
			}
		}
		if len(s.names) < maxSimilar && !slices.Contains(s.names, j.Name) {
			s.names = append(s.names, j.Name)
		}
	}
	s.from, s.ended = next, next == ""
	return nil
}

// byItsID reads the job with an ID or ID prefix; nil if there is no match.
func (s *jobSearch) byItsID(ctx context.Context, word string) (*task.Job, error) {
	id, err := s.byID(ctx, wantJob, word)
	if err != nil || id.IsZero() {
		return nil, err
	}
	job, err := s.client.Job(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &job, nil
}

// node finds a task of a job by its name or ID. Without a match it returns zero and the names of the tasks.
func (r *resolver) node(ctx context.Context, job task.ID, name string) (id task.ID, names []string, err error) {
	f := weaver.Filter{Job: job, Limit: store.MaxLimit}
	for {
		tasks, next, err := r.client.List(ctx, f)
		if err != nil {
			return id, nil, err
		}
		for i := range tasks {
			if tasks[i].Node == name || tasks[i].ID.String() == name {
				return tasks[i].ID, nil, nil
			}
			names = append(names, tasks[i].Node)
		}
		if next == "" {
			return id, names, nil
		}
		f.After = next
	}
}

// keptNode finds a task that an update kept, which belongs to an earlier job; zero if there is no such task.
func (r *resolver) keptNode(ctx context.Context, job *task.Job, name string) (id task.ID, err error) {
	next := baseWalk(slices.Clone(job.BasedOn))
	for i := 0; i < maxUpdates && len(next) > 0; i++ {
		before := next.pop()
		earlier, err := r.client.Job(ctx, before)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return id, err
		}
		if id, _, err = r.node(ctx, before, name); err != nil || !id.IsZero() {
			return id, err
		}
		next.push(earlier.BasedOn)
	}
	return id, nil
}

// maxUpdates is the maximum number of earlier jobs that are searched for a task.
const maxUpdates = 100
