package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/task"
)

type taskRetryCmd struct {
	IDs         []string `arg:"" optional:"" name:"id" help:"Failed or cancelled tasks: ids, their beginnings, or JOB/TASK."`
	AddAttempts int      `placeholder:"N" help:"Raise the task's own max_attempts by N first. Only with ids."`
	AddCost     int64    `placeholder:"N" help:"Raise the task's own limit of its cost (MaxCost) by N micro-units first. Only with ids."`
	KeepSteps   bool     `help:"Retry although a cleanup ran: its steps still stand."`
	Cleanup     bool     `help:"Try the undo again that was given up, is blocked or waits."`
	Skip        []string `placeholder:"STEP" help:"With --cleanup and --reason: give the undo of this step up; what it did stays. Only with ids."`
	manyFlags
	auditFlags
}

// Help is shown by task retry --help.
func (taskRetryCmd) Help() string {
	return "A retried task has all its attempts ahead again; its recorded steps stay and do not run again. " +
		"Its job and the tasks that were cancelled because of it revive with it. After a cleanup of it ran, a retry is refused: rerun it, or give --keep-steps if its steps still stand. A task whose undo was given up is retried with --cleanup: its undo alone is tried again. Flags select many tasks instead of ids: " +
		"--dry-run lists them, --yes retries them." + queryHelp
}

// Run implements the verb.
func (c *taskRetryCmd) Run(ctx context.Context, s *session) error {
	opts := c.options()
	if c.AddAttempts != 0 {
		opts = append(opts, weaver.AddAttempts(c.AddAttempts))
	}
	if c.AddCost != 0 {
		opts = append(opts, weaver.AddCost(c.AddCost))
	}
	if c.KeepSteps {
		opts = append(opts, weaver.KeepSteps())
	}
	switch {
	case len(c.Skip) > 0 && (!c.Cleanup || c.Reason == ""):
		return badInput("", "--skip is given with --cleanup and a --reason: what the step did stays")
	case len(c.Skip) > 0:
		opts = append(opts, weaver.SkipUndo(c.Skip...))
	case c.Cleanup:
		opts = append(opts, weaver.Cleanups())
	}
	if len(c.IDs) == 0 && len(c.Skip) > 0 {
		return badInput("", "--skip is for tasks that are named by ids")
	}
	if len(c.IDs) == 0 && (c.AddAttempts != 0 || c.AddCost != 0) {
		return badInput("", "--add-attempts and --add-cost are for tasks that are named by ids")
	}
	if each, err := s.manyOrEach(ctx, manyVerb{verb: "retry", past: "retried", audit: c.auditFlags, keepSteps: c.KeepSteps, cleanup: c.Cleanup, do: (*weaver.Client).RetryMany}, c.IDs, &c.manyFlags); !each {
		return err
	}
	return s.operate(ctx, "retry", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.Retry(ctx, id, opts...)
	})
}

type taskCancelCmd struct {
	IDs   []string `arg:"" optional:"" name:"id" help:"Tasks that have not ended: ids, their beginnings, or JOB/TASK."`
	Force bool     `help:"Take the lease of a running task away, so that it ends at once, whatever its handler does."`

	AbandonUndo bool `help:"Give an undo up, or accept that it was. Only with ids."`
	manyFlags
	auditFlags
}

// Help is shown by task cancel --help.
func (taskCancelCmd) Help() string {
	return "A task that does not run ends at once. A running one is asked: the context of its handler ends, and it is cancelled " +
		"unless the handler still returns success. What is to be undone is undone first, with --force after the lease that it takes away has ended. " +
		"--force again, or --abandon-undo, gives that up: the task fails with the kind undo_failed. Flags select many tasks instead of ids: --dry-run lists them, --yes cancels them. With ids --dry-run lists what would be undone." + queryHelp
}

// Run implements the verb.
func (c *taskCancelCmd) Run(ctx context.Context, s *session) error {
	opts := c.options()
	if c.Force {
		opts = append(opts, weaver.Force())
	}
	if c.AbandonUndo {
		opts = append(opts, weaver.AbandonUndo())
	}
	if c.AbandonUndo && len(c.IDs) == 0 {
		return badInput("", "--abandon-undo is for tasks that are named by ids")
	}
	if c.DryRun && len(c.IDs) > 0 && !c.selects() && !c.Yes && c.Newest == "" {
		if c.AbandonUndo {
			return badInput(s.command("why", "ID", "--undo")+" lists what would stay.", "--dry-run tells what a cancel undoes, and --abandon-undo undoes nothing")
		}
		return s.cancelDryRun(ctx, c.IDs)
	}
	if each, err := s.manyOrEach(ctx, manyVerb{verb: "cancel", past: "cancelled", audit: c.auditFlags, force: c.Force, do: (*weaver.Client).CancelMany}, c.IDs, &c.manyFlags); !each {
		return err
	}
	return s.operate(ctx, "cancel", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.Cancel(ctx, id, opts...)
	})
}

