package cli

import (
	"context"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskRescheduleCmd struct {
	IDs []string       `arg:"" name:"id" help:"Tasks that wait for a time (delayed, sleeping, or to be retried): ids, their beginnings, or JOB/TASK."`
	Now bool           `xor:"when" required:"" help:"Start them now."`
	In  *time.Duration `xor:"when" required:"" placeholder:"DURATION" help:"Start them that much later than now."`
	At  *time.Time     `xor:"when" required:"" placeholder:"TIME" help:"Start them then, for example 2026-12-24T18:00:00Z."`
	auditFlags
}

// Help is shown by task reschedule --help.
func (taskRescheduleCmd) Help() string {
	return "Give one of --now, --in and --at. A task that sleeps wakes at the new time. A task that is due and has not started waits until then. Deadlines do not move."
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
