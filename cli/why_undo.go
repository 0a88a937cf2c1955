package cli

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// whyUndo prints the undo plan of a task.
func (c *whyCmd) whyUndo(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantTask, c.ID)
		if err != nil {
			return err
		}
		plan, err := client.UndoPlan(ctx, id)
		switch {
		case err != nil:
			return s.absent(ctx, client, "task", id, err)
		case s.json():
			return s.writeJSON(plan)
		}
		s.printUndoPlan(&plan)
		return nil
	})
}

// noCleanups is the note for undo plans that might be read as complete.
const noCleanups = "The effects of its cleanups are not listed: they are known only when the cleanups run."

func (s *session) printUndoPlan(p *task.UndoPlan) {
	s.printf("%s\n\n%s\n%s\n", s.paint.Paint(text.Bold, "Task "+p.TaskID.String()), s.clock.UndoPlan(p), noCleanups)
	s.section("Effects", s.effectTable(p))
}

// showUndo prints the undo section of task show, for a task with present or past undos.
func (s *session) showUndo(h *store.History) {
	// The effects of an undo task belong to the other task.
	if h.Task.UndoOpen == 0 && (h.Task.Undo == nil || h.Task.Undo.Runs()) || !h.Task.UndoOf.IsZero() {
		return
	}
	p := preview.Undo(h)
	s.heading("Undo")
	s.printf("  %s\n", s.clock.UndoPlan(&p))
	t := s.effectTable(&p)
	t.fit(s.width - len("  "))
	if len(t.rows) > 0 {
		t.print(s.out, s.paint, "  ")
	}
}

func (s *session) effectTable(p *task.UndoPlan) *table {
	t := newTable("STEP", "ROUND", "KIND", "EFFECT", "UNDO", "BEGAN", "KEY", "ERROR")
	t.gives = []give{{"KEY", 0}, {"ERROR", 10}, {"STEP", 10}}
	for i := range p.Effects {
		e := &p.Effects[i]
		effect, failure, color := string(e.Effect), "", ""
		switch {
		case e.Kind == task.KindPoint:
			effect = ""
		case e.Undo == task.EffectFailing, e.Undo == task.EffectGivenUp:
			color = text.Red
		}
		if e.Error != nil {
			failure = explain.Failure(&task.Error{Kind: e.Error.Kind, Message: e.Error.Message}, explain.MaxNote) // the row names the step
		}
		t.add(plain(text.OneLine(e.Step, explain.MaxNote)), plain(number(e.Round)), plain(string(e.Kind)), plain(effect), painted(explain.PlannedUndo(p.State, e), color),
			s.when(e.At), plain(text.OneLine(e.Key, 2*explain.MaxNote)), plain(failure))
	}
	return t
}

// cancelPlan is the JSON output of a dry-run cancel of one task.
type cancelPlan struct {
	task.UndoPlan
	Refused string `json:"refused,omitempty"` // the reason why it would not be cancelled
}

// cancelDryRun prints the undos that a cancel of the tasks would start, and changes nothing.
func (s *session) cancelDryRun(ctx context.Context, args []string) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		ids, err := s.resolve(ctx, client, wantTask, args...)
		if err != nil {
			return err
		}
		plans := make([]cancelPlan, len(ids))
		for i, id := range ids {
			if plans[i].UndoPlan, err = client.UndoPlan(ctx, id); err != nil {
				return s.absent(ctx, client, "task", id, err)
			}
			if state := plans[i].State; state.Terminal() {
				plans[i].Refused = fmt.Sprintf("task %s is %s: a task that ended cannot be cancelled", id, state)
			}
		}
		if s.json() {
			return s.writeJSON(map[string]any{"verb": "cancel", "dry_run": true, "plans": plans})
		}
		for i := range plans {
			if i > 0 {
				s.printf("\n")
			}
			if plans[i].Refused != "" {
				s.printf("Would be refused: %s\n", plans[i].Refused)
				continue
			}
			s.printUndoPlan(&plans[i].UndoPlan)
		}
		s.printf("\nNothing was cancelled.\n")
		return nil
	})
}
