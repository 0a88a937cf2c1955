package cli

import (
	"context"
	"errors"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskRerunCmd struct {
	ID    string `arg:"" name:"id" help:"The task to repeat: its id, the beginning of it, or JOB/TASK."`
	Input string `placeholder:"JSON|FILE|-" help:"Another input: JSON, a file that holds it, or - for the standard input. It is checked if this program knows the type."`
	From  string `placeholder:"STEP" help:"Take over the values of the steps before this one, and run it and those behind it anew."`

	KeepSteps bool `help:"With --from: also if a cleanup ran, as its steps still stand."`
	auditFlags
}

// Help is shown by task rerun --help.
func (taskRerunCmd) Help() string {
	return "A new task is enqueued with the type, the options and the input of this one, and linked to it; this one stays as it is, and keeps its " +
		"idempotency key. A task of a job is repeated outside of it. To let a failed task itself run again, see task retry."
}

// rerunResult is what task rerun prints as JSON.
type rerunResult struct {
	ID      task.ID `json:"id"`
	RerunOf task.ID `json:"rerun_of"`
	From    string  `json:"from,omitempty"`
}

// Run implements the verb.
func (c *taskRerunCmd) Run(ctx context.Context, s *session) error {
	if c.KeepSteps && c.From == "" {
		return badInput("", "--keep-steps is for --from STEP: without it all steps run anew")
	}
	raw, err := readInput(c.Input, s.stdin)
	if err != nil {
		return err
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantTask, c.ID)
		if err != nil {
			return err
		}
		opts := c.options()
		if c.KeepSteps {
			opts = append(opts, weaver.KeepSteps())
		}
		if raw != nil {
			opts = append(opts, weaver.RerunInput(raw))
		}
		rerun := func() (weaver.Enqueued, error) { return client.Rerun(ctx, id, opts...) }
		if c.From != "" {
			rerun = func() (weaver.Enqueued, error) { return client.RerunFrom(ctx, id, c.From, opts...) }
		}
		got, err := rerun()
		switch {
		case errors.Is(err, weaver.ErrNoSuchStep):
			return badInput(s.command("task", "show", id.String())+" lists the steps.", "--from: %w", err)
		case errors.Is(err, weaver.ErrInvalidInput), errors.Is(err, weaver.ErrTooLarge):
			return badInput("", "--input: %w", err)
		case err != nil:
			return s.absent(ctx, client, "task", id, err)
		}
		if s.json() {
			return s.writeJSON(rerunResult{ID: got.ID, RerunOf: id, From: c.From})
		}
		s.printf("%s repeats %s.\n", got.ID, id)
		return nil
	})
}
