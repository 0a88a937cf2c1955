package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

type taskSignalCmd struct {
	ID      string `arg:"" name:"id" help:"Unfinished task: ID, ID prefix, or JOB/TASK."`
	Name    string `arg:"" name:"name" help:"Signal name (weaver.DefineSignal)."`
	Payload string `arg:"" name:"json" help:"Payload: JSON, or - for the standard input."`
	Key     string `placeholder:"KEY" help:"Idempotency key of the signal; default: a new one."`
	auditFlags
}

// Help is shown by task signal --help.
func (taskSignalCmd) Help() string {
	return "The oldest wait of the task's handler for a signal of this name gets it (weaver.Signal.Wait), now or later. The command " +
		"prints the wait that took it, or that the signal is kept. A signal that is sent again with its key has no further effect. The " +
		"command does not know the type that the handler expects: a payload of another type blocks the task when the handler reads it. " +
		"`weaver why` and `weaver task show` list the signals that a task waits for."
}

// signalled is the JSON output of task signal.
type signalled struct {
	operated
	Name    string   `json:"signal"`
	Key     string   `json:"key"`
	Existed bool     `json:"already_sent,omitempty"` // it was already sent with this key
	TakenBy string   `json:"taken_by,omitempty"`     // the wait that took it; "" while it is kept
	Others  []string `json:"waits_for,omitempty"`    // the signals that the task waits for, if this one is kept
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
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantTask, c.ID)
		if err != nil {
			return err
		}
		got := signalled{operated: operated{ID: id, Verb: "signal"}, Name: c.Name, Key: c.Key}
		if err = s.absent(ctx, client, "task", id, c.send(ctx, client, payload, &got)); err != nil {
			got.Error = err.Error()
		} else {
			got.Done = true
		}
		switch {
		case s.json():
			if err := s.writeJSON(map[string]any{"results": []signalled{got}}); err != nil {
				return err
			}
		case err == nil:
			s.printf("%s\n", got.sentence())
		}
		if err == nil && got.State == task.Blocked && got.TakenBy == "" {
			_, _ = fmt.Fprintf(s.errs, "warning: %s waits for a person, and a signal is not an answer: `%s` lets it go on (`%s` explains the wait)\n",
				id, s.command("task", "unblock", id.String()), s.command("why", id.String()))
		}
		if err == nil && len(got.Others) > 0 {
			names := make([]string, len(got.Others))
			for i, name := range got.Others {
				names[i] = strconv.Quote(text.OneLine(name, explain.MaxNote))
			}
			_, _ = fmt.Fprintf(s.errs, "warning: %s waits for no %q now, but for %s%s\n",
				id, text.OneLine(c.Name, explain.MaxNote), strings.Join(names, ", "), didYouMean(c.Name, got.Others))
		}
		return err
	})
}

// send sends the signal and reads the result.
func (c *taskSignalCmd) send(ctx context.Context, client *weaver.Client, payload json.RawMessage, got *signalled) error {
	before, err := masked(client).History(ctx, got.ID)
	if err != nil {
		return err
	}
	got.Existed = sentAs(&before, c.Name, c.Key) != nil
	err = client.SendSignal(ctx, got.ID, c.Name, c.Key, payload, c.options()...)
	switch {
	case errors.Is(err, weaver.ErrInvalidInput), errors.Is(err, weaver.ErrInvalidOption), errors.Is(err, weaver.ErrTooLarge):
		return badInput("", "%w", err)
	case errors.Is(err, weaver.ErrConflict):
		return badInput("Send it with another --key if it is another signal.", "%w", err)
	case err != nil:
		return err
	}
	h, err := masked(client).History(ctx, got.ID)
	if err != nil {
		return fmt.Errorf("the signal was sent, but its effect cannot be read: %w", err)
	}
	got.State, got.Waiting = h.Task.State, h.Task.Waiting
	if sent := sentAs(&h, c.Name, c.Key); sent != nil && sent.Step != "" {
		got.TakenBy = sent.Step
		return nil
	}
	for _, name := range explain.WaitsForSignals(&h) {
		if name != c.Name {
			got.Others = append(got.Others, name)
		}
	}
	return nil
}

// sentAs finds a signal of a task by its name and key; nil if it was not sent.
func sentAs(h *store.History, name, key string) *task.Signal {
	for i := range h.Signals {
		if sig := &h.Signals[i]; sig.Name == name && sig.Key == key {
			return sig
		}
	}
	return nil
}

func (g *signalled) sentence() string {
	name, key := text.OneLine(g.Name, explain.MaxNote), text.OneLine(g.Key, explain.MaxNote)
	said := fmt.Sprintf("%s: %q is sent, with the key %s: ", g.ID, name, key)
	if g.Existed {
		said = fmt.Sprintf("%s: %q was sent with the key %s already: ", g.ID, name, key)
	}
	if g.TakenBy != "" {
		said += fmt.Sprintf("taken by the wait %q", text.OneLine(g.TakenBy, explain.MaxNote))
	} else {
		said += "kept, no wait for it yet"
	}
	state := string(g.State)
	if g.Waiting != "" {
		state += " (" + string(g.Waiting) + ")"
	}
	return said + "; the task is now " + state + "."
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
