package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// jobCmd groups the verbs of jobs.
type jobCmd struct {
	Ls     jobLsCmd     `cmd:"" help:"List jobs, newest first."`
	Show   jobShowCmd   `cmd:"" help:"Show a job and its tasks."`
	Retry  retryCmd     `cmd:"" help:"Retry the failed and cancelled tasks of a job."`
	Cancel jobCancelCmd `cmd:"" help:"Cancel jobs with all their tasks."`
	Delete jobDeleteCmd `cmd:"" help:"Delete ended jobs with all their tasks."`
}

var jobStates = []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled}

type jobLsCmd struct {
	State []string `placeholder:"STATE" complete:"running,blocked,succeeded,failed,cancelled" help:"States: running, blocked, succeeded, failed, cancelled."`
	Name  string   `placeholder:"NAME" help:"Job name."`
	pageFlags
}

// Help is shown by job ls --help.
func (jobLsCmd) Help() string {
	return "ENDED is the number of ended tasks of all tasks of the job. UNSUCCESSFUL counts the failed or cancelled tasks that count " +
		"against the job, ALLOWED the failures that the job allows (allow_failure)."
}

type jobPage struct {
	Jobs []task.Job `json:"jobs"`
	Next string     `json:"next,omitempty"` // cursor of the next page
}

// Run implements the verb.
func (c *jobLsCmd) Run(ctx context.Context, s *session) error {
	if err := c.check(store.MaxLimit); err != nil {
		return err
	}
	states, err := parseStates(c.State, jobStates)
	if err != nil {
		return err
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		jobs, next, err := fill(c.Limit, c.After, func(limit int, after string) ([]task.Job, string, error) {
			return client.Jobs(ctx, store.JobFilter{Name: c.Name, States: states, Limit: limit, After: after})
		})
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(jobPage{orEmpty(jobs), next})
		}
		if len(jobs) == 0 {
			match := ""
			if len(states) > 0 || c.Name != "" {
				match = " match"
			}
			s.printf("No jobs%s in namespace %q of %s.\n", match, client.Namespace(), s.store())
			return nil
		}
		s.list(s.jobTable(jobs))
		if next != "" {
			s.printf("\nThere is more: add --after %s\n", next)
		}
		return nil
	})
}

func (s *session) jobTable(jobs []task.Job) *table {
	t := newTable("ID", "NAME", "STATE", "ENDED", "UNSUCCESSFUL", "ALLOWED", "CREATED", "FINISHED")
	t.gives = []give{{"NAME", 20}, {"FINISHED", 0}, {"NAME", 8}, {"CREATED", 0}, {"ALLOWED", 0}, {"UNSUCCESSFUL", 0}, {"ENDED", 0}}
	for i := range jobs {
		j := &jobs[i]
		t.add(
			plain(j.ID.String()),
			plain(text.OneLine(title(j.Name, j.Meta[metaParams]), explain.MaxNote)),
			painted(string(j.State), text.StateColor(j.State)),
			plain(fmt.Sprintf("%d/%d", j.Counters.Total-j.Counters.Unfinished, j.Counters.Total)),
			plain(number(j.Counters.Failed)),
			plain(number(j.Counters.Allowed)),
			s.when(j.CreatedAt),
			s.when(j.FinishedAt),
		)
	}
	return t
}

type jobShowCmd struct {
	ID string `arg:"" name:"id" help:"Job: ID, ID prefix, name (the latest), or file."`
}

// Run implements the verb.
func (c *jobShowCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantJob, c.ID)
		if err != nil {
			return err
		}
		st, err := client.JobStatus(ctx, id)
		if err != nil {
			return s.absent(ctx, client, "job", id, err)
		}
		tasks, err := masked(client).JobTasks(ctx, id)
		if err != nil {
			return err
		}
		if err := s.explains(masked(client)).FindGone(ctx, s.clock, pointers(tasks)...); err != nil {
			return err
		}
		s.clock.OfJob = &st.JobInfo
		if s.json() {
			return s.writeJSON(jobView{st, tasks, slices.SortedFunc(maps.Keys(s.clock.Gone), task.ID.Compare)})
		}
		s.printJob(&st, tasks)
		return nil
	})
}

