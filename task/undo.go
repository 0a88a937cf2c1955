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
	EndsAs State     `json:"ends_as"`         // failed or cancelled; succeeded of an undo task, and see Runs
	Error  *Error    `json:"error,omitempty"` // the error with which the task ends
	Began  time.Time `json:"began"`

	// An operator had the undo tried again: tries of attempts up to Since no longer count.
	Since   int       `json:"since,omitempty"`
	Resumed time.Time `json:"resumed,omitzero"`

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

// Undoes returns the task whose steps the phase undoes, which an undo task has another one
// for; zero: its own.
func (p *UndoPhase) Undoes() ID {
	if p == nil {
		return ID{}
	}
	return p.Of
}

// UndoTask returns a draft of the task that undoes the steps of t, without an ID. It has no
// input: it takes the place of t, with the input and the steps that t has. One such task
// exists at a time.
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

// Stands reports whether the undo of a task was given up and no operator has accepted
// that: the task may not be deleted or forgotten.
func (p *UndoPhase) Stands() bool { return p != nil && p.GaveUp && !p.Abandoned }

// Runs reports whether the task is the undo of another one of its job: its handler does what
// is to be done, as an undo of a step does, and the task succeeds. The phase is there from
// the start, also while the task waits for its job to end.
func (p *UndoPhase) Runs() bool { return p != nil && p.EndsAs == Succeeded && p.Of.IsZero() }

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

// UndoPlan lists the effects of a task: those that are undone if it ends in any way but
// success, in that order, then those that stay, then those that were undone. It has no
// values.
type UndoPlan struct {
	TaskID  ID           `json:"task_id"`
	State   State        `json:"state"`
	Phase   *UndoPhase   `json:"phase,omitempty"` // left out: no undo phase has begun
	Effects []UndoEffect `json:"effects"`
}

// Open returns how many effects are to be undone, or stand because their undo was given up.
func (p *UndoPlan) Open() int {
	n := 0
	for i := range p.Effects {
		if p.Effects[i].Undo.open() {
			n++
		}
	}
	return n
}

// UndoEffect is what a step, a started task or a call did, in one round; or a point of no
// return, above the effects that it keeps.
type UndoEffect struct {
	Step   string      `json:"step"`
	Round  int         `json:"round,omitempty"` // how often the step was undone or skipped before
	Kind   StepKind    `json:"kind"`            // step, start, call or point
	Effect EffectState `json:"effect"`          // confirmed or unknown
	Undo   EffectUndo  `json:"undo"`            // declared, none, kept, undone, failing, given_up or skipped

	Tries int    `json:"tries,omitempty"` // of its undo that failed
	Error *Error `json:"error,omitempty"` // of the last of them, until the effect is undone

	// Key is the StepKey by which a partner knows the effect. It is left out for a step that
	// was taken over from another task, whose effect it is.
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"` // when the step began first
}

// EffectState says whether a step is known to have had its effect.
type EffectState string

// The states of effects.
const (
	EffectConfirmed EffectState = "confirmed" // the step completed
	EffectUnknown   EffectState = "unknown"   // it began, or returned an error: the effect may be there
)

// EffectUndo says what becomes, or became, of an effect.
type EffectUndo string

// What becomes of effects.
const (
	EffectDeclared EffectUndo = "declared" // it is undone if the task ends without success
	EffectNone     EffectUndo = "none"     // no undo is declared: it stays
	EffectKept     EffectUndo = "kept"     // it stays: a point of no return, or the task's success, came after it
	EffectUndone   EffectUndo = "undone"
	EffectFailing  EffectUndo = "failing"  // its undo failed, and is tried again
	EffectGivenUp  EffectUndo = "given_up" // it stands: the undo of the task was given up
	EffectSkipped  EffectUndo = "skipped"  // an operator gave its undo up
)

func (u EffectUndo) open() bool {
	return u == EffectDeclared || u == EffectFailing || u == EffectGivenUp
}
