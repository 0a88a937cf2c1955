package preview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	id  = task.ID{15: 1}
	day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// row returns a step of a task, begun the given minutes after noon.
func row(name string, minute int, kind task.StepKind, state task.StepState, change ...func(*task.Step)) task.Step {
	s := task.Step{TaskID: id, Name: name, Index: minute, Kind: kind, State: state, AttemptNo: 1, Try: 1, StartedAt: day.Add(time.Duration(minute) * time.Minute)}
	for _, c := range change {
		c(&s)
	}
	return s
}

// undo gives a step an undo in a round.
func undo(state task.UndoState, no, round int) func(*task.Step) {
	return func(s *task.Step) { s.Undo, s.UndoNo, s.Round = state, no, round }
}

func failure(message string) func(*task.Step) {
	return func(s *task.Step) { s.Error = &task.Error{Kind: task.KindHandler, Message: message} }
}

// tried returns a failed try of an undo.
func tried(name string, minute, attempt, round int, message string) task.Step {
	return row(name, minute, task.KindUndo, task.StepFailed, failure(message), func(s *task.Step) { s.AttemptNo, s.Round = attempt, round })
}

// shown returns an effect on one line.
func shown(e *task.UndoEffect) string {
	line := fmt.Sprintf("%s#%d %s %s %s %s %s", e.Step, e.Round, e.Kind, e.Effect, e.Undo, strings.TrimPrefix(e.Key, id.String()+":"), e.At.Format("15:04"))
	if e.Tries > 0 {
		line += fmt.Sprintf(" tries=%d", e.Tries)
	}
	if e.Error != nil {
		line += " " + e.Error.Message
	}
	return line
}

func TestUndo(t *testing.T) {
	t.Parallel()
	const (
		step, done, begun, failed = task.KindStep, task.StepCompleted, task.StepBegun, task.StepFailed
	)
	phase := &task.UndoPhase{EndsAs: task.Failed}
	for name, tc := range map[string]struct {
		state task.State
		phase *task.UndoPhase
		steps []task.Step
		want  []string
		open  int
	}{
		"nothing on record": {state: task.Ready},
		"the last begun is undone first, whatever its index": {
			state: task.Running,
			steps: []task.Step{row("a", 1, step, done, undo(task.UndoOpen, 2, 0)), row("b", 2, step, done, undo(task.UndoOpen, 1, 0)), row("c", 3, step, begun, undo(task.UndoOpen, 3, 0))},
			want:  []string{"c#0 step unknown declared c 12:03", "a#0 step confirmed declared a 12:01", "b#0 step confirmed declared b 12:02"},
			open:  3,
		},
		"an error that is the result is no proof": {
			state: task.Running,
			steps: []task.Step{row("a", 1, step, done, undo(task.UndoOpen, 1, 0), failure("timed out"))},
			want:  []string{"a#0 step unknown declared a 12:01"},
			open:  1,
		},
		"a step that failed, and then began again, is one effect": {
			state: task.Running,
			steps: []task.Step{row("a", 1, step, begun, undo(task.UndoOpen, 1, 0)), row("a", 1, step, failed, failure("503"))},
			want:  []string{"a#0 step unknown declared a 12:01"},
			open:  1,
		},
		"without an undo: stays, the last reached first": {
			state: task.Running,
			steps: []task.Step{
				row("a", 1, step, done), row("mail", 2, task.KindStart, done), row("fan", 3, task.KindCall, task.StepWaiting), row("b", 4, step, failed, failure("503")), row("b", 4, step, failed, failure("503")),
			},
			want: []string{"b#0 step unknown none b 12:04", "fan#0 call unknown none fan 12:03", "mail#0 start confirmed none mail 12:02", "a#0 step confirmed none a 12:01"},
		},
		"waits, cleanups and undos are no effects": {
			state: task.Running,
			steps: []task.Step{
				row("nap", 1, task.KindSleep, done), row("ok", 2, task.KindSignal, done), row("ask", 3, task.KindAsk, done), row("first", 4, task.KindRace, done),
				row("each", 5, task.KindEach, done), row("refund", 6, task.KindCleanup, done), row("gone", 7, task.KindUndo, done),
			},
		},
		"a point of no return stands above what it keeps": {
			state: task.Running,
			steps: []task.Step{row("a", 1, step, done, undo(task.UndoKept, 1, 0)), row("shipped", 2, task.KindPoint, done), row("b", 3, step, done, undo(task.UndoOpen, 2, 0))},
			want:  []string{"b#0 step confirmed declared b 12:03", "shipped#0 point confirmed kept  12:02", "a#0 step confirmed kept a 12:01"},
			open:  1,
		},
		"a success keeps everything": {
			state: task.Succeeded,
			steps: []task.Step{row("a", 1, step, done, undo(task.UndoOpen, 1, 0))},
			want:  []string{"a#0 step confirmed kept a 12:01"},
		},
		"in the phase": {
			state: task.Pending, phase: phase,
			steps: []task.Step{
				row("a", 1, step, done, undo(task.UndoOpen, 1, 0)),
				row("b", 2, step, begun, undo(task.UndoOpen, 2, 0)), tried("b", 5, 3, 0, "psp 504"), tried("b", 4, 2, 0, "psp 503"),
				row("c", 3, step, done, undo(task.UndoUndone, 3, 0)), tried("c", 3, 2, 0, "psp 503"), row("c", 3, task.KindUndo, done),
			},
			want: []string{"b#0 step unknown failing b 12:02 tries=2 psp 504", "a#0 step confirmed declared a 12:01", "c#0 step confirmed undone c 12:03 tries=1"},
			open: 2,
		},
		"given up: what was not tried stands, too": {
			state: task.Failed, phase: &task.UndoPhase{EndsAs: task.Failed, GaveUp: true},
			steps: []task.Step{row("a", 1, step, done, undo(task.UndoOpen, 1, 0)), row("b", 2, step, done, undo(task.UndoOpen, 2, 0)), tried("b", 3, 2, 0, "psp 503")},
			want:  []string{"b#0 step confirmed given_up b 12:02 tries=1 psp 503", "a#0 step confirmed given_up a 12:01"},
			open:  2,
		},
		"rounds are effects of their own": {
			state: task.Running,
			steps: []task.Step{
				row("a", 1, step, done, undo(task.UndoUndone, 1, 0)), tried("a", 2, 2, 0, "psp 503"), row("a", 1, step, done, undo(task.UndoSkipped, 2, 1)),
				row("a", 1, step, done, undo(task.UndoOpen, 3, 2)),
			},
			want: []string{"a#2 step confirmed declared a#2 12:01", "a#1 step confirmed skipped a#1 12:01", "a#0 step confirmed undone a 12:01 tries=1"},
			open: 1,
		},
		"a step that was taken over has the key of another task": {
			state: task.Running,
			steps: []task.Step{row("a", 1, step, done, func(s *task.Step) { s.AttemptNo, s.Try = 0, 0 })},
			want:  []string{"a#0 step confirmed none  12:01"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := store.History{Task: task.Task{ID: id, State: tc.state, Undo: tc.phase}, Steps: tc.steps}
			p := preview.Undo(&h)
			var got []string
			for i := range p.Effects {
				got = append(got, shown(&p.Effects[i]))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the effects are\n\t%s, want\n\t%s", strings.Join(got, "\n\t"), strings.Join(tc.want, "\n\t"))
			}
			if p.TaskID != id || p.State != tc.state || (p.Phase == nil) != (tc.phase == nil) || p.Effects == nil || p.Open() != tc.open {
				t.Errorf("the plan is %+v, with %d open, want %d", p, p.Open(), tc.open)
			}
		})
	}
}

