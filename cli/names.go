package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Forms of an argument that names a task or a job; the first match counts:
//
//  1. An ID.
//  2. A prefix of an ID with at least minID characters. For a job only jobs count, for a task only tasks. Where either is
//     accepted, a job and its own tasks count as the job.
//  3. For a job: its name, or the path of its pipeline file. The latest job with either one counts.
//  4. For a task: JOB/TASK, where JOB is one of 1 to 3 and TASK is the name of the task in the job. With several slashes
//     the last split that finds a task counts.

// minID is the minimum length of an ID prefix.
const minID = 4

// idLength is the length of an ID in characters.
const idLength = 26

// maxCandidates is the maximum number of IDs listed for an ambiguous prefix.
const maxCandidates = 5

// target is the kind of object that an argument may name.
type target int

const (
	wantTask target = 1 << iota
	wantJob
	wantAny = wantTask | wantJob
)

func (w target) String() string {
	switch w {
	case wantTask:
		return "task"
	case wantJob:
		return "job"
	}
	return "task or job"
}

// forms lists the forms that were tried for an argument without a match.
func (w target) forms() string {
	beginning := fmt.Sprintf("a prefix of one (%d characters or more)", minID)
	switch w {
	case wantTask:
		return "a task's id, " + beginning + ", and JOB/TASK"
	case wantJob:
		return "a job's id, " + beginning + ", its name and its file"
	}
	return "an id, " + beginning + ", a job's name, its file, and JOB/TASK"
}

// resolver resolves arguments to tasks and jobs.
type resolver struct {
	*session
	client *weaver.Client
}

// resolve returns the IDs that the arguments name, each once. Its error lists all arguments without a match. A
// complete ID is not checked: it may not exist or may belong to the other kind, so that session.absent can explain
// the error.
func (s *session) resolve(ctx context.Context, c *weaver.Client, want target, args ...string) ([]task.ID, error) {
	r := resolver{s, c}
	var ids []task.ID
	var problems []error
	for _, arg := range args {
		id, err := r.find(ctx, want, arg)
		switch {
		case err != nil:
			problems = append(problems, err)
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	if len(problems) > 0 {
		return nil, worst(s.command, problems)
	}
	return ids, nil
}

// resolveOne is resolve for one argument.
func (s *session) resolveOne(ctx context.Context, c *weaver.Client, want target, arg string) (task.ID, error) {
	ids, err := s.resolve(ctx, c, want, arg)
	if err != nil {
		return task.ID{}, err
	}
	return ids[0], nil
}

// namedJob reads the job that an argument names, with its tasks.
func (s *session) namedJob(ctx context.Context, c *weaver.Client, arg string) (jobTasks, error) {
	id, err := s.resolveOne(ctx, c, wantJob, arg)
	if err != nil {
		return jobTasks{}, err
	}
	st, err := readJob(ctx, c, id)
	if err != nil {
		return jobTasks{}, s.absent(ctx, c, "job", id, err)
	}
	return st, nil
}

func (r *resolver) find(ctx context.Context, want target, arg string) (task.ID, error) {
	id, err := r.byID(ctx, want, arg)
	if err != nil || !id.IsZero() {
		return id, err
	}
	return r.byName(ctx, want, arg)
}

// byID resolves an ID or a prefix of an ID; zero if there is no match.
func (r *resolver) byID(ctx context.Context, want target, arg string) (task.ID, error) {
	if id, err := task.ParseID(arg); err == nil {
		return id, nil
	}
	from, to, ok := idRange(arg)
	if !ok {
		return task.ID{}, nil
	}
	jobs, err := r.jobsBetween(ctx, from, to)
	if err != nil {
		return task.ID{}, err
	}
	tasks, err := r.tasksBetween(ctx, from, to)
	if err != nil {
		return task.ID{}, err
	}
	if want == wantJob && len(jobs) > 0 || want == wantAny && len(jobs) == 1 && ownedBy(jobs[0].ID, tasks) {
		tasks = nil
	}
	if want == wantTask && len(tasks) > 0 {
		jobs = nil
	}
	switch {
	case len(jobs)+len(tasks) == 0:
		return task.ID{}, nil
	case len(jobs)+len(tasks) > 1:
		return task.ID{}, ambiguous(arg, jobs, tasks)
	case len(jobs) == 1:
		return jobs[0].ID, nil
	}
	return tasks[0].ID, nil
}

func ownedBy(job task.ID, tasks []task.Task) bool {
	return !slices.ContainsFunc(tasks, func(t task.Task) bool { return t.JobID != job })
}

// idRange returns the first and last ID with a prefix. ok is false if no ID can have the prefix, or it is too short.
func idRange(beginning string) (from, to task.ID, ok bool) {
	missing := idLength - len(beginning)
	if len(beginning) < minID || missing < 1 {
		return from, to, false
	}
	from, err := task.ParseID(beginning + strings.Repeat("0", missing))
	if err != nil {
		return from, to, false
	}
	to, err = task.ParseID(beginning + strings.Repeat("Z", missing))
	return from, to, err == nil
}

// after returns the cursor of a list that begins with an ID.
func after(id task.ID) string {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			return id.String()
		}
	}
	return "" // the last possible ID
}

