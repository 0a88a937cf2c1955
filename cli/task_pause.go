package cli

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskPauseCmd struct {
	IDs []string `arg:"" name:"id" help:"Tasks that have not ended: ids, their beginnings, or JOB/TASK."`
	auditFlags
}

// Help is shown by task pause --help.
func (taskPauseCmd) Help() string {
	return "A paused task is not started, whatever it waits for now, until task resume. A running one goes on, and is paused when its attempt " +
		"has ended. All tasks of a queue or type are paused by queue pause."
}

// Run implements the verb.
func (c *taskPauseCmd) Run(ctx context.Context, s *session) error {
	return s.operate(ctx, "pause", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.PauseTask(ctx, id, c.options()...)
	})
}

type taskResumeCmd struct {
	IDs []string `arg:"" name:"id" help:"Paused tasks: ids, their beginnings, or JOB/TASK."`
	auditFlags
}

// Run implements the verb.
func (c *taskResumeCmd) Run(ctx context.Context, s *session) error {
	return s.operate(ctx, "resume", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.ResumeTask(ctx, id, c.options()...)
	})
}
