package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// retryCmd is the verb retry and the verb job retry.
type retryCmd struct {
	Job         string `arg:"" name:"job" help:"Job: ID, ID prefix, name (the latest), or file."`
	Failed      bool   `help:"Only failed tasks, not cancelled ones."`
	From        string `placeholder:"TASK" help:"Only this task, and those that need it."`
	AddAttempts int    `placeholder:"N" help:"Increase of the job's max_total_attempts."`
	AddCost     int64  `placeholder:"N" help:"Increase of the job's max_cost, in micro-units."`
	KeepSteps   bool   `help:"Also tasks whose cleanup ran: their steps still stand."`
	auditFlags
}

// Help is shown by retry --help.
func (retryCmd) Help() string {
	return "Retries all failed and cancelled tasks of the job with all their attempts, and the tasks that were cancelled because of them. " +
		"Tasks that a person or a deadline cancelled are not retried with --failed. Succeeded tasks do not run again, and neither does " +
		"an alarm or a cleanup (if: failed, if: done, on) that already ran: those are listed. This command runs nothing: `run FILE` or " +
		"a worker continues the job. A job that used up its budget needs --add-attempts or --add-cost, or both. A task whose cleanup " +
		"ran is refused: submit the job again, or pass --keep-steps if its steps still stand."
}

// jobRetried is the JSON output of a job retry.
type jobRetried struct {
	JobID      task.ID       `json:"job_id"`
	Name       string        `json:"name"`
	Verb       string        `json:"verb"`
	Retried    int           `json:"retried"` // number of tasks, without those that became pending again through their needs
	State      task.JobState `json:"state"`   // of the job, afterwards
	Unfinished int           `json:"unfinished"`
	Total      int           `json:"total"`
	NotAgain   []string      `json:"not_again,omitempty"` // tasks that ran because others had failed or ended, and do not run again
}

// Run implements the verb.
func (c *retryCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		st, err := s.namedJob(ctx, client, c.Job)
		if err != nil {
			return err
		}
		id := st.ID
		retried, err := c.all(ctx, s, client, &st)
		if err != nil && retried > 0 {
			err = fmt.Errorf("%s of job %s retried, and then: %w", text.Plural(retried, "task"), id, err)
		}
		if err != nil {
			return err
		}
		job, err := client.Job(ctx, id)
		if err != nil {
			return fmt.Errorf("%s retried, but the job cannot be read: %w", text.Plural(retried, "task"), err)
		}
		ran, _ := notAgain(ctx, client, &st) // the retry is done, even if this read fails
		if s.json() {
			return s.writeJSON(jobRetried{id, job.Name, "retry", retried, job.State, job.Counters.Unfinished, job.Counters.Total, ran})
		}
		s.printf("Job %s %q: %s retried; %d of its %d tasks remain.\n", id, text.OneLine(job.Name, explain.MaxNote),
			text.Plural(retried, "task"), job.Counters.Unfinished, job.Counters.Total)
		if len(ran) > 0 {
			s.printf("Not run again, because it ran already (if: failed, if: done, on): %s.\n", text.OneLine(strings.Join(ran, ", "), explain.MaxMessage))
		}
		s.printf("%s goes on with it.\n", s.whoGoesOn(&job))
		return nil
	})
}

// all retries the tasks that the flags select and returns their number.
func (c *retryCmd) all(ctx context.Context, s *session, client *weaver.Client, st *jobTasks) (int, error) {
	if c.AddAttempts != 0 || c.AddCost != 0 {
		return c.raise(ctx, client, st)
	}
	if args := explain.RaiseArgs(&st.JobInfo); args != nil {
		return 0, badInput(fmt.Sprintf("`%s` raises it and goes on.", s.command(args...)),
			"job %s (%q) has used its budget up (%s)", st.ID, text.OneLine(st.Name, explain.MaxNote), explain.Budget(&st.JobInfo))
	}
	tasks, err := c.choose(ctx, s, client, st)
	if err != nil {
		return 0, err
	}
	return c.retry(ctx, client, tasks)
}

// operateOptions returns the options of each retry.
func (c *retryCmd) operateOptions() []weaver.OperateOption {
	if c.KeepSteps {
		return append(c.options(), weaver.KeepSteps())
	}
	return c.options()
}

// raise retries the whole job with a larger budget.
func (c *retryCmd) raise(ctx context.Context, client *weaver.Client, st *jobTasks) (int, error) {
	if c.From != "" || c.Failed {
		return 0, badInput("Leave out --from and --failed.", "--add-attempts and --add-cost apply to the whole job: they retry all tasks that its budget ended")
	}
	opts := c.operateOptions()
	if c.AddAttempts != 0 {
		opts = append(opts, weaver.AddAttempts(c.AddAttempts))
	}
	if c.AddCost != 0 {
		opts = append(opts, weaver.AddCost(c.AddCost))
	}
	ack, err := client.RetryJob(ctx, st.ID, opts...)
	return ack.Retried, err
}