// jobsBetween returns the newest jobs in a range of IDs, as many as a message needs.
func (r *resolver) jobsBetween(ctx context.Context, from, to task.ID) ([]task.Job, error) {
	jobs, _, err := fill(maxCandidates+1, after(to), func(limit int, after string) ([]task.Job, string, error) {
		jobs, next, err := r.client.Jobs(ctx, store.JobFilter{Limit: limit, After: after})
		return untilOlder(jobs, next, from, func(j task.Job) task.ID { return j.ID }, err)
	})
	return jobs, err
}

// tasksBetween is jobsBetween for tasks.
func (r *resolver) tasksBetween(ctx context.Context, from, to task.ID) ([]task.Task, error) {
	tasks, _, err := fill(maxCandidates+1, after(to), func(limit int, after string) ([]task.Task, string, error) {
		tasks, next, err := r.client.List(ctx, weaver.Filter{Limit: limit, After: after})
		return untilOlder(tasks, next, from, func(t task.Task) task.ID { return t.ID }, err)
	})
	return tasks, err
}

// untilOlder cuts a list before the first row that is older than an ID.
func untilOlder[T any](rows []T, next string, than task.ID, id func(T) task.ID, err error) ([]T, string, error) {
	for i, row := range rows {
		if got := id(row); bytes.Compare(got[:], than[:]) < 0 {
			return rows[:i], "", err
		}
	}
	return rows, next, err
}

// ambiguous returns the error for a prefix of several IDs.
func ambiguous(arg string, jobs []task.Job, tasks []task.Task) error {
	t := newTable("", "", "")
	for _, j := range jobs {
		t.add(plain(j.ID.String()), plain("job "+text.OneLine(j.Name, explain.MaxNote)), plain(string(j.State)))
	}
	for _, k := range tasks {
		name := k.Node
		if name == "" {
			name = k.Type
		}
		t.add(plain(k.ID.String()), plain(text.OneLine(name, explain.MaxNote)), plain(string(k.State)))
	}
	more := len(t.rows) > maxCandidates
	t.rows = t.rows[:min(len(t.rows), maxCandidates)]
	var list bytes.Buffer
	t.print(&list, text.Painter{}, "  ")
	_, rows, _ := strings.Cut(list.String(), "\n") // without the header
	if more {
		rows += "  … and more\n"
	}
	return badInput(strings.TrimSpace(rows), "%q is a prefix of several ids: write more characters", arg)
}

// reading is one interpretation of an argument: a job or, with node, a task of it.
type reading struct{ job, node string }

// readings returns the interpretations of an argument that is not an ID; the first one with a match counts.
func readings(want target, arg string) []reading {
	var list []reading
	if want&wantJob != 0 && arg != "" {
		list = append(list, reading{job: arg})
	}
	if want&wantTask == 0 {
		return list
	}
	for i := len(arg) - 2; i > 0; i-- {
		if arg[i] == '/' {
			list = append(list, reading{arg[:i], arg[i+1:]})
		}
	}
	return list
}

// byName resolves an argument that is not an ID.
func (r *resolver) byName(ctx context.Context, want target, arg string) (task.ID, error) {
	list := readings(want, arg)
	jobs := newJobSearch(r, arg, list)
	var absent error // the job exists, but not the task
	for _, way := range list {
		job, err := jobs.called(ctx, way.job)
		if err != nil {
			return task.ID{}, err
		}
		if job == nil {
			continue
		}
		if way.node == "" {
			return job.ID, nil
		}
		id, nodes, err := r.node(ctx, job.ID, way.node)
		if err == nil && id.IsZero() {
			id, err = r.keptNode(ctx, job, way.node)
		}
		switch {
		case err != nil || !id.IsZero():
			return id, err
		case absent == nil:
			absent = badInput(fmt.Sprintf("`%s` lists them.", r.command("job", "show", job.ID.String())),
				"job %s (%q) has no task %q%s", job.ID, text.OneLine(job.Name, explain.MaxNote), way.node, didYouMean(way.node, nodes))
		}
	}
	if absent != nil {
		return task.ID{}, absent
	}
	job, err := jobs.called(ctx, arg)
	switch {
	case err != nil:
		return task.ID{}, err
	case job != nil:
		return task.ID{}, badInput(fmt.Sprintf("Write %s/TASK; `%s` lists them.", arg, r.command("job", "show", job.ID.String())),
			"%q is a job (%s), not a task", arg, job.ID)
	}
	meant := didYouMean(arg, jobs.names)
	if i := strings.LastIndex(arg, "/"); i > 0 && meant == "" && want&wantTask != 0 {
		if job, near := strings.CutSuffix(didYouMean(arg[:i], jobs.names), "?)"); near {
			meant = job + arg[i:] + "?)"
		}
	}
	return task.ID{}, badInput(advice(r.command, store.ErrNotFound), "no %s %q in namespace %q of %s: looked for %s%s",
		want, arg, r.client.Namespace(), r.store(), want.forms(), meant)
}
