package cli

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
)

// whyCmd is the verb why.
type whyCmd struct {
	ID    string `arg:"" name:"id" help:"A task or a job: its id, the beginning of it, a job's name (the latest) or file, or JOB/TASK."`
	Depth int    `default:"10" placeholder:"N" help:"Over how many tasks to follow needs towards the root cause; default 10."`
	Undo  bool   `help:"Of a task: what it did, and what would be undone."`
}

// Help is shown by why --help.
func (whyCmd) Help() string {
	return "It explains in sentences where the task stands and what it waits for, follows its needs to the root cause, " +
		"lists what each attempt did and what was decided after it, and which commands let it go on. " +
		"With --undo it lists the effects of a task instead: those that are undone if it ends without success, in that order, those that stay, and those that were undone."
}

// Run implements the verb.
func (c *whyCmd) Run(ctx context.Context, s *session) error {
	if c.Depth < 1 {
		return badInput("", "--depth %d: want at least 1", c.Depth)
	}
	if c.Undo {
		return c.whyUndo(ctx, s)
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantAny, c.ID)
		if err != nil {
			return err
		}
		e := explain.Explainer{Clock: s.clock, Command: s.command, Depth: c.Depth}
		x, err := s.explains(masked(client)).Explain(ctx, e, id)
		switch {
		case err != nil:
			return s.absent(ctx, client, "task or job", id, err)
		case s.json():
			return s.writeJSON(x)
		}
		s.printExplanation(x)
		return nil
	})
}
