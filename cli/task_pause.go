package cli

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskPauseCmd struct {
	IDs []string `arg:"" name:"id" help:"Unfinished tasks: IDs, ID prefixes, or JOB/TASK."`
	auditFlags
}

// Help is shown by task pause --help.
func (taskPauseCmd) Help() string {
	return "A paused task is not started until task resume, whatever it waits for. A running task continues and is paused after its " +
		"attempt. To pause all tasks of a queue or type use queue pause."
}

// Run implements the verb.
func (c *taskPauseCmd) Run(ctx context.Context, s *session) error {
	return s.operate(ctx, "pause", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.PauseTask(ctx, id, c.options()...)
	})
}

type taskResumeCmd struct {
	IDs []string `arg:"" name:"id" help:"Paused tasks: IDs, ID prefixes, or JOB/TASK."`
	auditFlags
}

// Run implements the verb.
func (c *taskResumeCmd) Run(ctx context.Context, s *session) error {
	return s.operate(ctx, "resume", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.ResumeTask(ctx, id, c.options()...)
	})
}
