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
	IDs         []string `arg:"" optional:"" name:"id" help:"Failed or cancelled tasks: IDs, ID prefixes, or JOB/TASK."`
	AddAttempts int      `placeholder:"N" help:"Increase of max_attempts; only with IDs."`
	AddCost     int64    `placeholder:"N" help:"Increase of MaxCost in micro-units; only with IDs."`
	KeepSteps   bool     `help:"Also after a cleanup: the steps still stand."`
	Cleanup     bool     `help:"Only the undo that failed, is blocked, or waits."`
	Skip        []string `placeholder:"STEP" help:"Step whose undo is abandoned; only with IDs."`
	manyFlags
	auditFlags
}

// Help is shown by task retry --help.
func (taskRetryCmd) Help() string {
	return "A retried task gets all its attempts again; its recorded steps stay and do not run again. Its job and the tasks that were " +
		"cancelled because of it become active again. A task whose cleanup ran is refused: rerun it, or pass --keep-steps if its steps " +
		"still stand. For a task whose undo failed, is blocked or waits, --cleanup retries only the undo; with --skip and --reason it " +
		"abandons the undo of a step, whose effect stays. --add-attempts and --add-cost first raise the task's own limits. Flags " +
		"select many tasks instead of IDs: --dry-run lists them, --yes retries them." + queryHelp
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
		return badInput("", "--skip needs --cleanup and a --reason: the effect of the step stays")
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
	IDs   []string `arg:"" optional:"" name:"id" help:"Unfinished tasks: IDs, ID prefixes, or JOB/TASK."`
	Force bool     `help:"End a running task at once by revoking its lease."`

	AbandonUndo bool `help:"Abandon an undo, or accept its failure; only with IDs."`
	manyFlags
	auditFlags
}

// Help is shown by task cancel --help.
func (taskCancelCmd) Help() string {
	return "A task that is not running ends at once. For a running task the context of its handler ends, and the task is cancelled unless " +
		"the handler still returns success. Undos run before the task ends; with --force they start after the revoked lease has " +
		"expired. A second --force, or --abandon-undo, abandons the undo: the task fails with the kind undo_failed. Flags select many " +
		"tasks instead of IDs: --dry-run lists them, --yes cancels them. With IDs --dry-run lists the undos." + queryHelp
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
	IDs   []string `arg:"" optional:"" name:"id" help:"Blocked tasks: IDs, ID prefixes, or JOB/TASK."`
	Input string   `placeholder:"JSON|FILE|-" help:"Answer: JSON, a file, or - for the standard input."`
	Ask   string   `placeholder:"NAME" help:"Question to answer (weaver.Ask)."`
	manyFlags
	auditFlags
}

// Help is shown by task unblock --help.
func (taskUnblockCmd) Help() string {
	return "Lets a blocked task continue; its handler reads the answer with weaver.UnblockInput. A task that waits for an approval " +
		"(approve in a pipeline) is approved without --input. --input '{\"approved\": false, \"reason\": \"…\"}' refuses it, and the " +
		"task fails; any other value approves and becomes its output. With --ask the answer is only accepted for that question, so " +
		"that a repeated answer is not taken for the next question. Flags select many tasks instead of IDs, if they expect no answer: " +
		"--dry-run lists them, --yes unblocks them." + queryHelp
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
	IDs []string `arg:"" optional:"" name:"id" help:"Ended tasks outside jobs: IDs or ID prefixes."`
	manyFlags
	auditFlags
}

// Help is shown by task delete --help.
func (taskDeleteCmd) Help() string {
	return "Deletes a task with its attempts, decisions and steps, and frees its idempotency key. The audit records the deletion. Flags " +
		"select many tasks instead of IDs: --dry-run lists them, --yes deletes them." + queryHelp
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
		return fmt.Sprintf("%s is %s: it undoes another task of its job, which no cancel ends. --abandon-undo abandons it.", o.ID, state)
	case o.Asked && o.undo != nil && o.undo.NotBefore.After(time.Now()):
		return fmt.Sprintf("%s is %s: its lease was revoked, and its cleanups run before it ends, from %s on. --abandon-undo ends it without them.", o.ID, state, o.undo.NotBefore.UTC().Format(time.RFC3339))
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