type taskUnblockCmd struct {
	IDs   []string `arg:"" optional:"" name:"id" help:"Blocked tasks: ids, their beginnings, or JOB/TASK."`
	Input string   `placeholder:"JSON|FILE|-" help:"An answer for the handler (weaver.Ask, weaver.UnblockInput): JSON, a file that holds it, or - for the standard input."`
	Ask   string   `placeholder:"NAME" help:"Only if the task waits with this question (weaver.Ask): an answer that comes twice is not taken for that to the next one."`
	manyFlags
	auditFlags
}

// Help is shown by task unblock --help.
func (taskUnblockCmd) Help() string {
	return "A task that waits for an approval (approve in a pipeline) is approved without --input. " +
		"--input '{\"approved\": false, \"reason\": \"…\"}' refuses it, and it fails; any other value approves and is kept as its output. " +
		"Flags select many tasks instead of ids, which wait for no answer: --dry-run lists them, --yes unblocks them." + queryHelp
}

// Run implements the verb.
func (c *taskUnblockCmd) Run(ctx context.Context, s *session) error {
	if len(c.IDs) == 0 && (c.Input != "" || c.Ask != "") {
		return badInput("", "--input and --ask are for tasks that are named by ids")
	}
	if each, err := s.manyOrEach(ctx, manyVerb{verb: "unblock", past: "unblocked", audit: c.auditFlags}, c.IDs, &c.manyFlags); !each {
		return err
	}
	raw, err := readInput(c.Input, s.stdin)
	if err != nil {
		return err
	}
	return s.operate(ctx, "unblock", c.IDs, func(client *weaver.Client, id task.ID) error {
		t, err := client.Get(ctx, id)
		if err != nil {
			return err
		}
		if t.Type == builtin.Approve.Name() {
			return c.answer(ctx, client, &t, raw)
		}
		var input any // nil: no input
		if raw != nil {
			input = raw
		}
		opts := c.options()
		if c.Ask != "" {
			opts = append(opts, weaver.ForAsk(c.Ask))
		}
		err = client.Unblock(ctx, id, input, opts...)
		if errors.Is(err, weaver.ErrInvalidInput) || errors.Is(err, weaver.ErrTooLarge) {
			return badInput("", "--input: %w", err)
		}
		return err
	})
}

// readInput returns the value of --input; nil without the flag.
func readInput(arg string, stdin io.Reader) (json.RawMessage, error) {
	if arg == "" {
		return nil, nil
	}
	from := "the standard input"
	var raw []byte
	var err error
	switch {
	case arg == "-":
		raw, err = io.ReadAll(stdin)
	case json.Valid([]byte(arg)):
		return json.RawMessage(arg), nil // to read a file with such a name, write ./name
	default:
		from = arg
		raw, err = plainfile.ReadStream(arg)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badInput("Text needs quotes of its own: --input '\"yes\"'.", "--input %q is neither JSON nor a file", arg)
	case errors.As(err, new(*fs.PathError)):
		return nil, badInput("", "--input: %w", err)
	case err != nil:
		return nil, badInput("", "--input: read %s: %w", from, err)
	case !json.Valid(raw):
		return nil, badInput("", "--input: %s holds no JSON value", from)
	}
	return raw, nil
}

type taskDeleteCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Tasks that have ended and belong to no job: ids, or their beginnings."`
	manyFlags
	auditFlags
}

// Help is shown by task delete --help.
func (taskDeleteCmd) Help() string {
	return "The task, its attempts, decisions and steps are gone, and its idempotency key is free again. The audit keeps that it was deleted. " +
		"Flags select many tasks instead of ids: --dry-run lists them, --yes deletes them." + queryHelp
}

// Run implements the verb.
func (c *taskDeleteCmd) Run(ctx context.Context, s *session) error {
	if each, err := s.manyOrEach(ctx, manyVerb{verb: "delete", past: "deleted", audit: c.auditFlags, do: (*weaver.Client).DeleteMany}, c.IDs, &c.manyFlags); !each {
		return err
	}
	return s.operate(ctx, "delete", c.IDs, func(client *weaver.Client, id task.ID) error {
		return client.Delete(ctx, id, c.options()...)
	})
}

