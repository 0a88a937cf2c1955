package rules

import (
	"encoding/json"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Forgotten stands in place of a text that was erased.
const Forgotten = "[forgotten]"

// CheckForget refuses to forget a task that has not ended, and one whose children
// are still being stored (drafts).
func CheckForget(id task.ID, s task.State, drafts bool) error {
	switch {
	case !s.Terminal():
		return refuse(id, s, "only tasks that ended can be forgotten: cancel it first")
	case drafts:
		return refuse(id, s, "but its children are still being stored, try again in a moment")
	}
	return nil
}

// CheckForgotten refuses to start a task again that was forgotten.
func CheckForgotten(id task.ID, s task.State, forgotten bool) error {
	if !forgotten {
		return nil
	}
	return refuse(id, s, "but it was forgotten: its input and the values of its steps were erased")
}

// ForgetError returns what stays of an error: its kind, and where it happened. nil
// stays nil.
func ForgetError(e *task.Error) *task.Error {
	if e == nil {
		return nil
	}
	return &task.Error{Kind: e.Kind, Message: Forgotten, Step: e.Step, Ask: e.Ask}
}

// ForgetReason returns what stays of the evidence behind a decision: who decided, and
// the counters.
func ForgetReason(r *task.Reason) task.Reason {
	kept := task.Reason{Policy: r.Policy, Version: r.Version, Text: Forgotten, Said: r.Said, Asked: r.Asked}
	if r.Fallback != "" {
		kept.Fallback = Forgotten
	}
	return kept
}

// ForgetAttempt erases the texts of an attempt, and the hash of how it ended, by which
// a short output could be guessed.
func ForgetAttempt(a *task.Attempt) {
	a.Error = ForgetError(a.Error)
	if a.OutcomeHash != "" { // that there is one says that its worker reported it
		a.OutcomeHash = Forgotten
	}
	if a.RouteReason != "" {
		a.RouteReason = Forgotten
	}
	a.Notes = nil
}

// ForgetTask erases what the row of a task has of values and texts.
func ForgetTask(t *task.Task) {
	t.Forgotten, t.ValuesDropped = true, true
	t.Input, t.Output, t.UnblockInput, t.UnblockFor = nil, nil, nil, ""
	t.Progress, t.Metadata, t.Error = nil, nil, ForgetError(t.Error)
	if t.Undo = t.Undo.Clone(); t.Undo != nil {
		t.Undo.Error = ForgetError(t.Undo.Error)
	}
}

// ForgetMeta returns what stays of the metadata of a job whose tasks are all forgotten: what
// the command keeps there to know its file, without the params that it was given.
func ForgetMeta(meta map[string]string) map[string]string {
	left := make(map[string]string, len(meta))
	for k, v := range meta {
		if strings.HasPrefix(k, task.MetaPrefix) && k != task.MetaParams {
			left[k] = v
		}
	}
	return left
}

// ForgetAudit erases the hashes of inputs from the note of a repair, by which a short
// input could be guessed. It reports whether it did.
func ForgetAudit(verb string, reason *string) bool {
	if verb != RepairVerb || *reason == Forgotten {
		return false
	}
	*reason = Forgotten
	return true
}

// ForgetStep erases what a step gave and said.
func ForgetStep(s *task.Step) { s.Value, s.Error = nil, ForgetError(s.Error) }

// ForgetSignal erases what a signal said.
func ForgetSignal(s *task.Signal) { s.Payload = json.RawMessage(nil) }

// ForgetEdge erases what an edge keeps of the error of the task that it names.
func ForgetEdge(e *store.EdgeRow) {
	if e.EndedError != nil {
		e.EndedError = &task.Error{Kind: e.EndedError.Kind, Message: Forgotten}
	}
}
