package rules

import (
	"encoding/json"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Forgotten replaces an erased text.
const Forgotten = "[forgotten]"

// CheckForget refuses to forget an unfinished task, and a task whose children are still being
// stored (drafts).
func CheckForget(id task.ID, s task.State, drafts bool) error {
	switch {
	case !s.Terminal():
		return refuse(id, s, "only tasks that ended can be forgotten: cancel it first")
	case drafts:
		return refuse(id, s, "but its children are still being stored, try again in a moment")
	}
	return nil
}

// CheckForgotten refuses to start a forgotten task again.
func CheckForgotten(id task.ID, s task.State, forgotten bool) error {
	if !forgotten {
		return nil
	}
	return refuse(id, s, "but it was forgotten: its input and the values of its steps were erased")
}

// ForgetError returns the remainder of an erased error: its kind and place. It returns nil for
// nil.
func ForgetError(e *task.Error) *task.Error {
	if e == nil {
		return nil
	}
	return &task.Error{Kind: e.Kind, Message: Forgotten, Step: e.Step, Ask: e.Ask}
}

// ForgetReason returns the remainder of an erased decision reason: the policy and its
// counters.
func ForgetReason(r *task.Reason) task.Reason {
	kept := task.Reason{Policy: r.Policy, Version: r.Version, Text: Forgotten, Said: r.Said, Asked: r.Asked}
	if r.Fallback != "" {
		kept.Fallback = Forgotten
	}
	return kept
}

// ForgetAttempt erases the texts of an attempt and its outcome hash, because a short output
// could be guessed from the hash.
func ForgetAttempt(a *task.Attempt) {
	a.Error = ForgetError(a.Error)
	if a.OutcomeHash != "" { // a non-empty hash says that the worker reported the end
		a.OutcomeHash = Forgotten
	}
	if a.RouteReason != "" {
		a.RouteReason = Forgotten
	}
	a.Notes = nil
}

// ForgetTask erases the values and texts of a task's row.
func ForgetTask(t *task.Task) {
	t.Forgotten, t.ValuesDropped = true, true
	t.Input, t.Output, t.UnblockInput, t.UnblockFor = nil, nil, nil, ""
	t.Progress, t.Metadata, t.Error = nil, nil, ForgetError(t.Error)
	if t.Undo = t.Undo.Clone(); t.Undo != nil {
		t.Undo.Error = ForgetError(t.Undo.Error)
	}
}

// ForgetMeta returns the remaining metadata of a job whose tasks are all forgotten: the
// entries by which the command finds its file, without its params.
func ForgetMeta(meta map[string]string) map[string]string {
	left := make(map[string]string, len(meta))
	for k, v := range meta {
		if strings.HasPrefix(k, task.MetaPrefix) && k != task.MetaParams {
			left[k] = v
		}
	}
	return left
}

// ForgetAudit erases the reason of a repair, because a short input could be guessed from the
// hashes in it. It reports whether it changed the reason.
func ForgetAudit(verb string, reason *string) bool {
	if verb != RepairVerb || *reason == Forgotten {
		return false
	}
	*reason = Forgotten
	return true
}

// ForgetStep erases the value and the error text of a step.
func ForgetStep(s *task.Step) { s.Value, s.Error = nil, ForgetError(s.Error) }

// ForgetSignal erases the payload of a signal.
func ForgetSignal(s *task.Signal) { s.Payload = json.RawMessage(nil) }

// ForgetEdge erases the error text that an edge keeps of its need.
func ForgetEdge(e *store.EdgeRow) {
	if e.EndedError != nil {
		e.EndedError = &task.Error{Kind: e.EndedError.Kind, Message: Forgotten}
	}
}