// operated is the JSON output of a verb for one task.
type operated struct {
	ID      task.ID      `json:"id"`
	Verb    string       `json:"verb"`
	Done    bool         `json:"done"`
	Asked   bool         `json:"asked,omitempty"` // cancel: it is running or has to clean up, and was asked to end
	State   task.State   `json:"state,omitempty"` // afterwards; "" after a delete
	Waiting task.Waiting `json:"waiting_reason,omitempty"`
	Error   string       `json:"error,omitempty"`

	undo *task.UndoPhase // afterwards
}

// operate applies a verb to tasks, one after the other; a failure for one task does not stop the others. The exit
// code is that of the most serious error.
func (s *session) operate(ctx context.Context, verb string, args []string, do func(*weaver.Client, task.ID) error) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		ids, err := s.resolve(ctx, client, wantTask, args...)
		if err != nil {
			return err
		}
		results := make([]operated, len(ids))
		var errs []error
		for i, id := range ids {
			results[i] = operated{ID: id, Verb: verb}
			err := s.absent(ctx, client, "task", id, do(client, id))
			if err == nil && verb != "delete" {
				err = results[i].look(ctx, client)
			}
			if err != nil {
				results[i].Error = err.Error()
				errs = append(errs, err)
				continue
			}
			results[i].Done = true
		}
		if s.json() {
			if err := s.writeJSON(map[string]any{"results": results}); err != nil {
				return err
			}
		} else {
			for i := range results {
				if results[i].Done {
					s.printf("%s\n", results[i].sentence())
				}
			}
		}
		return worst(s.command, errs)
	})
}

// look reads the current state of the task.
func (o *operated) look(ctx context.Context, client *weaver.Client) error {
	t, err := client.Get(ctx, o.ID)
	if err != nil {
		return fmt.Errorf("%s was done, but its effect cannot be read: %w", o.Verb, err)
	}
	o.State, o.Waiting = t.State, t.Waiting
	o.Asked = o.Verb == "cancel" && (t.CancelRequested || t.Undo != nil) && !t.State.Terminal()
	o.undo = t.Undo
	return nil
}

func (o *operated) sentence() string {
	state := string(o.State)
	if o.Waiting != "" {
		state += " (" + string(o.Waiting) + ")"
	}
	switch {
	case o.Verb == "delete":
		return fmt.Sprintf("%s is deleted.", o.ID)
	case o.Asked && o.undo.Runs():
		return fmt.Sprintf("%s is %s: it undoes another task of its job, which no cancel ends. --abandon-undo gives it up.", o.ID, state)
	case o.Asked && o.undo != nil && o.undo.NotBefore.After(time.Now()):
		return fmt.Sprintf("%s is %s: its lease was taken away, its cleanups run before it ends, from %s on. --abandon-undo ends it without them.", o.ID, state, o.undo.NotBefore.UTC().Format(time.RFC3339))
	case o.Asked && o.undo != nil:
		return fmt.Sprintf("%s is %s: its cleanups run before it ends. --abandon-undo ends it without them.", o.ID, state)
	case o.Verb == "cancel" && o.undo != nil:
		return fmt.Sprintf("%s is %s, and its undo is abandoned.", o.ID, state)
	case o.Asked:
		return fmt.Sprintf("%s is running and was asked to end; its worker is notified with the next heartbeat. --force ends it at once.", o.ID)
	case o.Verb == "pause" && o.State == task.Running:
		return fmt.Sprintf("%s is running and goes on; it is paused when this attempt has ended.", o.ID)
	case o.Verb == "pause" && o.Waiting == task.WaitPaused:
		return fmt.Sprintf("%s is paused.", o.ID)
	case o.Verb == "pause":
		return fmt.Sprintf("%s is %s, and paused: it does not start until it is resumed.", o.ID, state)
	case o.Verb == "resume":
		return fmt.Sprintf("%s is paused no longer, it is now %s.", o.ID, state)
	case o.Verb == "cancel" && o.State == task.Cancelled:
		return fmt.Sprintf("%s is cancelled.", o.ID)
	}
	return fmt.Sprintf("%s: %s done, it is now %s.", o.ID, o.Verb, state)
}

// worst joins errors and returns the most serious exit code: a failing store outweighs a wrong ID.
func worst(command func(args ...string) string, errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	all := &exitError{err: errors.Join(errs...)}
	for _, err := range errs {
		if code := exitCode(err); code > all.code {
			all.code, all.advice = code, advice(command, err)
		}
	}
	return all
}
