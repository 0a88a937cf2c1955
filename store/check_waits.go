package store

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver/task"
)

// A wait inside a handler is a step in the state waiting (I7, I14). The rules for calls hold until
// their task has ended or was asked to: a retry recounts.

// callOf identifies a step of a task.
type callOf struct {
	id   task.ID
	step string
}

// waits checks the wait steps of a task, past ones included, against the reason for which it is
// suspended.
func (c *checker) waits(t *task.Task) {
	open, all := map[string]int{}, map[string]int{}
	for _, e := range c.edgesOf[t.ID] {
		if e.Step == "" {
			continue
		}
		all[e.Step]++
		if !e.Done {
			open[e.Step]++
		}
		c.callEdge(t, &e)
	}
	waiting := map[task.StepKind]int{}
	ended := 0
	for _, s := range c.stepsOf[t.ID] {
		if s.State == task.StepFailed || s.Kind != task.KindSignal && s.Kind != task.KindCall {
			continue
		}
		if s.Past() { // a call that counts as never run, without its children
			ended++
			continue
		}
		if s.State == task.StepWaiting {
			waiting[s.Kind]++
		} else {
			ended++
		}
		if (s.State == task.StepWaiting) != s.CompletedAt.IsZero() {
			c.task("I6", t, "its step %q is %s with completed_at %v", s.Name, s.State, s.CompletedAt)
		}
		if s.Kind == task.KindCall {
			c.call(t, &s, all[s.Name], open[s.Name])
			delete(all, s.Name)
		}
	}
	for name := range all {
		c.task("I7", t, "has children of a call %q that it did not make", name)
	}
	if t.WakeSeq > ended {
		c.task("I14", t, "has wake_seq %d with %d waits that are completed", t.WakeSeq, ended)
	}
	if t.State != task.Pending || t.Join != task.JoinNone || !t.ReadyAt.IsZero() {
		return
	}
	switch {
	case t.Waiting == task.WaitSignal && waiting[task.KindSignal]+waiting[task.KindCall] == 0,
		t.Waiting == task.WaitChildren && waiting[task.KindSignal]+waiting[task.KindCall] == 0:
		c.task("I14", t, "waits for %s without a time, and none of its steps waits", t.Waiting)
	}
}

// callEdge checks the edge to a child of a call.
func (c *checker) callEdge(t *task.Task, e *EdgeRow) {
	child, ok := c.byID[e.Needs]
	if !ok {
		c.task("I7", t, "has the child %s, which does not exist", e.Needs)
		return
	}
	ending := c.pending[ChoreRow{Kind: ChoreChildren, Subject: t.ID.String()}] ||
		c.pending[ChoreRow{Kind: ChoreCancelJob, Subject: t.JobID.String()}]
	switch {
	case e.Awaited == 0 || e.Kind != task.OnDone:
		c.task("I7", t, "its edge to its child %s is of the kind %s and awaited by attempt %d", e.Needs, e.Kind, e.Awaited)
	case e.Done == (e.EndedState == ""):
		c.task("I7", t, "its edge to its child %s has done %v and the end %q", e.Needs, e.Done, e.EndedState)
	case !e.Done && child.State.Terminal() && !c.pending[ChoreRow{Kind: ChoreEdges, Subject: e.Needs.String()}]:
		c.task("I7", t, "its edge to its child %s, which ended %s, is not done", e.Needs, child.State)
	case !e.Done && !child.State.Terminal() && (t.State.Terminal() || t.Undo != nil) && !child.CancelRequested && child.Undo == nil && !ending:
		c.task("I7", t, "its child %s is %s and was not asked to end", e.Needs, child.State)
	}
}

// call checks a call against the numbers of its stored children and of those that have not ended.
func (c *checker) call(t *task.Task, s *task.Step, stored, open int) {
	counts := !t.State.Terminal() && !t.CancelRequested && t.Undo == nil && !c.pending[ChoreRow{Kind: ChoreReviveChildren, Subject: t.ID.String()}]
	switch left := open + s.Children - s.ChildrenStored; {
	case stored > s.ChildrenStored || s.ChildrenStored > s.Children: // fewer: some were deleted after it had ended
		c.task("I7", t, "its call %q has %d children stored of %d, and there are %d", s.Name, s.ChildrenStored, s.Children, stored)
	case s.State == task.StepCompleted && (left != 0 || s.ChildrenLeft != 0):
		c.task("I7", t, "its call %q is completed with children_left %d and %d open edges", s.Name, s.ChildrenLeft, open)
	case s.State == task.StepWaiting && counts && (s.ChildrenLeft != left || left == 0):
		c.task("I7", t, "its call %q waits with children_left %d, and %d are open or not stored", s.Name, s.ChildrenLeft, left)
	}
}

// signals checks that each taken signal is the value of a wait, and that no signal is kept while a
// task waits for it (I14).
func (c *checker) signals() {
	steps := map[callOf]*task.Step{}
	waits := map[callOf]bool{} // by the name of the signal
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Kind != task.KindSignal {
			continue
		}
		steps[callOf{s.TaskID, s.Name}] = s
		if s.State == task.StepWaiting {
			waits[callOf{s.TaskID, s.Signal}] = true
		}
	}
	for _, g := range c.Signals {
		t, ok := c.byID[g.TaskID]
		if !ok {
			c.report("I14", g.TaskID.String(), "a signal is of task %s, which does not exist", g.TaskID)
			continue
		}
		if c.leaving(t) || c.pending[ChoreRow{Kind: ChoreDropValues, Subject: t.ID.String()}] || c.pending[ChoreRow{Kind: ChoreForget, Subject: t.ID.String()}] {
			continue
		}
		if g.Step == "" {
			if waits[callOf{g.TaskID, g.Name}] && t.Undo == nil && !c.undid(t) {
				c.task("I14", t, "keeps signal %d, for whose name %q it waits", g.Seq, g.Name)
			}
			continue
		}
		s, ok := steps[callOf{g.TaskID, g.Step}]
		if !ok || s.State != task.StepCompleted || s.Signal != g.Name || !sameValue(s.Value, g.Payload) {
			c.task("I14", t, "its signal %d was taken by the step %q, which is not completed with it", g.Seq, g.Step)
		}
	}
}

// undid reports whether a task has been in an undo phase, in which waits take no signals.
func (c *checker) undid(t *task.Task) bool {
	return slices.ContainsFunc(c.attemptsOf[t.ID], func(a task.Attempt) bool {
		return a.Outcome == task.OutcomeUndone || a.Outcome == task.OutcomeUndoFailed
	})
}

// sameValue compares two values. Values sealed with different keys may be equal: between two batches
// of a rewrap they are.
func sameValue(a, b json.RawMessage) bool {
	x, xSealed := task.SealedOf(a)
	y, ySealed := task.SealedOf(b)
	return bytes.Equal(a, b) || xSealed != ySealed || xSealed && x.Key != y.Key
}
