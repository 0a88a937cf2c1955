package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// Standstill says why no task of a job runs or is about to run, as the end of a sentence that begins with the job.
// Its tasks wait for a paused queue, for a concurrency key that other jobs hold, or for a person. It returns "" for a
// job with a running or ready task, and for a job that only waits for a time.
func Standstill(tasks []task.Task) string {
	type wait struct {
		why   string
		names []string
	}
	var waits []wait
	for i := range tasks {
		t := &tasks[i]
		why := ""
		switch {
		case t.State == task.Running, t.State == task.Ready:
			return ""
		case t.State == task.Blocked:
			why = "for a person"
		case t.State != task.Pending:
		case t.Waiting == task.WaitPaused:
			why = "because " + whatIsPaused(t, "the ", 2*MaxNote)
		case t.Waiting == task.WaitConcurrency:
			why = fmt.Sprintf("for the concurrency key %q, which lets %d run at once", text.OneLine(t.ConcurrencyKey, 2*MaxNote), max(t.ConcurrencyLimit, 1))
		}
		if why == "" {
			continue
		}
		n := slices.IndexFunc(waits, func(w wait) bool { return w.why == why })
		if n < 0 {
			n, waits = len(waits), append(waits, wait{why: why})
		}
		waits[n].names = append(waits[n].names, text.OneLine(t.Node, 2*MaxNote))
	}
	parts := make([]string, len(waits))
	for i, w := range waits {
		who, verb := text.Plural(len(w.names), "task"), "wait"
		if len(w.names) <= 3 {
			who = strings.Join(w.names, ", ")
		}
		if len(w.names) == 1 {
			verb = "waits"
		}
		parts[i] = fmt.Sprintf("%s %s %s", who, verb, w.why)
	}
	return strings.Join(parts, "; ")
}
