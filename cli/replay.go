package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// replayCmd is the verb replay.
type replayCmd struct {
	File string `arg:"" name:"file" help:"Capsule, made by export."`
}

// Help is shown by replay --help.
func (replayCmd) Help() string {
	return "Checks a capsule and shows the steps and attempts that it recorded, in the order in which a replay gets them. The file is " +
		"not changed. To run a handler against them, without anything outside, write a test with weavertest.ReplayCapsule in the " +
		"handler's module and run go test (docs/capsules.md): this program does not have your handlers."
}

// shownCapsule is the JSON output of replay.
type shownCapsule struct {
	File string `json:"file"`
	capsule.Info
	Recorded []recordedTask `json:"recorded"`
}

// recordedTask is a task of a capsule.
type recordedTask struct {
	ID       task.ID        `json:"task_id"`
	Type     string         `json:"task_type"`
	State    task.State     `json:"state"`
	Error    *task.Error    `json:"error,omitempty"`
	Attempts []task.Attempt `json:"attempts"`
	Steps    []task.Step    `json:"steps"`
}

// Run implements the verb.
func (c *replayCmd) Run(ctx context.Context, s *session) (err error) {
	o, err := capsule.OpenCopy(ctx, openCapsule, c.File)
	if err != nil {
		if errors.Is(err, capsule.ErrNotCapsule) {
			return badInput("Make one with `"+s.command("export", "ID")+"`.", "%w", err)
		}
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	got := shownCapsule{File: c.File, Info: o.Info, Recorded: []recordedTask{}}
	for i := range o.Content.Tasks {
		t := &o.Content.Tasks[i]
		got.Recorded = append(got.Recorded, recordedTask{t.Task.ID, t.Task.Type, t.Task.State, t.Task.Error, orEmpty(t.Attempts), orEmpty(t.Steps)})
	}
	if s.json() {
		return s.writeJSON(got)
	}
	s.printf("%s: %s of %s, exported %s by Weaver %s from namespace %q.\n", c.File, text.Plural(o.Info.Tasks, "task"), rootOf(&o.Info), s.clock.When(o.ExportedAt), o.Weaver, o.Namespace)
	for i := range got.Recorded {
		s.printRecorded(&got.Recorded[i])
	}
	s.printLeftOut(&o.Info)
	s.printf("\nTo run a handler against it:\n\n\tfunc TestReplay(t *testing.T) { weavertest.ReplayCapsule(t, HANDLER, %q) }\n", c.File)
	return nil
}

func (s *session) printRecorded(t *recordedTask) {
	s.heading(fmt.Sprintf("%s %s, %s", t.ID, t.Type, t.State))
	s.section("Steps", s.stepTable(t.Steps))
	s.section("Attempts", s.attemptTable(t.Attempts))
}
