package cli

import (
	"context"
	"errors"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskRepairCmd struct {
	ID    string `arg:"" name:"id" help:"A task that is blocked or waits for a repair: its id, the beginning of it, or JOB/TASK."`
	Input string `required:"" placeholder:"JSON|FILE|-" help:"Its new input: JSON, a file that holds it, or - for the standard input. It is checked if this program knows the type."`
	auditFlags
}

// Help is shown by task repair --help.
func (taskRepairCmd) Help() string {
	return "The input takes the place of the one that the task has, and the task goes on; its recorded steps stay. A repair that it waits for is " +
		"not needed any more. The audit keeps the SHA-256 of both inputs. If the input was replaced at the same time, nothing changes."
}

// Run implements the verb.
func (c *taskRepairCmd) Run(ctx context.Context, s *session) error {
	raw, err := readInput(c.Input, s.stdin)
	if err != nil {
		return err
	}
	if raw == nil {
		return badInput("", "--input is empty: give the new input as JSON, a file or -")
	}
	return s.operate(ctx, "repair", []string{c.ID}, func(client *weaver.Client, id task.ID) error {
		err := client.RepairInput(ctx, id, raw, c.options()...)
		if errors.Is(err, weaver.ErrInvalidInput) || errors.Is(err, weaver.ErrTooLarge) {
			return badInput("", "--input: %w", err)
		}
		return err
	})
}
