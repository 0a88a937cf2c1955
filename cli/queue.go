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
	Ls     queueLsCmd     `cmd:"" help:"List queues with waiting tasks or a pause."`
	Pause  queuePauseCmd  `cmd:"" help:"Let no task of these queues start."`
	Resume queueResumeCmd `cmd:"" help:"End a pause."`
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
			s.printf("No task waits in a queue of namespace %q of %s, and none is paused.\n", client.Namespace(), s.flags.Store)
			return nil
		}
		t := newTable("QUEUE", "DUE", "LATER", "STATE")
		t.gives = []give{{"QUEUE", 20}}
		for _, q := range queues {
			state := plain("open")
			if q.Paused {
				state = painted("paused", text.Yellow)
			}
			t.add(plain(text.OneLine(q.Name, explain.MaxNote)), plain(fmt.Sprint(q.Due)), plain(fmt.Sprint(q.Later)), state)
		}
		s.list(t)
		return nil
	})
}

type queuePauseCmd struct {
	Queues            []string `arg:"" name:"queue" help:"Names of queues."`
	ForceUnknownQueue bool     `help:"Pause queues that have no tasks yet, too."`
	auditFlags
}

// Run implements the verb.
func (c *queuePauseCmd) Run(ctx context.Context, s *session) error {
	return s.switchQueues(ctx, "pause", c.Queues, c.ForceUnknownQueue, c.auditFlags)
}

type queueResumeCmd struct {
	Queues []string `arg:"" name:"queue" help:"Names of queues."`
	auditFlags
}

// Run implements the verb.
func (c *queueResumeCmd) Run(ctx context.Context, s *session) error {
	return s.switchQueues(ctx, "resume", c.Queues, true, c.auditFlags)
}

// queueSwitched is what became of one queue, for -o json.
type queueSwitched struct {
	Queue   string `json:"queue"`
	Verb    string `json:"verb"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"` // false: it was so before
}

// switchQueues pauses or resumes queues, one after the other. Unless unknown is
// set, a queue that checkQueues does not know is refused before any is changed.
func (s *session) switchQueues(ctx context.Context, verb string, queues []string, unknown bool, audit auditFlags) error {
	if slices.Contains(queues, "") {
		return badInput("", "the name of a queue is empty")
	}
	pause := verb == "pause"
	return s.withClient(ctx, func(client *weaver.Client) error {
		before, err := client.Store().Queues(ctx, client.Namespace())
		if err != nil {
			return fmt.Errorf("list queues: %w", err)
		}
		if !unknown {
			if err := s.checkQueues(ctx, client, queues, before); err != nil {
				return err
			}
		}
		var results []queueSwitched
		for _, name := range queues {
			do := client.ResumeQueue
			if pause {
				do = client.PauseQueue
			}
			if err := do(ctx, name, audit.options()...); err != nil {
				return err
			}
			was := slices.ContainsFunc(before, func(q store.Queue) bool { return q.Name == name && q.Paused })
			results = append(results, queueSwitched{Queue: name, Verb: verb, Paused: pause, Changed: was != pause})
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

// checkQueues refuses names of queues that have no tasks, waiting or not, and in
// which no task type of the program waits.
func (s *session) checkQueues(ctx context.Context, client *weaver.Client, names []string, waiting []store.Queue) error {
	known := []string{task.DefaultQueue}
	for _, q := range waiting {
		known = append(known, q.Name)
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
			return badInput("With --force-unknown-queue it is paused before its first task comes.",
				"queue %q has no tasks, and no task type of this program waits in it%s: nothing was paused", name, didYouMean(name, known))
		}
	}
	return nil
}

func (r queueSwitched) sentence() string {
	name := text.OneLine(r.Queue, explain.MaxNote)
	switch {
	case r.Paused && r.Changed:
		return fmt.Sprintf("Queue %q is paused: its tasks are not started; running ones go on.", name)
	case r.Paused:
		return fmt.Sprintf("Queue %q was paused already.", name)
	case r.Changed:
		return fmt.Sprintf("Queue %q runs again.", name)
	}
	return fmt.Sprintf("Queue %q was not paused.", name)
}
