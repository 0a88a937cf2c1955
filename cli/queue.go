package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
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
		for _, q := range queues {
			state := plain("open")
			if q.Paused {
				state = cell{"paused", text.Yellow}
			}
			t.add(plain(text.OneLine(q.Name, explain.MaxNote)), plain(fmt.Sprint(q.Due)), plain(fmt.Sprint(q.Later)), state)
		}
		t.print(s.out, s.paint, "")
		return nil
	})
}

type queuePauseCmd struct {
	Queues []string `arg:"" name:"queue" help:"Names of queues; they need not have tasks yet."`
	auditFlags
}

// Run implements the verb.
func (c *queuePauseCmd) Run(ctx context.Context, s *session) error {
	return s.switchQueues(ctx, "pause", c.Queues, c.auditFlags)
}

type queueResumeCmd struct {
	Queues []string `arg:"" name:"queue" help:"Names of queues."`
	auditFlags
}

// Run implements the verb.
func (c *queueResumeCmd) Run(ctx context.Context, s *session) error {
	return s.switchQueues(ctx, "resume", c.Queues, c.auditFlags)
}

// queueSwitched is what became of one queue, for -o json.
type queueSwitched struct {
	Queue   string `json:"queue"`
	Verb    string `json:"verb"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"` // false: it was so before
}

// switchQueues pauses or resumes queues.
func (s *session) switchQueues(ctx context.Context, verb string, queues []string, audit auditFlags) error {
	if slices.Contains(queues, "") {
		return badInput("", "the name of a queue is empty")
	}
	pause := verb == "pause"
	return s.withClient(ctx, func(client *weaver.Client) error {
		before, err := client.Store().Queues(ctx, client.Namespace())
		if err != nil {
			return fmt.Errorf("list queues: %w", err)
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
