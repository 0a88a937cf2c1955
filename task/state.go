package task

// State is the state of a task. Stores keep it as this text.
type State string

// The states of a task.
const (
	Pending   State = "pending"   // waits: for a time, its needs, a key, a retry; see Waiting
	Ready     State = "ready"     // due now, claimable
	Running   State = "running"   // one attempt holds the lease
	Succeeded State = "succeeded" // terminal
	Failed    State = "failed"    // terminal; an operator may retry it
	Cancelled State = "cancelled" // terminal; an operator may retry it
	Blocked   State = "blocked"   // waits for a person
)

// States lists every state, in the order of a task's life.
func States() []State {
	return []State{Pending, Ready, Running, Succeeded, Failed, Cancelled, Blocked}
}

// Terminal reports whether a task in this state never moves by itself again.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Valid reports whether s is one of States.
func (s State) Valid() bool {
	_, ok := moves[s]
	return ok
}

// moves is the whole law of state changes; no other move exists.
var moves = map[State][]State{
	Pending:   {Ready, Running, Failed, Cancelled, Blocked}, // failed: its undo was abandoned
	Ready:     {Running, Pending, Cancelled, Blocked},
	Running:   {Succeeded, Failed, Cancelled, Blocked, Pending, Ready},
	Blocked:   {Pending, Ready, Failed, Cancelled},
	Failed:    {Pending, Ready}, // by an operator's retry only
	Cancelled: {Pending, Ready}, // by an operator's retry only
	Succeeded: {},
}

// CanMove reports whether a task may go from one state to the other.
func CanMove(from, to State) bool {
	for _, s := range moves[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Waiting says why a pending or blocked task does not run; empty in every
// other state.
type Waiting string

// The reasons to wait.
const (
	WaitNone        Waiting = ""
	WaitDelay       Waiting = "delay" // enqueued for later
	WaitDeps        Waiting = "deps"
	WaitRetry       Waiting = "retry"
	WaitRepair      Waiting = "repair"
	WaitManual      Waiting = "manual"
	WaitBudget      Waiting = "budget"
	WaitDeadline    Waiting = "deadline"
	WaitSleep       Waiting = "sleep"
	WaitSignal      Waiting = "signal"
	WaitChildren    Waiting = "children"
	WaitConcurrency Waiting = "concurrency"
	WaitRate        Waiting = "rate"
	WaitPaused      Waiting = "paused"
	WaitUndo        Waiting = "undo" // in its undo phase, also when it is due
)

// OnTasks reports whether a task that waits so goes on by the ends of other tasks.
func (w Waiting) OnTasks() bool { return w == WaitDeps || w == WaitChildren || w == WaitRepair }

// Waitings lists every reason to wait but WaitNone.
func Waitings() []Waiting {
	return []Waiting{
		WaitDelay, WaitDeps, WaitRetry, WaitRepair, WaitManual, WaitBudget, WaitDeadline, WaitSleep, WaitSignal, WaitChildren,
		WaitConcurrency, WaitRate, WaitPaused, WaitUndo,
	}
}

// ErrorKind classifies why a task or an attempt ended badly.
type ErrorKind string

// The closed set of error kinds.
const (
	KindNone             ErrorKind = ""
	KindHandler          ErrorKind = "handler_error"
	KindPanic            ErrorKind = "panic"
	KindTimeout          ErrorKind = "timeout"
	KindDecode           ErrorKind = "decode_error"
	KindValidation       ErrorKind = "validation_error"
	KindBudget           ErrorKind = "budget"
	KindDeadline         ErrorKind = "deadline"
	KindCancelled        ErrorKind = "cancelled"
	KindLeaseExpired     ErrorKind = "lease_expired"
	KindDependencyFailed ErrorKind = "dependency_failed"
	KindNotNeeded        ErrorKind = "not_needed"
	KindPoison           ErrorKind = "poison"
	KindInternal         ErrorKind = "internal"
	KindUndoFailed       ErrorKind = "undo_failed" // its undo was given up
	KindWorker           ErrorKind = "worker"      // its worker could not run it, another one may: of an attempt that was released
)

// ErrorKinds lists every kind but KindNone.
func ErrorKinds() []ErrorKind {
	return []ErrorKind{
		KindHandler, KindPanic, KindTimeout, KindDecode, KindValidation, KindBudget, KindDeadline, KindCancelled, KindLeaseExpired,
		KindDependencyFailed, KindNotNeeded, KindPoison, KindInternal, KindUndoFailed, KindWorker,
	}
}

// Outcome is what an attempt reported.
type Outcome string

// The outcomes of an attempt. OutcomeNone marks one that still runs.
const (
	OutcomeNone          Outcome = ""
	OutcomeSuccess       Outcome = "success"
	OutcomeFailure       Outcome = "failure"
	OutcomeBlocked       Outcome = "blocked"
	OutcomeSuspended     Outcome = "suspended"
	OutcomeCancelled     Outcome = "cancelled"
	OutcomeDecodeFailed  Outcome = "decode_failed"
	OutcomeDecompose     Outcome = "decompose"
	OutcomeAddDependency Outcome = "add_dependency"
	OutcomeReleased      Outcome = "released"   // given back unfinished: its worker stopped, or cannot run it (KindWorker)
	OutcomeLeaseLost     Outcome = "lease_lost" // written by the reaper, never by a worker

	OutcomeUndone     Outcome = "undone"      // nothing is left to undo
	OutcomeUndoFailed Outcome = "undo_failed" // a cleanup or an undo failed
)

// Counts reports whether an attempt that ended so counts against MaxAttempts.
// Suspended, blocked, released, lost, decode-failed attempts and errors of the
// engine itself do not.
func Counts(o Outcome, kind ErrorKind) bool {
	switch o {
	case OutcomeSuccess, OutcomeFailure, OutcomeCancelled:
		return kind != KindInternal
	}
	return false
}

// DecisionKind is what was chosen after an attempt that did not succeed.
type DecisionKind string

// The closed set of decisions.
const (
	DecideRetry         DecisionKind = "retry"
	DecideMarkDead      DecisionKind = "mark_dead"
	DecideBlock         DecisionKind = "block"
	DecideRepair        DecisionKind = "repair"
	DecideDecompose     DecisionKind = "decompose"
	DecideAddDependency DecisionKind = "add_dependency"
	DecideSucceed       DecisionKind = "succeed"
)

// PauseKind says what an operator paused.
type PauseKind string

// What can be paused. The narrowest pause of a task is the one that it shows: one
// of its own at any time, also while it runs, the others while it waits for them.
const (
	PauseNone  PauseKind = ""
	PauseTask  PauseKind = "task"
	PauseType  PauseKind = "type"
	PauseQueue PauseKind = "queue"
)
