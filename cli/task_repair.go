package cli

import (
	"context"
	"errors"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskRepairCmd struct {
	ID    string `arg:"" name:"id" help:"Task: ID, ID prefix, or JOB/TASK."`
	Input string `required:"" placeholder:"JSON|FILE|-" help:"New input: JSON, a file, or - for the standard input."`
	auditFlags
}

// Help is shown by task repair --help.
func (taskRepairCmd) Help() string {
	return "Replaces the input of a task that is blocked or waits for a repair, and lets the task continue; its recorded steps stay. A " +
		"pending repair is no longer needed. If this program knows the type, it checks the input. The audit keeps the SHA-256 of both " +
		"inputs. If another process replaced the input at the same time, nothing changes."
}

// Run implements the verb.
func (c *taskRepairCmd) Run(ctx context.Context, s *session) error {
	raw, err := readInput(c.Input, s.stdin)
	if err != nil {
		return err
	}
	if raw == nil {
		return badInput("", "--input is empty: pass the new input as JSON, a file or -")
	}
	return s.operate(ctx, "repair", []string{c.ID}, func(client *weaver.Client, id task.ID) error {
		err := client.RepairInput(ctx, id, raw, c.options()...)
		if errors.Is(err, weaver.ErrInvalidInput) || errors.Is(err, weaver.ErrTooLarge) {
			return badInput("", "--input: %w", err)
		}
		return err
	})
}
