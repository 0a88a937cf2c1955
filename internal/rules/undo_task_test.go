package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestDecideUndo(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	good, bad := task.End{State: task.Succeeded}, task.End{State: task.Failed, Kind: task.KindHandler}
	for name, c := range map[string]struct {
		undone    task.End
		began     bool
		other     task.End
		cancelled bool
		says      string // part of the failure; "": the undo begins
	}{
		"all is well":                   {good, true, good, false, "nothing went wrong"},
		"another one failed":            {good, true, bad, false, ""},
		"it failed itself":              {bad, true, good, false, ""},
		"it did not begin":              {task.End{State: task.Cancelled, Kind: task.KindDependencyFailed}, false, bad, false, "did not begin"},
		"the job was cancelled":         {good, true, good, true, ""},
		"cancelled before it began":     {task.End{State: task.Cancelled, Kind: task.KindCancelled}, false, good, true, "did not begin"},
		"a person cancelled another":    {good, true, task.End{State: task.Cancelled, Kind: task.KindCancelled}, false, ""},
		"another one may fail":          {good, true, task.End{State: task.Failed, Kind: task.KindHandler, AllowFailure: true}, false, "nothing went wrong"},
		"another one was not needed":    {good, true, task.End{State: task.Cancelled, Kind: task.KindNotNeeded}, false, "nothing went wrong"},
		"another one missed its time":   {good, true, task.End{State: task.Cancelled, Kind: task.KindDeadline}, false, ""},
		"another one used a budget up":  {good, true, task.End{State: task.Cancelled, Kind: task.KindBudget}, false, ""},
		"another one lacks what it had": {good, true, task.End{State: task.Cancelled, Kind: task.KindDependencyFailed}, false, ""},
	} {
		to := rules.DecideUndo([]rules.UndoNeed{{Kind: task.OnUndo, End: c.undone, Began: c.began, Name: `"a" (1)`}, {Kind: task.OnDone, End: c.other, Began: true}}, c.cancelled, now)
		begins := to.State == task.Pending && to.Waiting == task.WaitUndo && to.Undo.Runs() && to.Undo.Began.Equal(now) && to.SetUndo && to.Begins
		if c.says == "" && !begins {
			t.Errorf("%s: %+v", name, to)
		}
		if ended := to.State == task.Cancelled && to.SetUndo && to.Undo == nil && rules.KindOf(to.Failure) == task.KindNotNeeded; c.says != "" && (!ended || !strings.Contains(to.Failure.Message, c.says)) {
			t.Errorf("%s: %+v, %+v", name, to, to.Failure)
		}
	}
}

func TestUndoTaskEnds(t *testing.T) {
	t.Parallel()
	now, p := time.Unix(1, 0), &task.UndoPhase{EndsAs: task.Succeeded}
	f := &store.Finish{Outcome: task.OutcomeSuccess, EndsAs: task.Succeeded, Output: []byte(`1`)}
	if err := rules.CheckFinish(f); err != nil {
		t.Fatal(err)
	}
	to := rules.ResolveUndo(f, p, 0, true, now)
	if to.State != task.Succeeded || to.Outcome != task.OutcomeUndone || string(to.Output) != "1" || to.CountsAttempt() || !to.SetUndo || to.Undo != nil || to.TaskError() != nil || to.KeepError {
		t.Errorf("%+v", to)
	}
	for _, end := range []task.State{task.Failed, task.Cancelled} { // of a worker that expects another phase
		other := *f
		other.EndsAs = end
		if to := rules.ResolveUndo(&other, p, 0, true, now); to.State != task.Pending || to.Waiting != task.WaitUndo {
			t.Errorf("%s: %+v", end, to)
		}
	}
	gaveUp := rules.UndoFailure(&rules.GivenUp{Tries: 2, Took: time.Minute, Last: &task.Error{Message: "psp 503"}, Phase: p})
	if gaveUp.Kind != task.KindUndoFailed || gaveUp.Message != "undo given up: it failed after 2 tries in 1m0s: psp 503" {
		t.Errorf("%+v", gaveUp)
	}
	if d := rules.Deadline(&task.New{ExpireAfter: time.Hour, Needs: []task.Edge{{Kind: task.OnUndo}}}, now, now); !d.IsZero() {
		t.Errorf("the deadline %v", d)
	}
}

// An undo that was given up keeps the undos of earlier tasks from running.
func TestUndoEdges(t *testing.T) {
	t.Parallel()
	for _, kind := range []task.EdgeKind{task.OnUndo, task.OnUndone} {
		for _, c := range []struct {
			end   task.End
			holds bool
		}{
			{task.End{State: task.Succeeded}, true},
			{task.End{State: task.Failed, Kind: task.KindHandler}, true},
			{task.End{State: task.Cancelled, Kind: task.KindNotNeeded}, true},
			{task.End{State: task.Failed, Kind: task.KindUndoFailed}, false},
			{task.End{State: task.Cancelled, Kind: task.KindUndoFailed}, false},
		} {
			holds, ended := kind.Holds(c.end)
			blamed := rules.Blame([]rules.EndedNeed{{Kind: kind, End: c.end}})
			if holds != c.holds || !ended || (blamed == nil) != c.holds || blamed != nil && blamed.UnmetKind() != task.KindUndoFailed {
				t.Errorf("%s edge to %+v: holds %v, blamed %+v", kind, c.end, holds, blamed)
			}
		}
	}
}
