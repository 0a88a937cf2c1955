package explain

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undoTries returns the number of failed attempts of an undo phase and the error of the last. It counts from the
// start of the phase or from the last retry by an operator.
func undoTries(h *store.History) (n int, last *task.Error) {
	for i := range h.Attempts {
		if a := &h.Attempts[i]; a.Outcome == task.OutcomeUndoFailed && a.No > h.Task.Undo.Since && !a.StartedAt.Before(h.Task.Undo.Began) {
			n, last = n+1, a.Error
		}
	}
	return n, last
}

// undo describes a task that is being undone before it ends: the due time, the state it will end in, and the error of
// the last try.
func (c Clock) undo(h *store.History, due string) string {
	t := &h.Task
	p := t.Undo
	if p == nil {
		return undoing(t)
	}
	said := undoing(t)
	switch n, last := undoTries(h); {
	case p.NotBefore.After(c.Now):
		said = "is to be undone " + c.When(p.NotBefore) + ", when the lease that was revoked has ended"
	case last != nil:
		said += fmt.Sprintf(", which failed %s: %s; it is tried again", times(n), Failure(last, MaxMessage))
		if due != "" {
			said += " " + due
		}
	case c.waitsForChildren(h):
		said = "is to be undone when its children have ended"
		if due != "" {
			said += ", and looks again " + due
		}
	case due != "":
		said += ", next " + due
	}
	if p.Runs() {
		return said
	}
	said += fmt.Sprintf(", and then ends %s", p.EndsAs)
	if t.Error != nil {
		said += ": " + Failure(t.Error, MaxMessage)
	}
	return said
}

// undoing says that a task is being undone, or that it undoes another task of its job.
func undoing(t *task.Task) string {
	if t.Undo.Runs() {
		return "undoes a task of its job"
	}
	return "is being undone"
}

// waitsForChildren reports whether the last attempt of an undo phase left a task waiting for its children.
func (c Clock) waitsForChildren(h *store.History) bool {
	if len(h.Attempts) == 0 {
		return false
	}
	a := &h.Attempts[len(h.Attempts)-1]
	return a.Outcome == task.OutcomeSuspended && !a.StartedAt.Before(h.Task.Undo.Began)
}

// undoNote describes a task that is being undone before it ends, or whose undo was abandoned.
func undoNote(t *task.Task) string {
	p := t.Undo
	if p == nil {
		return ""
	}
	if p.GaveUp {
		how := "given up"
		if p.Abandoned {
			how = "abandoned"
		}
		note := fmt.Sprintf("Its undo was %s: without it the task would have ended %s. What was not undone stays as it is.", how, p.EndsAs)
		if p.Runs() {
			note = fmt.Sprintf("It undoes another task of its job, and was %s. What it would undo stays as it is, and so does what that task needs.", how)
		}
		if p.Stands() {
			note += " The task is neither deleted nor forgotten before its undo is retried, or abandoned by an operator."
		}
		return note
	}
	if p.Runs() {
		return "It undoes another task of its job, once all have ended, if the job went wrong and that task had begun. It is tried again for 24 h; no cancel, deadline or budget ends it."
	}
	return fmt.Sprintf("Its handler is called for its cleanups, with a context that has ended. One that fails is tried again; then the task ends %s. What needs the task waits until then.", p.EndsAs)
}

// Undo describes the undo phase of a task in a few words; "" outside an undo phase.
func (c Clock) Undo(t *task.Task) string {
	switch p := t.Undo; {
	case p == nil:
		return ""
	case p.Runs() && p.GaveUp && !p.Abandoned:
		return "given up"
	case p.Runs() && p.GaveUp:
		return "abandoned"
	case p.Runs() && t.Waiting == task.WaitDeps:
		return "of another task of its job, if that goes wrong"
	case p.Runs():
		return fmt.Sprintf("of another task of its job, since %s", c.When(p.Began))
	case p.Abandoned:
		return fmt.Sprintf("abandoned; the task would have ended %s", p.EndsAs)
	case p.GaveUp:
		return fmt.Sprintf("given up; the task would have ended %s", p.EndsAs)
	case p.NotBefore.After(c.Now):
		return fmt.Sprintf("not before %s, when a revoked lease ends; then it ends %s", c.When(p.NotBefore), p.EndsAs)
	default:
		return fmt.Sprintf("since %s; then it ends %s", c.When(p.Began), p.EndsAs)
	}
}

// actUndo adds the operator's actions for a task that is being undone, or whose undo was abandoned.
func (w *walk) actUndo(t *task.Task, asked bool) {
	p, name := t.Undo, Short(t)
	undo := "the undo of " + name
	if p.Runs() {
		undo = name
	}
	again := func(effect string) { w.add(on(t.ID, VerbRetry, effect).with(Args{Cleanup: true})) }
	if p.GaveUp {
		again("tries " + undo + " again")
		if p.Stands() {
			w.add(on(t.ID, VerbCancel, "records that an operator dealt with the effects that were not undone: "+name+" may be deleted then").with(Args{AbandonUndo: true}))
		}
		return
	}
	switch {
	case t.State == task.Blocked:
		again("tries " + undo + " again, once its program can do it")
	case t.State == task.Pending && asked && t.Waiting == task.WaitUndo && t.ReadyAt.After(w.Now) && !p.NotBefore.After(w.Now):
		again("tries " + undo + " now")
	case t.State == task.Running && asked && !p.Forced:
		w.add(on(t.ID, VerbCancel, "takes the lease of "+name+" away; its undo begins anew when that has ended").with(Args{Force: true}))
	}
	if asked {
		w.add(on(t.ID, VerbCancel, "gives "+undo+" up: what was not undone stays").with(Args{AbandonUndo: true}))
	}
}