// jobView is the JSON output of job show.
type jobView struct {
	weaver.JobStatus
	Tasks []task.Task `json:"tasks"`
	Gone  []task.ID   `json:"process_gone,omitempty"` // tasks whose worker process is known to be dead
}

func (s *session) printJob(st *weaver.JobStatus, tasks []task.Task) {
	j, c := &st.JobInfo, s.clock
	s.printf("%s\n\n", s.paint.Paint(text.Bold, fmt.Sprintf("Job %s %q", j.ID, text.OneLine(j.Name, explain.MaxNote))))
	s.stateField(string(j.State), c.JobState(j, tasks))
	s.field("", c.JobGone(tasks))
	s.field("bottleneck", st.Bottleneck)
	s.field("budget", explain.Budget(j))
	if !j.ExhaustedAt.IsZero() {
		s.field("used up", c.When(j.ExhaustedAt))
	}
	s.field("deadline", c.When(j.DeadlineAt))
	if j.CancelRequested {
		s.field("cancelled", "asked"+explain.By(j.CancelBy, j.CancelReason))
	}
	s.field("metadata", pairs(j.Meta))
	s.field("created", c.When(j.CreatedAt))
	s.field("finished", c.When(j.FinishedAt))
	s.section("Tasks", s.taskTable(tasks))
}

type jobCancelCmd struct {
	IDs []string `arg:"" name:"id" help:"Jobs: IDs, ID prefixes, names (the latest), or files."`
	auditFlags
}

// jobCancelled is the JSON output of job cancel for one job.
type jobCancelled struct {
	ID          task.ID `json:"id"`
	Verb        string  `json:"verb"`
	Done        bool    `json:"done"`
	Cancelled   int     `json:"cancelled"`    // tasks that ended at once
	Asked       int     `json:"asked"`        // tasks that are running or have to clean up, and were asked to end
	AlreadyDone int     `json:"already_done"` // tasks that had already ended
	Error       string  `json:"error,omitempty"`
}

// Run implements the verb.
func (c *jobCancelCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		ids, err := s.resolve(ctx, client, wantJob, c.IDs...)
		if err != nil {
			return err
		}
		results := make([]jobCancelled, len(ids))
		var errs []error
		for i, id := range ids {
			ack, err := client.CancelJob(ctx, id, c.options()...)
			err = s.absent(ctx, client, "job", id, err)
			results[i] = jobCancelled{ID: id, Verb: "cancel", Done: err == nil, Cancelled: ack.Cancelled, Asked: ack.Asked, AlreadyDone: ack.AlreadyDone}
			if err != nil {
				results[i].Error = err.Error()
				errs = append(errs, err)
			}
		}
		if s.json() {
			if err := s.writeJSON(map[string]any{"results": results}); err != nil {
				return err
			}
			return worst(s.command, errs)
		}
		for _, r := range results {
			if r.Done {
				s.printf("%s\n", r.sentence())
			}
		}
		return worst(s.command, errs)
	})
}

func (r jobCancelled) sentence() string {
	if r.Cancelled+r.Asked == 0 {
		return fmt.Sprintf("%s had ended already, with %s.", r.ID, text.Plural(r.AlreadyDone, "task"))
	}
	text := fmt.Sprintf("%s: %s cancelled", r.ID, text.Plural(r.Cancelled, "task"))
	if r.Asked > 0 {
		text += fmt.Sprintf(", %d running or cleaning up and asked to end", r.Asked)
	}
	if r.AlreadyDone > 0 {
		text += fmt.Sprintf(", %d had ended before", r.AlreadyDone)
	}
	return text + "."
}
