package cli

import (
	"context"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskRescheduleCmd struct {
	IDs []string       `arg:"" name:"id" help:"Waiting tasks: IDs, ID prefixes, or JOB/TASK."`
	Now bool           `xor:"when" required:"" help:"Start now."`
	In  *time.Duration `xor:"when" required:"" placeholder:"DURATION" help:"Delay from now."`
	At  *time.Time     `xor:"when" required:"" placeholder:"TIME" help:"Start time, such as 2026-12-24T18:00:00Z."`
	auditFlags
}

// Help is shown by task reschedule --help.
func (taskRescheduleCmd) Help() string {
	return "Pass one of --now, --in and --at, for tasks that are delayed, sleeping, or wait for a retry. A sleeping task wakes at the new " +
		"time. A due task that has not started waits until then. Deadlines do not change."
}

// Run implements the verb.
func (c *taskRescheduleCmd) Run(ctx context.Context, s *session) error {
	var when time.Time
	switch {
	case c.In != nil && *c.In < 0:
		return badInput("", "--in %s: want 0 or more", *c.In)
	case c.In != nil:
		when = s.clock.Now.Add(*c.In)
	case c.At != nil:
		when = *c.At
	}
	return s.operate(ctx, "reschedule", c.IDs, func(client *weaver.Client, id task.ID) error {
		if c.Now {
			return client.RunNow(ctx, id, c.options()...)
		}
		return client.Reschedule(ctx, id, when, c.options()...)
	})
}
