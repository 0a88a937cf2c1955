package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

type taskRerunCmd struct {
	ID    string `arg:"" name:"id" help:"Task to repeat: ID, ID prefix, or JOB/TASK."`
	Input string `placeholder:"JSON|FILE|-" help:"Other input: JSON, a file, or - for the standard input."`
	From  string `placeholder:"STEP" help:"First step to run; the results before it are kept."`

	KeepSteps bool `help:"With --from: also after a cleanup; the steps still stand."`
	DryRun    bool `help:"List the kept steps without enqueuing a task."`
	auditFlags
}

// Help is shown by task rerun --help.
func (taskRerunCmd) Help() string {
	return "Enqueues a new task with the type, the options and the input of this task, and a link to it. This task stays unchanged and " +
		"keeps its idempotency key. A task of a job is repeated outside the job. With --from the new task takes over the values of the " +
		"steps before that step. If this program knows the type, it checks another input. --dry-run lists the steps to take over, and " +
		"those whose undo stays with this task. To run a failed task itself again, see task retry."
}

// rerunResult is the JSON output of task rerun.
type rerunResult struct {
	ID      task.ID `json:"id"`
	RerunOf task.ID `json:"rerun_of"`
	From    string  `json:"from,omitempty"`
}

// Run implements the verb.
func (c *taskRerunCmd) Run(ctx context.Context, s *session) error {
	if c.KeepSteps && c.From == "" {
		return badInput("", "--keep-steps is for --from STEP: without it all steps run anew")
	}
	raw, err := readInput(c.Input, s.stdin)
	if err != nil {
		return err
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantTask, c.ID)
		if err != nil {
			return err
		}
		if c.DryRun {
			return c.dryRun(ctx, s, client, id)
		}
		opts := c.options()
		if c.KeepSteps {
			opts = append(opts, weaver.KeepSteps())
		}
		if raw != nil {
			opts = append(opts, weaver.RerunInput(raw))
		}
		rerun := func() (weaver.Enqueued, error) { return client.Rerun(ctx, id, opts...) }
		if c.From != "" {
			rerun = func() (weaver.Enqueued, error) { return client.RerunFrom(ctx, id, c.From, opts...) }
		}
		got, err := rerun()
		switch {
		case errors.Is(err, weaver.ErrNoSuchStep):
			return s.noSuchStep(id, err)
		case errors.Is(err, weaver.ErrInvalidInput), errors.Is(err, weaver.ErrTooLarge):
			return badInput("", "--input: %w", err)
		case err != nil:
			return s.absent(ctx, client, "task", id, err)
		}
		if s.json() {
			return s.writeJSON(rerunResult{ID: got.ID, RerunOf: id, From: c.From})
		}
		s.printf("%s repeats %s.\n", got.ID, id)
		return nil
	})
}

func (s *session) noSuchStep(id task.ID, err error) error {
	return badInput(s.command("task", "show", id.String())+" lists the steps.", "--from: %w", err)
}

// rerunPlan is the JSON output of task rerun --dry-run.
type rerunPlan struct {
	RerunOf task.ID     `json:"rerun_of"`
	From    string      `json:"from,omitempty"`
	DryRun  bool        `json:"dry_run"`
	Taken   []takenStep `json:"taken_over"`
	Refused string      `json:"refused,omitempty"` // as far as known in advance
}

// takenStep is a step that a rerun takes over.
type takenStep struct {
	Step string          `json:"step"`
	Kind task.StepKind   `json:"kind"`
	Undo task.EffectUndo `json:"undo"` // undo of the step in the original task; unless "none" it stays with that task
}

// dryRun prints the steps that the new task would take over. It does not check the input.
func (c *taskRerunCmd) dryRun(ctx context.Context, s *session, client *weaver.Client, id task.ID) error {
	h, err := client.History(ctx, id)
	if err != nil {
		return s.absent(ctx, client, "task", id, err)
	}
	below, found := 0, c.From == ""
	if !found {
		if below, found = preview.FirstOf(h.Steps, c.From); !found {
			return s.noSuchStep(id, fmt.Errorf("rerun task %s: %w: %q", id, weaver.ErrNoSuchStep, c.From))
		}
	}
	plan := rerunPlan{RerunOf: id, From: c.From, DryRun: true, Taken: []takenStep{}}
	undos := make(map[string]task.EffectUndo)
	of := preview.Undo(&h)
	for _, e := range of.Effects {
		if e.Undo != task.EffectUndone && e.Undo != task.EffectSkipped {
			undos[e.Step] = e.Undo
		}
	}
	taken, refused := preview.Rerun(&h, below, c.KeepSteps)
	for i := range taken {
		st := takenStep{Step: taken[i].Name, Kind: taken[i].Kind, Undo: task.EffectNone}
		if taken[i].Undo != task.UndoNone {
			st.Undo = undos[st.Step]
		}
		plan.Taken = append(plan.Taken, st)
	}
	if refused != nil {
		plan.Refused = refused.Error()
	}
	if s.json() {
		return s.writeJSON(plan)
	}
	s.printRerunPlan(&plan)
	return nil
}

func (s *session) printRerunPlan(p *rerunPlan) {
	switch {
	case p.Refused != "":
		s.printf("Would be refused: %s\n", text.OneLine(p.Refused, explain.MaxMessage))
	case p.From == "":
		s.printf("A new task would repeat %s, with all steps anew.\n", p.RerunOf)
	case len(p.Taken) == 0:
		s.printf("A new task would repeat %s from step %q, and take no step over.\n", p.RerunOf, text.OneLine(p.From, explain.MaxNote))
	default:
		s.printf("A new task would repeat %s from step %q, and take over what these gave:\n", p.RerunOf, text.OneLine(p.From, explain.MaxNote))
	}
	for _, st := range p.Taken {
		line := fmt.Sprintf("%q (%s)", text.OneLine(st.Step, explain.MaxNote), st.Kind)
		if st.Undo != task.EffectNone {
			line += fmt.Sprintf(": its undo stays with %s", p.RerunOf)
		}
		s.printf("  %s\n", line)
	}
	s.printf("Nothing was enqueued.\n")
}