// whoGoesOn names the command that runs the retried tasks of a job.
func (s *session) whoGoesOn(job *task.Job) string {
	worker := "A worker (`" + s.command("worker") + "`)"
	if path := job.Meta[metaFile]; path != "" {
		return "`" + s.command(append([]string{"run", near(path)}, paramArgsOf(job)...)...) + "`, or a worker,"
	}
	return worker
}

// choose returns the tasks to retry, needs first as far as known. It never returns an empty list without an error.
func (c *retryCmd) choose(ctx context.Context, s *session, client *weaver.Client, st *jobTasks) ([]task.Task, error) {
	all := st.Tasks
	if c.From != "" {
		first := slices.IndexFunc(all, func(t task.Task) bool { return t.Node == c.From || strings.EqualFold(t.ID.String(), c.From) })
		if first < 0 {
			nodes := make([]string, len(all))
			for i := range all {
				nodes[i] = all[i].Node
			}
			return nil, badInput(fmt.Sprintf("`%s` lists them.", s.command("job", "show", st.ID.String())),
				"--from: job %s (%q) has no task %q%s", st.ID, text.OneLine(st.Name, explain.MaxNote), c.From, didYouMean(c.From, nodes))
		}
		if err := c.checkFirst(s, st, &all[first]); err != nil {
			return nil, err
		}
		var err error
		if all, err = needing(ctx, client, all, all[first].ID); err != nil {
			return nil, err
		}
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(t task.Task) bool {
		// With --from, another need of such a task may have failed. If not, the task becomes pending again with its
		// need.
		comesBack := c.From != "" && t.ID != all[0].ID && t.Error != nil && t.Error.Kind == task.KindDependencyFailed
		return !c.retries(&t) || comesBack
	})
	if len(chosen) > 0 {
		return chosen, nil
	}
	what := "failed or was cancelled"
	if c.Failed {
		what = "failed"
	}
	return nil, badInput(fmt.Sprintf("`%s` explains its state.", s.command("why", st.ID.String())),
		"nothing to retry: job %s (%q) is %s, and none of its tasks %s", st.ID, text.OneLine(st.Name, explain.MaxNote), st.State, what)
}

// retries reports whether a task can be retried and is not excluded by --failed. Tasks that were not needed are never
// retried.
func (c *retryCmd) retries(t *task.Task) bool {
	if t.State == task.Cancelled {
		return !c.Failed && (t.Error == nil || t.Error.Kind != task.KindNotNeeded)
	}
	return t.State == task.Failed
}

// checkFirst refuses the task of --from if it cannot be retried.
func (c *retryCmd) checkFirst(s *session, st *jobTasks, t *task.Task) error {
	name := text.OneLine(t.Node, explain.MaxNote)
	switch {
	case t.State == task.Succeeded:
		return badInput("Succeeded tasks do not run again; a new job runs all tasks.",
			"--from: %s succeeded already; only failed or cancelled tasks can be retried", name)
	case !t.State.Terminal():
		return badInput(fmt.Sprintf("`%s` explains its state.", s.command("why", t.ID.String())),
			"--from: %s has not ended, it is %s; only failed or cancelled tasks can be retried", name, t.State)
	case !c.retries(t):
		return badInput(fmt.Sprintf("`%s` tells why.", s.command("why", t.ID.String())),
			"--from: %s is %s, and this command does not retry it", name, t.State)
	}
	return nil
}

// needing returns a task and all tasks that need it, directly or indirectly, each after one of its needs.
func needing(ctx context.Context, client *weaver.Client, tasks []task.Task, first task.ID) ([]task.Task, error) {
	byID := make(map[task.ID]*task.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	var found []task.Task
	for next := []task.ID{first}; len(next) > 0; next = next[1:] {
		t := byID[next[0]]
		if t == nil {
			continue // of another job, or already visited
		}
		delete(byID, t.ID)
		found = append(found, *t)
		h, err := masked(client).History(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		for _, d := range h.Dependents {
			next = append(next, d.ID)
		}
	}
	return found, nil
}

// retry retries tasks one after the other. It repeats this for tasks that were refused because a need was not retried
// yet, and returns the number of retried tasks.
func (c *retryCmd) retry(ctx context.Context, client *weaver.Client, tasks []task.Task) (retried int, err error) {
	reversed := true
	for before := -1; len(tasks) > 0 && before != len(tasks); {
		before, err, reversed = len(tasks), nil, !reversed
		var again []task.Task
		for _, t := range tasks {
			now, getErr := client.Get(ctx, t.ID)
			switch {
			case getErr != nil:
				return retried, getErr
			case !now.State.Terminal():
				continue // already pending again through its needs
			}
			switch refused := client.Retry(ctx, t.ID, c.operateOptions()...); {
			case refused == nil:
				retried++
			case errors.Is(refused, store.ErrState):
				if again = append(again, t); err == nil || reversed {
					err = refused // keep the error of the first task in job order: it is the one of a need
				}
			default:
				return retried, refused
			}
		}
		// Reverse the order: in a job the needs of a task may come after it.
		slices.Reverse(again)
		tasks = again
	}
	return retried, err
}