func TestUndo_SharesNothing(t *testing.T) {
	t.Parallel()
	h := store.History{Task: task.Task{ID: id, Undo: &task.UndoPhase{}}, Steps: []task.Step{row("a", 1, task.KindStep, task.StepBegun, undo(task.UndoOpen, 1, 0)), tried("a", 2, 2, 0, "psp 503")}}
	p := preview.Undo(&h)
	p.Phase.GaveUp, p.Effects[0].Error.Message = true, "changed"
	if h.Task.Undo.GaveUp || h.Steps[1].Error.Message != "psp 503" {
		t.Error("a change of the plan changed the history")
	}
}

func TestUndoneFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		task task.Task
		want bool
	}{
		"nothing to undo":          {task.Task{State: task.Pending, Waiting: task.WaitRetry, AttemptNo: 1}, false},
		"an open step":             {task.Task{State: task.Running, UndoOpen: 1}, true},
		"being undone":             {task.Task{State: task.Pending, Undo: &task.UndoPhase{}}, true},
		"cleans up":                {task.Task{State: task.Blocked, Options: task.Options{CleanupWhenCancelled: true}, AttemptNo: 1}, true},
		"never ran":                {task.Task{State: task.Ready, Options: task.Options{CleanupWhenCancelled: true}}, false},
		"cleans up by itself":      {task.Task{State: task.Running, Options: task.Options{CleanupWhenCancelled: true}, AttemptNo: 1}, false},
		"ended":                    {task.Task{State: task.Succeeded, UndoOpen: 1}, false},
		"ended, its undo given up": {task.Task{State: task.Failed, Undo: &task.UndoPhase{GaveUp: true}}, false},
	} {
		if got := preview.UndoneFirst(&tc.task); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
