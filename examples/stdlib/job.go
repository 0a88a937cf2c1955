package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver"
)

// The task types: a name that outlives this program, the types of input and
// output, and how to retry. In a larger system they stand in a package of
// their own, which producers and workers share.
var (
	Count  = weaver.Define[Package, Counted]("example.stdlib.count.v1")
	Flaky  = weaver.Define[Tree, string]("example.stdlib.flaky.v1", weaver.Backoff(300*time.Millisecond))
	Nap    = weaver.Define[Tree, int]("example.stdlib.nap.v1")
	Report = weaver.Define[Plan, Summary]("example.stdlib.report.v1")
)

// The names of the job's tasks. The report asks for outputs by them.
const (
	nodeFlaky  = "flaky"
	nodeNap    = "nap"
	nodeReport = "report"
)

func nodeCount(pkg string) string { return "count/" + pkg }

// jobName is how the next process finds the job.
const jobName = "stdlib"

// worker holds what the handlers need beside their input: settings that may
// differ from one process to the next, and open files. What decides the result
// belongs into the input instead, which is stored with the task.
type worker struct {
	cfg   config
	steps *stepLog
}

// handlers binds the code to the task types.
func (w *worker) handlers() []weaver.Handler {
	return []weaver.Handler{
		Count.Handler(w.count),
		Flaky.Handler(w.flaky),
		Nap.Handler(w.nap),
		Report.Handler(w.report),
	}
}

// newJob plans the work: a graph of tasks, each with its input and its needs.
func newJob(goroot string, pkgs []Package) *weaver.Job {
	job := weaver.NewJob(jobName)
	needs := []*weaver.Node{
		job.Add(nodeFlaky, Flaky.With(Tree{goroot}, weaver.Priority(1))),
		job.Add(nodeNap, Nap.With(Tree{goroot}, weaver.Priority(1))),
	}
	var plan Plan
	for _, pkg := range pkgs {
		needs = append(needs, job.Add(nodeCount(pkg.Path), Count.With(pkg)))
		plan.Packages = append(plan.Packages, pkg.Path)
	}
	// The report runs when all the others have succeeded, not before.
	job.Add(nodeReport, Report.With(plan), weaver.Needs(needs...))
	return job
}

// currentJob returns the job to work on: the unfinished one, or a new one.
func currentJob(ctx context.Context, client *weaver.Client, cfg config, show *display) (weaver.JobInfo, error) {
	newest, _, err := client.Jobs(ctx, weaver.JobFilter{Name: jobName, Limit: 1})
	if err != nil {
		return weaver.JobInfo{}, err
	}
	if len(newest) > 0 {
		last := newest[0]
		switch {
		case last.State.Terminal():
			show.say("the last job, %s, %s: starting a new one", last.ID, last.State)
		case cfg.fresh:
			show.say("giving up job %s with %d of %d tasks done: --fresh starts a new one", last.ID, last.Counters.Succeeded, last.Counters.Total)
			if _, err := client.CancelJob(ctx, last.ID, weaver.By("stdlib"), weaver.Reason("--fresh")); err != nil {
				return weaver.JobInfo{}, err
			}
		default:
			return last, continueJob(ctx, client, last, show)
		}
	}
	return submit(ctx, client, cfg, show)
}

// continueJob says where the work goes on. Nothing else is to be done: the
// engine finds the tasks by itself.
func continueJob(ctx context.Context, client *weaver.Client, job weaver.JobInfo, show *display) error {
	show.say("continuing job %s: %d of %d tasks done", job.ID, job.Counters.Succeeded, job.Counters.Total)
	leased, _, err := client.List(ctx, weaver.Filter{Job: job.ID, States: []weaver.State{weaver.StateRunning}, Limit: 1000})
	if err != nil {
		return err
	}
	// A process that was killed leaves its tasks running. The engine sees that
	// it is dead and takes them over; if it lives, the two share the work.
	holders := make(map[string]int)
	for _, t := range leased {
		holders[t.LeasedBy]++
	}
	for _, who := range slices.Sorted(maps.Keys(holders)) {
		show.say("%d more were being run by process %s: if it is dead they go on here, each after its last finished step", holders[who], who)
	}
	return nil
}

// submit makes a new job. Submit stores the job and all its tasks in one
// transaction: a kill leaves the whole job, or nothing.
func submit(ctx context.Context, client *weaver.Client, cfg config, show *display) (weaver.JobInfo, error) {
	goroot, err := findGoRoot(ctx, cfg.goroot)
	if err != nil {
		return weaver.JobInfo{}, err
	}
	pkgs, err := listPackages(goroot, cfg.limit)
	if err != nil {
		return weaver.JobInfo{}, err
	}
	handle, err := client.Submit(ctx, newJob(goroot, pkgs))
	if err != nil {
		return weaver.JobInfo{}, err
	}
	show.say("new job %s: %d packages of %s; state in %s", handle.ID(), len(pkgs), goroot, cfg.database())
	return client.Job(ctx, handle.ID())
}
