package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type taskSignalCmd struct {
	ID      string `arg:"" name:"id" help:"The task, which has not ended: its id, the beginning of it, or JOB/TASK."`
	Name    string `arg:"" name:"name" help:"The signal's name (weaver.DefineSignal)."`
	Payload string `arg:"" name:"json" help:"What it says: JSON, or - for the standard input."`
	Key     string `placeholder:"KEY" help:"Names this signal: sent again under its key it has no other effect. Default: a new one."`
	auditFlags
}

// Help is shown by task signal --help.
func (taskSignalCmd) Help() string {
	return "The oldest wait of the task's handler for a signal of this name gets it (weaver.Signal.Wait), now or later. " +
		"`weaver why` and `weaver task show` list what a task waits for."
}

// Run implements the verb.
func (c *taskSignalCmd) Run(ctx context.Context, s *session) error {
	payload, err := c.payload(s.stdin)
	if err != nil {
		return err
	}
	if c.Key == "" {
		c.Key = task.NewIDs(nil).New().String()
	}
	return s.operate(ctx, "signal", []string{c.ID}, func(client *weaver.Client, id task.ID) error {
		err := client.SendSignal(ctx, id, c.Name, c.Key, payload, c.options()...)
		switch {
		case errors.Is(err, weaver.ErrInvalidInput), errors.Is(err, weaver.ErrInvalidOption), errors.Is(err, weaver.ErrTooLarge):
			return badInput("", "%w", err)
		case errors.Is(err, weaver.ErrConflict):
			return badInput("Send it with another --key if it is another signal.", "%w", err)
		}
		return err
	})
}

func (c *taskSignalCmd) payload(stdin io.Reader) (json.RawMessage, error) {
	raw, from := []byte(c.Payload), "the payload"
	if c.Payload == "-" {
		from = "the standard input"
		var err error
		if raw, err = io.ReadAll(stdin); err != nil {
			return nil, badInput("", "read the standard input: %w", err)
		}
	}
	if !json.Valid(raw) {
		return nil, badInput(`Text needs quotes of its own: '"yes"'.`, "%s is not JSON", from)
	}
	return raw, nil
}
