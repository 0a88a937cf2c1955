package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// explain says on the standard error why there is no output to show. It returns an error if a log should exist.
func (v *logsView) explain(ctx context.Context, tasks []task.Task) error {
	if v.job != (task.ID{}) {
		return v.explainJob(tasks)
	}
	t := &tasks[0]
	l := v.logs[t.ID]
	if l == nil || l.found {
		return nil
	}
	h, err := v.client.History(ctx, t.ID)
	if err != nil {
		return err
	}
	for i := range h.Attempts {
		if a := &h.Attempts[i]; a.No == l.no {
			return v.missing(t, a)
		}
	}
	return badInput("", "%s has no attempt %d on record", taskLabel(t), l.no)
}

// missing returns the reason why an attempt has no log.
func (v *logsView) missing(t *task.Task, a *task.Attempt) error {
	what := fmt.Sprintf("%s, attempt %d", taskLabel(t), a.No)
	host := a.Worker
	if i := strings.LastIndexByte(host, ':'); i >= 0 { // HOST:PID
		host = host[:i]
	}
	here, err := os.Hostname()
	switch {
	case t.Forgotten:
		return forgottenLog(t)
	case a.No == t.AttemptNo && wroteNothing(t):
		v.note("%s: it wrote nothing", what)
		return nil
	case v.wasRemoved(a.FinishedAt):
		return badInput(v.endAdvice(t), "%s: its log was removed, because newer ones filled the folder %s (about %d MiB)", what, v.folder.Dir(), v.folder.FolderBytes()>>20)
	case err == nil && host != "" && host != here:
		return badInput(fmt.Sprintf("On %s the same command shows it, where %s was kept there.", host, v.folder.Dir()), "%s: it ran on another machine, %s, and its log is not here", what, host)
	case a.FinishedAt.IsZero():
		v.note("%s: it has written nothing yet", what)
		return nil
	}
	return badInput(v.endAdvice(t), "%s: there is no log of it in %s: it wrote nothing, or ran where no logs are kept", what, v.folder.Dir())
}

// forgottenLog returns the error for the log of a forgotten task.
func forgottenLog(t *task.Task) error {
	return badInput("", "%s was forgotten, and what it wrote is erased", taskLabel(t))
}

func (v *logsView) endAdvice(t *task.Task) string {
	return fmt.Sprintf("`%s` has the end of what it wrote.", v.command("task", "show", t.ID.String()))
}

// wasRemoved reports whether the log of an attempt that ended then was old enough to be removed.
func (v *logsView) wasRemoved(ended time.Time) bool {
	return !ended.IsZero() && !ended.After(v.folder.Removed().Add(time.Second))
}

// explainJob is explain for the tasks of a job.
func (v *logsView) explainJob(tasks []task.Task) error {
	if v.flags.Failed && len(tasks) == 0 {
		v.note("no command of job %s has failed", v.job)
		return nil
	}
	var ran, found, silent, removed, lost int
	for i := range tasks {
		t := &tasks[i]
		l := v.logs[t.ID]
		if l == nil {
			continue
		}
		ran++
		switch {
		case l.found:
			found++
		case wroteNothing(t) || t.State == task.Running:
			silent++
		case v.wasRemoved(t.FinishedAt):
			removed++
		default:
			lost++
		}
	}
	if removed > 0 {
		v.note("the logs of %s were removed, because newer ones filled the folder %s (about %d MiB)", text.Plural(removed, "task"), v.folder.Dir(), v.folder.FolderBytes()>>20)
	}
	if lost > 0 {
		v.note("%s left no log in %s: they wrote nothing, or ran on another machine or where no logs are kept", text.Plural(lost, "task"), v.folder.Dir())
	}
	switch {
	case found > 0:
		return nil
	case removed+lost > 0:
		return badInput("", "there is no log of job %s", v.job)
	case ran > 0:
		v.note("the commands of job %s wrote nothing", v.job)
		return nil
	case len(tasks) == 0:
		return badInput("", "job %s has no commands, and only their output is kept", v.job)
	}
	return badInput(fmt.Sprintf("`%s` tells why.", v.command("why", v.job.String())), "no command of job %s has run", v.job)
}

// note prints a line for people on the standard error.
func (v *logsView) note(format string, args ...any) {
	fmt.Fprintf(v.errs, "%s: %s\n", v.app.Name, text.Printable(fmt.Sprintf(format, args...)))
}

// wroteNothing reports whether the record says that the last attempt of a task had no output.
func wroteNothing(t *task.Task) bool {
	switch {
	case t.State == task.Running:
		return false
	case t.Error != nil:
		said := t.Error.Message
		return strings.Contains(said, "; it wrote nothing") || strings.HasPrefix(said, "run a command: ") // it did not start
	}
	var out builtin.RunOutput
	return json.Unmarshal(t.Output, &out) == nil && out.StdoutBytes+out.StderrBytes == 0
}

// taskLabel returns a task's name for messages.
func taskLabel(t *task.Task) string {
	if t.Node == "" {
		return "task " + t.ID.String()
	}
	return fmt.Sprintf("task %s (%s)", text.OneLine(t.Node, explain.MaxNote), t.ID)
}
