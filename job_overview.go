package weaver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// JobStatus is a job with the numbers of its tasks and its bottleneck. JobTasks reads the tasks.
type JobStatus struct {
	JobInfo
	States     map[State]int        `json:"states,omitempty"`     // number of tasks by state, without zeros
	Waiting    map[task.Waiting]int `json:"waiting,omitempty"`    // waiting reasons of pending and blocked tasks
	NextDue    time.Time            `json:"next_due,omitzero"`    // soonest due time of a task that waits for a time
	Bottleneck string               `json:"bottleneck,omitempty"` // reason in words why the job has not ended; "" when it has
}

// JobStatus reads a job and the numbers of its tasks, but not the tasks. The store counts, so the size
// of the answer does not grow with the job. Error: ErrNotFound.
func (c *Client) JobStatus(ctx context.Context, id JobID) (JobStatus, error) {
	job, err := c.Job(ctx, id)
	if err != nil {
		return JobStatus{}, err
	}
	counts, err := c.countJob(ctx, id)
	if err != nil {
		return JobStatus{}, fmt.Errorf("count the tasks of job %s: %w", id, err)
	}
	st := JobStatus{JobInfo: job, States: counts.States, Waiting: counts.Waiting, NextDue: counts.NextDue}
	if st.State.Terminal() {
		return st, nil
	}
	b := bottleneck{JobCounts: counts, job: &st.JobInfo, now: time.Now()}
	if len(counts.Lanes) > 0 {
		// Without the workers a missing worker goes unreported; the rest is valid.
		b.workers, b.workersErr = c.Workers(ctx)
	}
	st.Bottleneck = b.String()
	return st, nil
}

// countJob counts the tasks of a job, page by page, for a store that does not count.
func (c *Client) countJob(ctx context.Context, id JobID) (counts store.JobCounts, err error) {
	if c.store.Capabilities().Has(store.CanCountJobs) {
		o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewJob, Job: id})
		return o.Job, err
	}
	for f := (Filter{Job: id, Limit: store.MaxLimit}); ; {
		page, next, err := c.store.List(ctx, c.ns, f)
		if err != nil {
			return counts, err
		}
		for i := range page {
			counts.Add(&page[i], 1)
		}
		if f.After = next; next == "" {
			counts.Sort()
			return counts, nil
		}
	}
}

// bottleneck describes why a job waits.
type bottleneck struct {
	store.JobCounts
	job        *JobInfo
	now        time.Time
	workers    []store.WorkerStatus
	workersErr error
}

// String returns the reasons why the job has not ended, worst first: "2 tasks wait for a person; 1
// runs".
func (b *bottleneck) String() string {
	var said []string
	say := func(n int, one, many string) {
		if n == 0 {
			return
		}
		words := many
		if n == 1 {
			words = one
		}
		noun := ""
		if len(said) == 0 {
			if noun = " tasks"; n == 1 {
				noun = " task"
			}
		}
		said = append(said, fmt.Sprintf("%d%s %s", n, noun, words))
	}
	ready := b.States[task.Ready]
	for _, l := range b.Lanes {
		if b.served(&l) {
			continue
		}
		ready -= l.Ready
		what := fmt.Sprintf("due, and no worker handles the type %s (queue %q)", l.Type, l.Queue)
		say(l.Ready, "is "+what, "are "+what)
		if len(said) == maxLanes {
			break
		}
	}
	if b.Waiting[task.WaitBudget] > 0 {
		say(b.Waiting[task.WaitBudget], "has used up its budget", "have used up their budgets")
	}
	say(b.States[task.Blocked]-b.blockedFor(task.WaitBudget), "waits for a person", "wait for a person")
	say(b.Waiting[task.WaitSignal], "waits for a signal", "wait for a signal")
	say(b.Waiting[task.WaitPaused], "is paused, or its type or queue is", "are paused, or their types or queues are")
	say(b.States[task.Running], "runs", "run")
	say(ready, "is due, and starts when a worker has a free slot", "are due, and start when a worker has a free slot")
	say(b.Waiting[task.WaitConcurrency], "waits for its concurrency key", "wait for their concurrency key")
	if n := b.timed(); n > 0 {
		what := "a retry, a sleep or a delay, due at " + b.NextDue.UTC().Format(time.RFC3339)
		say(n, "waits for "+what, "wait for "+what+" at the earliest")
	}
	if open := b.waiting(task.Waiting.OnTasks); len(said) == 0 && open > 0 {
		said = append(said, "its tasks wait for each other")
	} else {
		say(open, "waits for other tasks", "wait for other tasks")
	}
	if left := b.timeLeft(); left != "" {
		said = append(said, left)
	}
	return strings.Join(said, "; ")
}

// maxLanes is the maximum number of lanes without a worker to name.
const maxLanes = 3

// served reports whether a recently seen worker handles the lane's type.
func (b *bottleneck) served(l *store.LaneCount) bool {
	return b.workersErr != nil || slices.ContainsFunc(b.workers, func(w store.WorkerStatus) bool {
		return slices.Contains(w.Types, l.Type) && !w.Silent && !w.Dead
	})
}

// blockedFor counts the blocked tasks with a reason. Pending tasks may share the reason; blocked ones
// are counted first.
func (b *bottleneck) blockedFor(w task.Waiting) int { return min(b.Waiting[w], b.States[task.Blocked]) }

// timed counts the tasks that wait only for an instant.
func (b *bottleneck) timed() int {
	if b.NextDue.IsZero() {
		return 0
	}
	return max(b.States[task.Pending]-b.waiting(func(w task.Waiting) bool {
		return w.OnTasks() || w == task.WaitSignal || w == task.WaitPaused || w == task.WaitConcurrency
	}), 0)
}

// waiting counts the tasks whose reason matches.
func (b *bottleneck) waiting(reason func(task.Waiting) bool) (n int) {
	for w, waits := range b.Waiting {
		if reason(w) {
			n += waits
		}
	}
	return n
}

// timeLeft reports that at most a tenth of the job's time budget is left, else "".
func (b *bottleneck) timeLeft() string {
	if b.job.DeadlineAt.IsZero() {
		return ""
	}
	left, all := b.job.DeadlineAt.Sub(b.now), b.job.DeadlineAt.Sub(b.job.CreatedAt)
	switch {
	case left <= 0:
		return "its time is over, at " + b.job.DeadlineAt.UTC().Format(time.RFC3339)
	case left <= all/10:
		return fmt.Sprintf("its time is nearly spent: %s left of %s", left.Round(time.Second), all.Round(time.Second))
	}
	return ""
}
