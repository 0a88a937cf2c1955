package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// queueCmd groups the verbs of queues.
type queueCmd struct {
	Ls     queueLsCmd     `cmd:"" help:"List queues with waiting or running tasks, or a pause."`
	Pause  queuePauseCmd  `cmd:"" help:"Pause queues or task types."`
	Resume queueResumeCmd `cmd:"" help:"Resume queues or task types."`
}

type queueLsCmd struct{}

// Run implements the verb.
func (queueLsCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		queues, err := client.Queues(ctx)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"queues": orEmpty(queues)})
		}
		if len(queues) == 0 {
			s.printf("No task waits or runs in a queue of namespace %q of %s, and none is paused.\n", client.Namespace(), s.store())
			return nil
		}
		t := newTable("QUEUE", "DUE", "OLDEST DUE", "LATER", "RUNNING", "STATE", "SINCE", "BY", "REASON")
		t.gives = []give{{"QUEUE", 20}, {"REASON", 12}}
		for i := range queues {
			q := &queues[i]
			name := text.OneLine(q.Name, explain.MaxNote)
			if q.Type != "" {
				name = "type " + q.Type
			}
			state, since, by, reason := plain("open"), cell{}, "", ""
			if p := q.Pause; p != nil {
				state, since, by, reason = painted("paused", text.Yellow), s.when(p.At), p.Actor, p.Reason
			}
			t.add(plain(name), plain(q.Due.String()), s.when(q.OldestDue), plain(q.Later.String()), plain(q.Running.String()), state,
				since, plain(text.OneLine(by, explain.MaxNote)), plain(text.OneLine(reason, explain.MaxNote)))
		}
		s.list(t)
		return nil
	})
}

type queuePauseCmd struct {
	switchFlags
	ForceUnknownQueue bool `help:"Also pause queues and types that have no tasks yet."`
	auditFlags
}

// switchFlags name the objects to pause or resume.
type switchFlags struct {
	Queues []string `arg:"" optional:"" name:"queue" help:"Queue names."`
	Type   []string `placeholder:"TYPE" help:"Task types, in all queues."`
}

// Help is shown by queue pause --help.
func (queuePauseCmd) Help() string {
	return "Tasks of a paused queue or type are not started; running tasks continue. To pause a single task use task pause."
}

// Run implements the verb.
func (c *queuePauseCmd) Run(ctx context.Context, s *session) error {
	return s.switchQueues(ctx, "pause", c.switchFlags, c.ForceUnknownQueue, c.auditFlags)
}

type queueResumeCmd struct {
	switchFlags
	auditFlags
}

// Run implements the verb.
func (c *queueResumeCmd) Run(ctx context.Context, s *session) error {
	return s.switchQueues(ctx, "resume", c.switchFlags, true, c.auditFlags)
}

// queueSwitched is the JSON output for one queue or type.
type queueSwitched struct {
	Queue   string `json:"queue,omitempty"`
	Type    string `json:"task_type,omitempty"`
	Verb    string `json:"verb"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"` // false if it already was in that state
}

// switchQueues pauses or resumes queues and types, one after the other. Before it changes any, it refuses a queue or
// type without tasks that the program does not handle, unless unknown is set.
func (s *session) switchQueues(ctx context.Context, verb string, names switchFlags, unknown bool, audit auditFlags) error {
	switch {
	case len(names.Queues)+len(names.Type) == 0:
		return badInput("", "expected \"<queue> ...\" or --type TYPE")
	case slices.Contains(names.Queues, ""):
		return badInput("", "the name of a queue is empty")
	}
	for _, name := range names.Type {
		if err := task.CheckTypeName(name); err != nil {
			return badInput("", "--type: %w", err)
		}
	}
	pause := verb == "pause"
	return s.withClient(ctx, func(client *weaver.Client) error {
		before, err := client.Queues(ctx)
		if err != nil {
			return err
		}
		if !unknown {
			if err := s.checkQueues(ctx, client, names.Queues, before); err != nil {
				return err
			}
			if err := s.checkTypes(ctx, client, names.Type); err != nil {
				return err
			}
		}
		results := make([]queueSwitched, 0, len(names.Queues)+len(names.Type))
		each := func(list []string, resume, pauseIt func(context.Context, string, ...weaver.OperateOption) error, result func(name string) queueSwitched) error {
			do := resume
			if pause {
				do = pauseIt
			}
			for _, name := range list {
				if err := do(ctx, name, audit.options()...); err != nil {
					return err
				}
				r := result(name)
				was := slices.ContainsFunc(before, func(q store.Queue) bool { return q.Name == r.Queue && q.Type == r.Type && q.Paused })
				r.Verb, r.Paused, r.Changed = verb, pause, was != pause
				results = append(results, r)
			}
			return nil
		}
		if err := each(names.Queues, client.ResumeQueue, client.PauseQueue, func(name string) queueSwitched { return queueSwitched{Queue: name} }); err != nil {
			return err
		}
		if err := each(names.Type, client.ResumeType, client.PauseType, func(name string) queueSwitched { return queueSwitched{Type: name} }); err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"results": results})
		}
		for _, r := range results {
			s.printf("%s\n", r.sentence())
		}
		return nil
	})
}

// checkTypes refuses task types that have no tasks and that the program does not handle.
func (s *session) checkTypes(ctx context.Context, client *weaver.Client, names []string) error {
	var known []string
	for _, h := range s.app.Handlers {
		known = append(known, h.Name())
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		found, _, err := fill(1, "", func(limit int, after string) ([]task.Task, string, error) {
			return client.List(ctx, weaver.Filter{Types: []string{name}, Limit: limit, After: after})
		})
		if err != nil {
			return fmt.Errorf("look for tasks of type %s: %w", name, err)
		}
		if len(found) == 0 {
			return badInput("Use --force-unknown-queue to pause it before its first task.",
				"there is no task of type %s, and this program does not handle it%s: nothing was paused", name, didYouMean(name, known))
		}
	}
	return nil
}

// checkQueues refuses queues that have no tasks, and that no task type of the program uses. waiting lists the queues
// of the store.
func (s *session) checkQueues(ctx context.Context, client *weaver.Client, names []string, waiting []store.Queue) error {
	known := []string{task.DefaultQueue}
	for _, q := range waiting {
		if q.Type == "" {
			known = append(known, q.Name)
		}
	}
	for _, h := range s.app.Handlers {
		known = append(known, h.Queue())
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		found, _, err := fill(1, "", func(limit int, after string) ([]task.Task, string, error) {
			return client.List(ctx, weaver.Filter{Queue: name, Limit: limit, After: after})
		})
		if err != nil {
			return fmt.Errorf("look for tasks of queue %q: %w", name, err)
		}
		if len(found) == 0 {
			return badInput("Use --force-unknown-queue to pause it before its first task.",
				"queue %q has no tasks, and no task type of this program waits in it%s: nothing was paused", name, didYouMean(name, known))
		}
	}
	return nil
}

func (r queueSwitched) sentence() string {
	name := fmt.Sprintf("Queue %q", text.OneLine(r.Queue, explain.MaxNote))
	if r.Type != "" {
		name = "Type " + r.Type
	}
	switch {
	case r.Paused && r.Changed:
		return name + " is paused: its tasks are not started; running ones go on."
	case r.Paused:
		return name + " was paused already."
	case r.Changed:
		return name + " runs again."
	}
	return name + " was not paused."
}
