package task

import (
	"strconv"
	"time"
)

// UndoState is the undo state of a step: whether the step is undone when its task ends without success.
type UndoState string

// The states of a step's undo.
const (
	UndoNone    UndoState = ""        // the step has no undo
	UndoOpen    UndoState = "open"    // will be undone
	UndoUndone  UndoState = "undone"  // undone; the step counts as never run
	UndoSkipped UndoState = "skipped" // an operator skipped its undo; the step counts as never run
	UndoKept    UndoState = "kept"    // kept because of a later point of no return
)

// UndoStates lists every state but UndoNone. Stores may number the states by their position, from 1: append new
// states.
func UndoStates() []UndoState { return []UndoState{UndoOpen, UndoUndone, UndoSkipped, UndoKept} }

// UndoPhase runs the cleanups and undos of a task, from the final decision about the task to its end. Until the phase
// blocks or gives up, the task shows the error with which it will end.
type UndoPhase struct {
	EndsAs State     `json:"ends_as"`         // failed or cancelled; succeeded for an undo task and where Runs reports true
	Error  *Error    `json:"error,omitempty"` // the final error of the task
	Began  time.Time `json:"began"`

	// Since is set by an operator's retry of the undo: tries of attempts up to Since no longer count.
	Since   int       `json:"since,omitempty"`
	Resumed time.Time `json:"resumed,omitzero"`

	Crashes int  `json:"crashes,omitempty"` // consecutive leases lost to stopped processes
	Forced  bool `json:"forced,omitempty"`  // a forced cancel began the phase or came during it

	// HoldsKey: the task occupies its concurrency key while it does not run.
	HoldsKey bool `json:"holds_key,omitempty"`

	// Hold is a revoked lease whose attempt may still run. No undo begins before it ends.
	Hold      LeaseID   `json:"hold,omitzero"`
	NotBefore time.Time `json:"not_before,omitzero"`

	GaveUp    bool `json:"gave_up,omitempty"`   // the task failed with KindUndoFailed
	Abandoned bool `json:"abandoned,omitempty"` // an operator abandoned the undo or accepted its failure
	Of        ID   `json:"of,omitzero"`         // of an undo task: the child whose steps it undoes
}

// Undoes returns the other task whose steps the phase undoes, if this is an undo task. Zero means the task itself.
func (p *UndoPhase) Undoes() ID {
	if p == nil {
		return ID{}
	}
	return p.Of
}

// UndoTask returns a draft, without an ID, of the task that undoes the steps of t. The draft has no input: the undo
// task runs with the input and the steps of t. At most one such task exists at a time.
func (t *Task) UndoTask() New {
	n := t.Again()
	n.Input, n.Expire, n.Node = []byte("null"), nil, t.Node
	n.AllowFailure, n.MaxCost = t.AllowFailure, 0
	n.UndoOf, n.IdempotencyKey = t.ID, "weaver.undo:"+t.ID.String()
	if t.Node != "" {
		n.Node += "/undo"
	}
	return n
}

// Stands reports whether the undo of a task was given up and no operator has accepted that. Such a task cannot be
// deleted or forgotten.
func (p *UndoPhase) Stands() bool { return p != nil && p.GaveUp && !p.Abandoned }

// Runs reports whether the task is the undo of another task of its job. Its handler is the undo function, as an undo
// of a step is, and the task can succeed. The phase exists from the start, also while the task waits for its job to
// end.
func (p *UndoPhase) Runs() bool { return p != nil && p.EndsAs == Succeeded && p.Of.IsZero() }

// Clone returns a deep copy of p, or nil for nil.
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

// HoldsKey reports whether the task occupies its concurrency key.
func (t *Task) HoldsKey() bool {
	return t.ConcurrencyKey != "" && (t.State == Running || t.State == Pending && t.Undo != nil && t.Undo.HoldsKey)
}

// DispatchKey returns the concurrency key that a claim of the waiting task must acquire, or "" if the task already
// holds its key.
func (t *Task) DispatchKey() string {
	if t.State != Running && t.HoldsKey() {
		return ""
	}
	return t.ConcurrencyKey
}

// StepKey returns the key by which an external service deduplicates a step: the same in every attempt. A step that
// runs again after its undo has a new key.
func StepKey(id ID, step string, round int) string {
	key := id.String() + ":" + step
	if round > 0 {
		key += "#" + strconv.Itoa(round)
	}
	return key
}

// UndoKey returns the key by which an external service deduplicates the undo of a step: the same in
// every try. round is the number of earlier undos or skips of the step.
func UndoKey(id ID, step string, round int) string {
	return id.String() + ":" + step + "#" + strconv.Itoa(round) + "/undo"
}

// UndoPlan lists the effects of a task, without values. The effects to undo if the task ends without success come
// first, in undo order, then the effects that stay, then the undone effects.
type UndoPlan struct {
	TaskID  ID           `json:"task_id"`
	State   State        `json:"state"`
	Phase   *UndoPhase   `json:"phase,omitempty"` // omitted until the undo phase begins
	Effects []UndoEffect `json:"effects"`
}

// Open returns the number of effects that are still to be undone, or remain because their undo was given up.
func (p *UndoPlan) Open() int {
	n := 0
	for i := range p.Effects {
		if p.Effects[i].Undo.open() {
			n++
		}
	}
	return n
}

// UndoEffect is the effect of a step, a started task or a call in one round. It can also be a point of no return,
// listed above the effects that it keeps.
type UndoEffect struct {
	Step   string      `json:"step"`
	Round  int         `json:"round,omitempty"` // number of earlier undos or skips of the step
	Kind   StepKind    `json:"kind"`            // step, start, call or point
	Effect EffectState `json:"effect"`          // confirmed or unknown
	Undo   EffectUndo  `json:"undo"`            // declared, none, kept, undone, failing, given_up or skipped

	Tries int    `json:"tries,omitempty"` // failed tries of its undo
	Error *Error `json:"error,omitempty"` // of the last failed try, until the effect is undone

	// Key is the StepKey by which an external service identifies the effect. It is empty for a step taken over from
	// another task, to which the effect belongs.
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"` // when the step first began
}

// EffectState tells whether the effect of a step is known to have happened.
type EffectState string

// The states of effects.
const (
	EffectConfirmed EffectState = "confirmed" // the step completed
	EffectUnknown   EffectState = "unknown"   // it began or returned an error: the effect may exist
)

// EffectUndo is the undo state of an effect.
type EffectUndo string

// The undo states of effects.
const (
	EffectDeclared EffectUndo = "declared" // undone if the task ends without success
	EffectNone     EffectUndo = "none"     // has no undo: the effect stays
	EffectKept     EffectUndo = "kept"     // stays because of a later point of no return or the task's success
	EffectUndone   EffectUndo = "undone"
	EffectFailing  EffectUndo = "failing"  // its undo failed and will be retried
	EffectGivenUp  EffectUndo = "given_up" // remains: the undo of the task was given up
	EffectSkipped  EffectUndo = "skipped"  // an operator skipped its undo
)

func (u EffectUndo) open() bool {
	return u == EffectDeclared || u == EffectFailing || u == EffectGivenUp
}
