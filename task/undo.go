package task

import (
	"strconv"
	"time"
)

// UndoState says whether a step is to be undone when its task ends without success.
type UndoState string

// The states of a step's undo.
const (
	UndoNone    UndoState = ""        // the step has no undo
	UndoOpen    UndoState = "open"    // it is to be undone
	UndoUndone  UndoState = "undone"  // it was; the step counts as never run
	UndoSkipped UndoState = "skipped" // an operator gave its undo up; the step counts as never run
	UndoKept    UndoState = "kept"    // a point of no return came after it
)

// UndoStates lists every state but UndoNone. Stores may number them by it, from 1:
// new ones come last.
func UndoStates() []UndoState { return []UndoState{UndoOpen, UndoUndone, UndoSkipped, UndoKept} }

// UndoPhase is the time between the verdict on a task and its end, in which its
// cleanups and undos run. Until it is blocked or gives up, the task shows the error with
// which it ends.
type UndoPhase struct {
	EndsAs State     `json:"ends_as"`         // failed or cancelled
	Error  *Error    `json:"error,omitempty"` // the error with which the task ends
	Began  time.Time `json:"began"`

	Since   int  `json:"since,omitempty"`   // tries of attempts up to this number no longer count
	Crashes int  `json:"crashes,omitempty"` // leases lost in a row to stopped processes
	Forced  bool `json:"forced,omitempty"`  // a forced cancel began it, or came meanwhile

	// HoldsKey: the task counts as a holder of its concurrency key while it does not run.
	HoldsKey bool `json:"holds_key,omitempty"`

	// The attempt whose lease was revoked may run until that ends: no undo begins before.
	Hold      LeaseID   `json:"hold,omitzero"`
	NotBefore time.Time `json:"not_before,omitzero"`

	GaveUp    bool `json:"gave_up,omitempty"`   // the task failed with KindUndoFailed
	Abandoned bool `json:"abandoned,omitempty"` // an operator gave the undo up, or accepted that it was given up
	Of        ID   `json:"of,omitzero"`         // of an undo task: the child whose steps it undoes
}

// Stands reports whether the undo of a task was given up and no operator has accepted
// that: the task may not be deleted or forgotten.
func (p *UndoPhase) Stands() bool { return p != nil && p.GaveUp && !p.Abandoned }

// Clone returns a copy that shares nothing with p; nil for nil.
func (p *UndoPhase) Clone() *UndoPhase {
	if p == nil {
		return nil
	}
	c := *p
	if p.Error != nil {
		e := *p.Error
		c.Error = &e
	}
	return &c
}

// HoldsKey reports whether the task counts as a holder of its concurrency key.
func (t *Task) HoldsKey() bool {
	return t.ConcurrencyKey != "" && (t.State == Running || t.State == Pending && t.Undo != nil && t.Undo.HoldsKey)
}

// DispatchKey is the concurrency key that a claim of the task, which does not run, asks
// for: none, if the task holds its key already.
func (t *Task) DispatchKey() string {
	if t.State != Running && t.HoldsKey() {
		return ""
	}
	return t.ConcurrencyKey
}

// StepKey is the key by which a partner recognizes a step that it has seen: the same in every
// attempt. A step that was undone has another one when it runs again.
func StepKey(id ID, step string, round int) string {
	key := id.String() + ":" + step
	if round > 0 {
		key += "#" + strconv.Itoa(round)
	}
	return key
}

// UndoKey is the key of the undo of a step, the same in every try.
func UndoKey(id ID, step string, round int) string {
	return id.String() + ":" + step + "#" + strconv.Itoa(round) + "/undo"
}
