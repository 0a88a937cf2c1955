package task

// State is the state of a task. Stores keep it as this text.
type State string

// The states of a task.
const (
	Pending   State = "pending"   // waits for a time, its needs, a key or a retry; see Waiting
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

// Terminal reports whether a task in this state never changes state without an operator.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Valid reports whether s is one of States.
func (s State) Valid() bool {
	_, ok := moves[s]
	return ok
}

// moves lists the legal state transitions.
var moves = map[State][]State{
	Pending:   {Ready, Running, Failed, Cancelled, Blocked}, // to failed: its undo was abandoned
	Ready:     {Running, Pending, Cancelled, Blocked},
	Running:   {Succeeded, Failed, Cancelled, Blocked, Pending, Ready},
	Blocked:   {Pending, Ready, Failed, Cancelled},
	Failed:    {Pending, Ready}, // only by an operator's retry
	Cancelled: {Pending, Ready}, // only by an operator's retry
	Succeeded: {},
}

// CanMove reports whether the transition from one state to the other is legal.
func CanMove(from, to State) bool {
	for _, s := range moves[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Waiting is the reason why a pending or blocked task does not run. It is empty in every other state.
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

// OnTasks reports whether the end of other tasks ends the wait.
func (w Waiting) OnTasks() bool { return w == WaitDeps || w == WaitChildren || w == WaitRepair }

// Waitings lists every reason to wait but WaitNone.
func Waitings() []Waiting {
	return []Waiting{
		WaitDelay, WaitDeps, WaitRetry, WaitRepair, WaitManual, WaitBudget, WaitDeadline, WaitSleep, WaitSignal, WaitChildren,
		WaitConcurrency, WaitRate, WaitPaused, WaitUndo,
	}
}

// ErrorKind classifies the failure of a task or an attempt.
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
	KindWorker           ErrorKind = "worker"      // of a released attempt: its worker could not run the task, another worker may
)

// ErrorKinds lists every kind but KindNone.
func ErrorKinds() []ErrorKind {
	return []ErrorKind{
		KindHandler, KindPanic, KindTimeout, KindDecode, KindValidation, KindBudget, KindDeadline, KindCancelled, KindLeaseExpired,
		KindDependencyFailed, KindNotNeeded, KindPoison, KindInternal, KindUndoFailed, KindWorker,
	}
}

// Outcome is the result that an attempt reported.
type Outcome string

// The outcomes of an attempt. OutcomeNone marks a running attempt.
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
	OutcomeReleased      Outcome = "released"   // given back unfinished: its worker stopped or cannot run it (KindWorker)
	OutcomeLeaseLost     Outcome = "lease_lost" // written by the reaper, never by a worker

	OutcomeUndone     Outcome = "undone"      // everything is undone
	OutcomeUndoFailed Outcome = "undo_failed" // a cleanup or an undo failed
)

// Counts reports whether an attempt with this outcome counts against MaxAttempts. Suspended, blocked, released, lost
// and decode-failed attempts and internal errors of the engine do not count.
func Counts(o Outcome, kind ErrorKind) bool {
	switch o {
	case OutcomeSuccess, OutcomeFailure, OutcomeCancelled:
		return kind != KindInternal
	}
	return false
}

// DecisionKind is the action chosen after an attempt that did not succeed.
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

// PauseKind is the scope of a pause.
type PauseKind string

// The scopes of a pause. A task shows its narrowest pause: a pause of the task itself at any time, even while it
// runs, the others only while the task waits for them.
const (
	PauseNone  PauseKind = ""
	PauseTask  PauseKind = "task"
	PauseType  PauseKind = "type"
	PauseQueue PauseKind = "queue"
)
