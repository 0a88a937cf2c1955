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

// What an argument that names a task or a job may be; the first that fits
// counts:
//
//  1. An id.
//  2. The beginning of an id, of minID characters or more. For a job only jobs
//     count, for a task only tasks; where both are wanted, a job and its own
//     tasks count as the job.
//  3. For a job: its name, or the path of its pipeline's file. It is the latest
//     job that has one or the other.
//  4. For a task: JOB/TASK, with JOB as in 1 to 3, and the name of the task in
//     it. Where several slashes could divide them, it is the last one that
//     finds a task.

// minID is how many characters the beginning of an id has at least.
const minID = 4

// idLength is how many characters an id has.
const idLength = 26

// maxCandidates is how many ids an ambiguous beginning is answered with.
const maxCandidates = 5

// target is what an argument may name.
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

// forms are what was tried for an argument that names nothing.
func (w target) forms() string {
	beginning := fmt.Sprintf("the beginning of one (%d characters or more)", minID)
	switch w {
	case wantTask:
		return "a task's id, " + beginning + ", and JOB/TASK"
	case wantJob:
		return "a job's id, " + beginning + ", its name and its file"
	}
	return "an id, " + beginning + ", a job's name, its file, and JOB/TASK"
}

// resolver finds the tasks and jobs that arguments name.
type resolver struct {
	*session
	client *weaver.Client
}

// resolve finds what each argument names and returns each id once; its error
// names all arguments that name nothing. That an id exists is not known: one
// that is written whole is not looked for, and one of the other kind is
// returned too, so that session.absent can say so.
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

// resolveOne is resolve of one argument.
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

// byID finds what an argument names as an id or as the beginning of one; zero:
// nothing.
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

// idRange returns the first and the last id with a beginning. ok is false when
// no id begins so, or it is too short.
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

// after is the cursor of a list that begins with an id.
func after(id task.ID) string {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			return id.String()
		}
	}
	return "" // it is the last id there can be
}

// jobsBetween returns the newest jobs whose ids are in a range: as many as an
// answer needs.
func (r *resolver) jobsBetween(ctx context.Context, from, to task.ID) ([]task.Job, error) {
	jobs, _, err := fill(maxCandidates+1, after(to), func(limit int, after string) ([]task.Job, string, error) {
		jobs, next, err := r.client.Jobs(ctx, weaver.JobFilter{Limit: limit, After: after})
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

// untilOlder ends a list before the first row that is older than an id.
func untilOlder[T any](rows []T, next string, than task.ID, id func(T) task.ID, err error) ([]T, string, error) {
	for i, row := range rows {
		if got := id(row); bytes.Compare(got[:], than[:]) < 0 {
			return rows[:i], "", err
		}
	}
	return rows, next, err
}

// ambiguous says that several ids begin as an argument does.
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
	return badInput(strings.TrimSpace(rows), "%q is the beginning of several ids: write more of the one that is meant", arg)
}

// reading is one way to understand an argument: a job, or with node a task of it.
type reading struct{ job, node string }

// readings are the ways to understand an argument that is no id, the first that
// finds something counts.
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

// byName finds what an argument names that is no id.
func (r *resolver) byName(ctx context.Context, want target, arg string) (task.ID, error) {
	list := readings(want, arg)
	jobs := newJobSearch(r, arg, list)
	var absent error // a job was found, and not the task
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
