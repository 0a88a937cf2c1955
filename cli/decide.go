package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/explain"
	redaction "github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// decideCmd groups the verbs of decisions.
type decideCmd struct {
	Replay decideReplayCmd `cmd:"" help:"Replay the recorded failures with another Decider."`
}

// ownDeciders returns the Deciders that every program has.
func ownDeciders() map[string]decide.Decider {
	return map[string]decide.Decider{
		"default": decide.Default{},
		"strict":  decide.AtMost(2, decide.Default{}),
	}
}

type decideReplayCmd struct {
	Type    []string      `placeholder:"TYPE" help:"Only tasks of these types."`
	Since   time.Duration `placeholder:"D" help:"Maximum age of the decisions, such as 24h; default all."`
	Decider string        `required:"" placeholder:"NAME" help:"Decider: default, strict, or one of this program."`
	Limit   int           `default:"10000" placeholder:"N" help:"Maximum number of tasks, newest first; default 10000."`
}

// Help is shown by decide replay --help.
func (decideReplayCmd) Help() string {
	return "Changes nothing. It repeats each recorded decision with the recorded question and compares the kind, the pause before a " +
		"retry, and the number of children. strict allows at most two attempts. A decision that the default made because the Decider " +
		"failed counts as a fallback; there the Decider's own answer is compared."
}

// replayed is the JSON output of decide replay.
type replayed struct {
	Decider     string       `json:"decider"`
	Tasks       int          `json:"tasks"`     // examined
	Decisions   int          `json:"decisions"` // decided again
	Fallbacks   int          `json:"fallbacks"` // decisions made by the default because the Decider failed
	Skipped     int          `json:"skipped"`   // decisions recorded by an older program, which cannot be replayed
	More        bool         `json:"more"`      // there are tasks beyond the limit
	Differences []difference `json:"differences"`
}

// difference is a decision that the Decider would make differently.
type difference struct {
	TaskID    task.ID           `json:"task_id"`
	Type      string            `json:"task_type"`
	AttemptNo int               `json:"attempt_no"`
	Was       task.DecisionKind `json:"was"`
	WasReason string            `json:"was_reason"`
	Would     task.DecisionKind `json:"would,omitempty"` // "" if the Decider panics
	Delay     time.Duration     `json:"delay_ns,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Differs   string            `json:"differs"` // in words
}

// Run implements the verb.
func (c *decideReplayCmd) Run(ctx context.Context, s *session) error {
	deciders := ownDeciders()
	maps.Copy(deciders, s.app.Deciders)
	d := deciders[c.Decider]
	if d == nil {
		return badInput("", "--decider %s: this program has %s", c.Decider, strings.Join(slices.Sorted(maps.Keys(deciders)), ", "))
	}
	if c.Since < 0 || c.Limit < 1 {
		return badInput("", "--since must not be negative, and --limit at least 1")
	}
	for _, name := range c.Type {
		if err := task.CheckTypeName(name); err != nil {
			return badInput("", "--type: %w", err)
		}
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		out := replayed{Decider: c.Decider, Differences: []difference{}}
		f := weaver.Filter{Types: c.Type, Limit: store.MaxLimit}
		for {
			f.Limit = min(store.MaxLimit, c.Limit-out.Tasks)
			page, next, err := client.List(ctx, f)
			if err != nil {
				return err
			}
			for i := range page {
				if err := c.replay(ctx, client, d, &page[i], s.clock.Now, &out); err != nil {
					return err
				}
			}
			if f.After = next; next == "" || out.Tasks >= c.Limit {
				out.More = next != ""
				break
			}
		}
		if s.json() {
			return s.writeJSON(out)
		}
		s.printReplayed(&out)
		return nil
	})
}

// replay repeats the decisions on one task.
func (c *decideReplayCmd) replay(ctx context.Context, client *weaver.Client, d decide.Decider, t *task.Task, now time.Time, out *replayed) error {
	out.Tasks++
	if t.AttemptNo == 0 || c.Since > 0 && t.UpdatedAt.Before(now.Add(-c.Since)) {
		return nil
	}
	h, err := client.History(ctx, t.ID)
	if err != nil {
		return err
	}
	secrets := redaction.Secrets(&h) // the Decider gets the unmasked values
	for i := range h.Decisions {
		made := &h.Decisions[i]
		if c.Since > 0 && made.At.Before(now.Add(-c.Since)) {
			continue
		}
		in, ok := decide.Again(h.Task, h.Attempts, made)
		if !ok {
			out.Skipped++
			continue
		}
		out.Decisions++
		if made.Reason.Fallback != "" {
			out.Fallbacks++
		}
		if would, differs := decide.Compare(in, made, d); differs != "" {
			out.Differences = append(out.Differences, difference{
				TaskID: t.ID, Type: t.Type, AttemptNo: made.AttemptNo, Was: made.Kind, WasReason: made.Reason.Text,
				Would: would.Kind, Delay: would.Delay, Reason: would.Reason.Text, Differs: differs,
			})
			shown := &out.Differences[len(out.Differences)-1]
			shown.WasReason, shown.Reason, shown.Differs = redaction.Hide(shown.WasReason, secrets), redaction.Hide(shown.Reason, secrets), redaction.Hide(shown.Differs, secrets)
		}
	}
	return nil
}

// was counts things in the past tense: "1 decision was", "2 decisions were".
func was(n int, noun string) string {
	if n == 1 {
		return text.Plural(n, noun) + " was"
	}
	return text.Plural(n, noun) + " were"
}

func (s *session) printReplayed(r *replayed) {
	if len(r.Differences) > 0 {
		t := newTable("TASK", "TYPE", "AFTER", "WOULD", "REASON", "WAS BECAUSE")
		t.gives = []give{{"WAS BECAUSE", 0}, {"REASON", 20}, {"TYPE", 0}}
		for _, d := range r.Differences {
			t.add(plain(d.TaskID.String()), plain(d.Type), plain(fmt.Sprintf("attempt %d", d.AttemptNo)), plain(text.OneLine(d.Differs, explain.MaxNote)),
				plain(text.OneLine(d.Reason, explain.MaxMessage)), plain(text.OneLine(d.WasReason, explain.MaxNote)))
		}
		s.list(t)
		s.printf("\n")
	}
	s.printf("%s of %s made again: %d would differ by %q.\n", text.Plural(r.Decisions, "decision"), text.Plural(r.Tasks, "task"), len(r.Differences), r.Decider)
	if r.Fallbacks > 0 {
		s.printf("%s made by the default, because the Decider failed: what it said itself was compared.\n", was(r.Fallbacks, "decision"))
	}
	if r.Skipped > 0 {
		s.printf("%s could not be made again: a budget overruled the Decider, or an older version of this program did not keep what it was asked with.\n", text.Plural(r.Skipped, "decision"))
	}
	if r.More {
		s.printf("There are older tasks: add --limit.\n")
	}
}
