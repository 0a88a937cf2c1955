package cli

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// forgetCmd is the verb forget.
type forgetCmd struct {
	Label    []string `sep:"none" placeholder:"KEY=VALUE" help:"Labels of the tasks; all must match."`
	Cancel   bool     `help:"Cancel unfinished tasks first."`
	Force    bool     `help:"With --cancel: end running tasks at once."`
	KeepFile bool     `help:"Do not rewrite the store's file."`
	Scrub    bool     `help:"Only rewrite the store's file."`
	DryRun   bool     `help:"List the tasks without changing them."`
	auditFlags
}

// Help is shown by forget --help.
func (forgetCmd) Help() string {
	return "Erases the inputs, outputs, step values, signals, checkpoints, artifacts, log lines, events, metadata and error texts of the " +
		"tasks with a label, of the children that they waited for, and the output of their commands. The tasks themselves stay: IDs, " +
		"names, keys, labels, states, times, attempts and the audit. With --cancel running tasks are asked to end, and with --force " +
		"their leases are revoked: forget them after they have ended.\n\nThen the store's file is rewritten, so that no copies stay in " +
		"its unused parts; workers wait meanwhile. --keep-file skips that, and --scrub does only that, for values that expired or were " +
		"erased since the last time. Backups are not changed. Run an interrupted command again."
}

// forgot is the JSON output of forget.
type forgot struct {
	DryRun    bool          `json:"dry_run,omitempty"`
	Done      int           `json:"done"`
	Cancelled int           `json:"cancelled,omitempty"`
	Refused   []manyRefused `json:"refused,omitempty"`
	Tasks     []manyTask    `json:"tasks,omitempty"`
	Rewritten int64         `json:"bytes_rewritten,omitempty"`
	Error     string        `json:"error,omitempty"`
}

// Run implements the verb.
func (c *forgetCmd) Run(ctx context.Context, s *session) error {
	labels, err := parseLabels(c.Label)
	switch {
	case c.Scrub && (len(c.Label) > 0 || c.Cancel || c.KeepFile || c.DryRun):
		return badInput("", "--scrub allows no other flags: a forget by label rewrites the file itself")
	case c.Scrub:
		return s.withClient(ctx, func(client *weaver.Client) error { return s.scrub(ctx, client) })
	case err != nil:
		return err
	case len(labels) == 0:
		return badInput("", "--label KEY=VALUE selects the tasks to forget, for example --label subject=42")
	case c.Force && !c.Cancel:
		return badInput("", "--force is for --cancel")
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		ack, err := client.Forget(ctx, ops.ForgetRequest{
			Labels: labels, Cancel: c.Cancel, Force: c.Force, Also: s.removeLogsOf, KeepFile: c.KeepFile, DryRun: c.DryRun, By: c.who(), Reason: c.Reason,
		})
		return c.show(s, &ack, err)
	})
}

// scrub rewrites the store's file if values were erased since the last scrub.
func (s *session) scrub(ctx context.Context, client *weaver.Client) error {
	st := client.Store()
	if !st.Capabilities().Has(store.CanScrub) {
		return badInput("", "%s has no file of its own: VACUUM in the database removes deleted values", s.store())
	}
	did, err := st.Scrub(ctx, client.Namespace())
	switch {
	case err != nil:
		return err
	case s.json():
		return s.writeJSON(forgot{Rewritten: did.Bytes})
	case !did.Done:
		s.printf("nothing was erased since the store's file was last rewritten.\n")
		return nil
	}
	s.printf("the store's file was rewritten, %.1f MiB.\n", float64(did.Bytes)/(1<<20))
	return nil
}

// removeLogsOf removes the logs of tasks' commands. Crash after it: the next call finds the tasks again.
func (s *session) removeLogsOf(_ context.Context, tasks []weaver.TaskInfo) error {
	dir := s.logFolder()
	if dir == "" {
		return nil
	}
	list := make([]attemptlog.Attempt, len(tasks))
	for i := range tasks {
		list[i] = lastAttempt(&tasks[i])
	}
	if err := s.logsIn(dir, nil).RemoveOf(list...); err != nil {
		return fmt.Errorf("remove the output of commands in %s: %w", dir, err)
	}
	return nil
}

// show prints the result, also of a verb that failed halfway.
func (c *forgetCmd) show(s *session, ack *ops.ForgetAck, err error) error {
	many := ops.ManyAck{Refused: ack.Refused}
	if err != nil {
		err = fmt.Errorf("%w; run the same command again for the rest", err)
	}
	if s.json() {
		res := forgot{DryRun: c.DryRun, Done: ack.Done, Cancelled: ack.Cancelled, Rewritten: ack.Rewritten}
		for _, r := range ack.Refused[:min(len(ack.Refused), maxRefusedJSON)] {
			res.Refused = append(res.Refused, manyRefused{r.ID, r.Err.Error()})
		}
		for _, t := range ack.Tasks {
			res.Tasks = append(res.Tasks, manyTask(t))
		}
		if err != nil {
			res.Error = err.Error()
		}
		if jsonErr := s.writeJSON(res); jsonErr != nil {
			return jsonErr
		}
		return manyError(&many, c.DryRun, err)
	}
	if len(ack.Tasks) > 0 {
		t := newTable("ID", "TYPE", "QUEUE", "STATE")
		for _, m := range ack.Tasks[:min(len(ack.Tasks), maxListed)] {
			t.add(plain(m.ID.String()), plain(m.Type), plain(text.OneLine(m.Queue, explain.MaxNote)), painted(string(m.State), text.StateColor(string(m.State))))
		}
		s.list(t)
		if more := ack.Done - min(len(ack.Tasks), maxListed); more > 0 {
			s.printf("… and %d more.\n", more)
		}
	}
	would := ""
	if c.DryRun {
		would = " would be"
	}
	s.printf("%s%s forgotten", text.Plural(ack.Done, "task"), would)
	if ack.Cancelled > 0 {
		s.printf(", of which %d%s cancelled first", ack.Cancelled, would)
	}
	if ack.Rewritten > 0 {
		s.printf("; the store's file was rewritten, %.1f MiB", float64(ack.Rewritten)/(1<<20))
	}
	s.printf(".\n")
	for i, r := range ack.Refused {
		if i == maxRefused {
			s.printf("%d more were refused.\n", len(ack.Refused)-i)
			break
		}
		s.printf("Refused: %s\n", text.OneLine(r.Err.Error(), explain.MaxMessage))
	}
	return manyError(&many, c.DryRun, err)
}
