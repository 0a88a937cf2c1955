package cli

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// examineOverview warns of pauses that hold up due tasks, of undos that do not end, and of idle workers that hold
// leases.
func (f *checkup) examineOverview(ctx context.Context, s *session, client *weaver.Client) error {
	o, err := client.Overview(ctx, store.OverviewRequest{Parts: store.OverviewQueues | store.OverviewWorkers})
	if err != nil {
		return err
	}
	warn := func(key, format string, args ...any) {
		f.Warnings = append(f.Warnings, warning{key, fmt.Sprintf(format, args...)})
	}
	for i := range o.Queues {
		q := &o.Queues[i]
		if q.Pause == nil || q.Due.N == 0 {
			continue
		}
		what, verb := fmt.Sprintf("queue %q", text.OneLine(q.Name, explain.MaxNote)), s.command("queue", "resume", q.Name)
		if q.Type != "" {
			what, verb = "type "+q.Type, s.command("queue", "resume", "--type", q.Type)
		}
		by := ""
		if q.Pause.Actor != "" {
			by = " by " + text.OneLine(q.Pause.Actor, explain.MaxNote)
		}
		if q.Pause.Reason != "" {
			by += " (" + text.OneLine(q.Pause.Reason, explain.MaxNote) + ")"
		}
		due := q.Due.String() + " tasks are due"
		if q.Due == (store.Count{N: 1}) {
			due = "1 task is due"
		}
		warn("paused", "%s was paused%s, %s, and %s in it: `%s` ends that", what, by, s.clock.When(q.Pause.At), due, verb)
	}
	f.examineUndos(s, o.Queues, warn)
	warnOfNames(o.Workers, warn)
	for i := range o.Workers {
		w := &o.Workers[i]
		name := text.OneLine(w.Name, explain.MaxNote)
		if w.InTrouble() {
			for _, tr := range w.Troubles {
				warn("worker in trouble", "worker %s cannot run tasks of type %s since %s: %s", name, tr.TaskType, s.clock.When(tr.Since), text.OneLine(tr.Error, explain.MaxMessage))
			}
		}
		switch {
		case w.Running.N == 0:
		case w.Dead:
			warn("dead worker", "the process of worker %s has ended, and it holds leases of tasks (%s): a worker that runs takes them over", name, w.Running)
		case w.Silent:
			warn("silent worker", "worker %s, which holds leases of tasks (%s), was last seen %s: if its process has ended, a worker that runs takes them over", name, w.Running, s.clock.When(w.LastSeen))
		}
	}
	return nil
}
