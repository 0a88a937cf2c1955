package cli

import (
	"context"

	"github.com/goweaver/weaver/internal/sealorder"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
)

// whyCmd is the verb why.
type whyCmd struct {
	ID    string `arg:"" name:"id" help:"Task, job (ID, prefix, name, JOB/TASK), key of an order, or schedule (name or schedule/NAME)."`
	Depth int    `default:"10" placeholder:"N" help:"Maximum dependency depth; default 10."`
	Undo  bool   `help:"Effects of a task, and their undo."`
}

// Help is shown by why --help.
func (whyCmd) Help() string {
	return "Explains in sentences the state of a task or job and its waits, follows its needs to the root cause, lists each attempt with " +
		"the decision after it, and suggests commands. With --undo it lists the effects of a task instead: those to be undone, in " +
		"order, if the task ends without success, those that stay, and those already undone."
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
			if told, oerr := s.whyOrder(ctx, client, c.ID); told {
				return oerr
			}
			if told, serr := s.whySchedule(ctx, client, c.ID); told {
				return serr
			}
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

// whyOrder tells the story of the order with a key, if there is one.
func (s *session) whyOrder(ctx context.Context, client *weaver.Client, key string) (told bool, err error) {
	st, ok := sealorder.Of(client.OpenStore())
	if !ok {
		return false, nil
	}
	o, err := st.GetOrder(ctx, client.Namespace(), key)
	if err != nil {
		return false, nil // what was asked for is no task, job or order
	}
	x := s.clock.Order(&o, s.command)
	if s.json() {
		return true, s.writeJSON(x)
	}
	s.printOrder(x)
	return true, nil
}
