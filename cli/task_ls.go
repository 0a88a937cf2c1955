package cli

import (
	"context"
	"fmt"
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
	Retry      taskRetryCmd      `cmd:"" help:"Start failed or cancelled tasks again."`
	Cancel     taskCancelCmd     `cmd:"" help:"Cancel tasks."`
	Unblock    taskUnblockCmd    `cmd:"" help:"Let blocked tasks go on."`
	Reschedule taskRescheduleCmd `cmd:"" help:"Start tasks that wait for a time now, or at another time."`
	Delete     taskDeleteCmd     `cmd:"" help:"Delete ended tasks and their records."`
}

// taskLsCmd is the verb task ls.
type taskLsCmd struct {
	State []string `placeholder:"STATE" help:"Only tasks in these states: pending, ready, running, succeeded, failed, cancelled, blocked."`
	Type  []string `placeholder:"TYPE" help:"Only tasks of these types."`
	Queue string   `placeholder:"NAME" help:"Only tasks of this queue."`
	Job   string   `placeholder:"ID" help:"Only tasks of this job."`
	Label []string `sep:"none" placeholder:"KEY=VALUE" help:"Only tasks with all these labels."`
	pageFlags
}

// taskPage is what task ls prints as JSON.
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
	if c.Job != "" {
		if f.Job, err = parseID(c.Job); err != nil {
			return f, badInput("", "--job: %w", err)
		}
	}
	return f, nil
}

// Run implements the verb.
func (c *taskLsCmd) Run(ctx context.Context, s *session) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		if !f.Job.IsZero() {
			j, err := client.Store().Job(ctx, client.Namespace(), f.Job)
			if err != nil {
				return fmt.Errorf("--job %s: %w", c.Job, err)
			}
			s.clock.OfJob = &j
		}
		tasks, next, err := fill(f.Limit, f.After, func(limit int, after string) ([]task.Task, string, error) {
			f.Limit, f.After = limit, after
			return client.List(ctx, f)
		})
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(taskPage{orEmpty(tasks), next})
		}
		if len(tasks) == 0 {
			s.printf("No tasks%s in namespace %q of %s.\n", c.described(), client.Namespace(), s.flags.Store)
			return nil
		}
		if err := s.findGone(ctx, clientReader{client}, s.clock, pointers(tasks)...); err != nil {
			return err
		}
		s.taskTable(tasks).print(s.out, s.paint, "")
		if next != "" {
			s.printf("\nThere is more: add --after %s\n", next)
		}
		return nil
	})
}

// described says that a filter was in use.
func (c *taskLsCmd) described() string {
	if len(c.State)+len(c.Type)+len(c.Label) > 0 || c.Queue != "" || c.Job != "" {
		return " match"
	}
	return ""
}

func (s *session) taskTable(tasks []task.Task) *table {
	t := newTable("ID", "NAME", "STATE", "TYPE", "QUEUE", "ATTEMPTS", "CREATED", "NOTE")
	for i := range tasks {
		k := &tasks[i]
		t.add(
			plain(k.ID.String()),
			plain(text.OneLine(k.Node, explain.MaxNote)),
			cell{string(k.State), text.StateColor(k.State)},
			plain(k.Type),
			plain(text.OneLine(k.Queue, explain.MaxNote)),
			plain(fmt.Sprintf("%d/%d", k.AttemptCount, k.MaxAttempts)),
			plain(s.clock.When(k.CreatedAt)),
			cell{s.clock.Note(k), text.Faint},
		)
	}
	return t
}

// pairs prints a map on one line, sorted.
func pairs(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, k := range sortedKeys(m) {
		parts = append(parts, text.OneLine(k+"="+m[k], explain.MaxMessage))
	}
	return strings.Join(parts, " ")
}
