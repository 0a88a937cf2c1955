package cli

import (
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

// taskCmd groups the verbs of tasks.
type taskCmd struct {
	Ls         taskLsCmd         `cmd:"" help:"List tasks, newest first."`
	Show       taskShowCmd       `cmd:"" help:"Show everything recorded about a task."`
	Retry      taskRetryCmd      `cmd:"" help:"Retry failed or cancelled tasks."`
	Rerun      taskRerunCmd      `cmd:"" help:"Repeat a task as a new one."`
	Cancel     taskCancelCmd     `cmd:"" help:"Cancel tasks."`
	Unblock    taskUnblockCmd    `cmd:"" help:"Unblock tasks, with an answer if they need one."`
	Repair     taskRepairCmd     `cmd:"" help:"Replace the input of a task that cannot read it."`
	Signal     taskSignalCmd     `cmd:"" help:"Send a signal to a task."`
	Reschedule taskRescheduleCmd `cmd:"" help:"Change the due time of waiting tasks."`
	Pause      taskPauseCmd      `cmd:"" help:"Pause tasks."`
	Resume     taskResumeCmd     `cmd:"" help:"Resume paused tasks."`
	Delete     taskDeleteCmd     `cmd:"" help:"Delete ended tasks and their records."`
	Prune      taskPruneCmd      `cmd:"" help:"Remove jobs and tasks that ended long ago."`
}

// taskLsCmd is the verb task ls.
type taskLsCmd struct {
	State []string `placeholder:"STATE" complete:"pending,ready,running,succeeded,failed,cancelled,blocked" help:"Only tasks in these states."`
	Type  []string `placeholder:"TYPE" help:"Only tasks of these types."`
	Queue string   `filter:"" placeholder:"NAME" help:"Only tasks of this queue."`
	Job   string   `filter:"" placeholder:"JOB" help:"Job: ID, ID prefix, name (the latest), or file."`
	Label []string `sep:"none" placeholder:"KEY=VALUE" help:"Only tasks with all these labels."`
	Q     string   `filter:"" placeholder:"QUERY" help:"Query, such as 'state:failed created>-2h \"no such card\"'."`
	pageFlags
}

// Help is shown by task ls --help.
func (taskLsCmd) Help() string {
	return "A task must match all flags. The states are pending, ready, running, succeeded, failed, cancelled and blocked." + queryHelp
}

// taskPage is the JSON output of task ls.
type taskPage struct {
	Tasks []task.Task `json:"tasks"`
	Next  string      `json:"next,omitempty"` // cursor of the next page
}

func (c *taskLsCmd) filter() (f weaver.Filter, err error) {
	f = weaver.Filter{Types: c.Type, Queue: c.Queue, Limit: c.Limit, After: c.After}
	if err := c.check(store.MaxLimit); err != nil {
		return f, err
	}
	if f.States, err = parseStates(c.State, task.States()); err != nil {
		return f, err
	}
	for _, name := range c.Type {
		if err := task.CheckTypeName(name); err != nil {
			return f, badInput("", "--type: %w", err)
		}
	}
	if f.Labels, err = parseLabels(c.Label); err != nil {
		return f, err
	}
	return f, nil
}

// Run implements the verb.
func (c *taskLsCmd) Run(ctx context.Context, s *session) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	q, err := parseQuery(c.Q)
	if err != nil {
		return err
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		if f.Job, err = c.job(ctx, s, client); err != nil {
			return err
		}
		if !f.Job.IsZero() {
			j, err := client.Job(ctx, f.Job)
			if err != nil {
				return fmt.Errorf("--job %s: %w", c.Job, err)
			}
			s.clock.OfJob = &j
		}
		tasks, next, err := s.searched(ctx, client, q.And(f))
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(taskPage{orEmpty(tasks), next})
		}
		if len(tasks) == 0 {
			s.printf("No tasks%s in namespace %q of %s.\n", c.described(), client.Namespace(), s.store())
			return nil
		}
		if err := s.explains(masked(client)).FindGone(ctx, s.clock, pointers(tasks)...); err != nil {
			return err
		}
		s.list(s.taskTable(tasks))
		if next != "" {
			s.printf("\nThere is more: add --after %s\n", next)
		}
		return nil
	})
}

// job returns the ID of the job named by --job; zero without the flag.
func (c *taskLsCmd) job(ctx context.Context, s *session, client *weaver.Client) (task.ID, error) {
	if c.Job == "" {
		return task.ID{}, nil
	}
	id, err := s.resolveOne(ctx, client, wantJob, c.Job)
	if err == nil {
		_, err = client.Job(ctx, id)
		err = s.absent(ctx, client, "job", id, err)
	}
	if err != nil {
		return task.ID{}, &exitError{code: exitCode(err), err: fmt.Errorf("--job: %w", err), advice: advice(s.command, err)}
	}
	return id, nil
}

// described returns the words for a list with a filter.
func (c *taskLsCmd) described() string {
	if len(c.State)+len(c.Type)+len(c.Label) > 0 || c.Queue != "" || c.Job != "" || c.Q != "" {
		return " match"
	}
	return ""
}

func (s *session) taskTable(tasks []task.Task) *table {
	t := newTable("ID", "NAME", "STATE", "TYPE", "QUEUE", "ATTEMPTS", "CREATED", "NOTE")
	t.gives = []give{{"NOTE", 24}, {"QUEUE", 0}, {"ATTEMPTS", 0}}
	if !slices.ContainsFunc(tasks, func(k task.Task) bool { return k.Node == "" }) {
		t.gives = append(t.gives, give{"TYPE", 0}) // the names identify the tasks
	}
	t.gives = append(t.gives, []give{{"NAME", 20}, {"NOTE", 16}, {"NAME", 14}, {"CREATED", 0}, {"NOTE", 10}, {"TYPE", 12}, {"NAME", 8}, {"NOTE", 0}, {"TYPE", 0}}...)
	for i := range tasks {
		k := &tasks[i]
		t.add(
			plain(k.ID.String()),
			plain(text.OneLine(k.Node, explain.MaxNote)),
			painted(string(k.State), text.StateColor(k.State)),
			plain(k.Type),
			plain(text.OneLine(k.Queue, explain.MaxNote)),
			plain(fmt.Sprintf("%d/%d", k.AttemptCount, k.MaxAttempts)),
			s.when(k.CreatedAt),
			painted(s.clock.Note(k), text.Faint),
		)
	}
	return t
}

// pairs formats a map on one line, sorted.
func pairs(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, k := range sortedKeys(m) {
		parts = append(parts, text.OneLine(k+"="+m[k], explain.MaxMessage))
	}
	return strings.Join(parts, " ")
}
