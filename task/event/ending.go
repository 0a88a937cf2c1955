package event

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Ending describes the end of an attempt, or of a task without an attempt, and the resulting state of the task.
// [Ending.Event] returns the event for it. Engines use it when the attempt ends; readers use it for the rows of a
// task and for feeds. [EndingOf] is the inverse.
type Ending struct {
	Outcome  task.Outcome      // of the attempt, as recorded; "": no attempt ended, or unknown
	Decision task.DecisionKind // "": no decision, or unknown
	State    task.State        // of the task afterwards; "": no longer known
	Waiting  task.Waiting      // waiting reason of State, or the wait that the attempt asked for

	Output   json.RawMessage // of a succeeded task
	Error    *task.Error     // nil: no error
	Allowed  bool            // failed: the job allows the failure
	Delay    time.Duration   // of a retry
	WakeAt   time.Time       // suspended; zero: the wait has no time limit
	EndsAs   task.State      // of an undo phase that begins
	Crash    bool            // lease_lost: counts against the crash budget
	Duration time.Duration   // of the attempt
}

// endings maps outcome, decision and state to an event. The first matching row applies; an empty field matches
// everything.
var endings = []struct {
	outcome  task.Outcome
	decision task.DecisionKind
	state    task.State
	waiting  task.Waiting
	event    endEvent
}{
	{outcome: task.OutcomeLeaseLost, event: TaskLeaseLost{}},
	{outcome: task.OutcomeReleased, event: TaskReleased{}},

	{state: task.Succeeded, event: TaskSucceeded{}},
	{state: task.Failed, event: TaskFailed{}},
	{state: task.Cancelled, event: TaskCancelled{}},
	{state: task.Blocked, event: TaskBlocked{}},

	{outcome: task.OutcomeSuspended, event: TaskSuspended{}},
	{outcome: task.OutcomeDecompose, event: TaskSuspended{}},
	{outcome: task.OutcomeAddDependency, event: TaskSuspended{}},
	{outcome: task.OutcomeUndone, event: TaskSuspended{}}, // the undo is incomplete and will be retried
	{outcome: task.OutcomeUndoFailed, event: TaskSuspended{}},

	{waiting: task.WaitUndo, event: TaskUndoing{}}, // any other outcome begins the undo phase

	{decision: task.DecideDecompose, event: TaskSuspended{}},
	{decision: task.DecideAddDependency, event: TaskSuspended{}},
	{decision: task.DecideRepair, event: TaskSuspended{}},
	{waiting: task.WaitChildren, event: TaskSuspended{}}, // from here on: the decision is unknown
	{waiting: task.WaitDeps, event: TaskSuspended{}},
	{waiting: task.WaitRepair, event: TaskSuspended{}},
	{waiting: task.WaitSignal, event: TaskSuspended{}},
	{waiting: task.WaitSleep, event: TaskSuspended{}},

	{outcome: task.OutcomeCancelled, event: TaskCancelled{}}, // from here on: the state is unknown
	{decision: task.DecideSucceed, event: TaskSucceeded{}},
	{decision: task.DecideMarkDead, event: TaskFailed{}},
	{decision: task.DecideBlock, event: TaskBlocked{}},

	{event: TaskRetrying{}},
}

// endEvent is an event that reports the end of an attempt.
type endEvent interface {
	Event
	tell(Header, Ending) Event
	ending() Ending
}

func (e *Ending) find() endEvent {
	for i := range endings {
		r := &endings[i]
		if (r.outcome == "" || r.outcome == e.Outcome) && (r.decision == "" || r.decision == e.Decision) &&
			(r.state == "" || r.state == e.State) && (r.waiting == "" || r.waiting == e.Waiting) {
			return r.event
		}
	}
	return TaskRetrying{}
}

// Event returns the event that reports the ending.
func (e Ending) Event(h Header) Event { return e.find().tell(h, e) }

// Type returns the type of that event.
func (e Ending) Type() string { return e.find().Type() }

// Sequence returns the sequence number of the event. epoch is that of the attempt's lease, or of the task if no
// attempt ended.
func (e Ending) Sequence(epoch int64) int64 {
	switch e.Outcome {
	case task.OutcomeLeaseLost:
		return SequenceWithoutLease(epoch, 0)
	case task.OutcomeNone: // after the events of its attempts
		return SequenceWithoutLease(epoch, 1)
	}
	return LastSequence(epoch)
}

// Kind returns the kind of the error.
func (e *Ending) Kind() task.ErrorKind { return e.failure().Kind }

// EndingOf returns the ending that an event reports, or false if the event does not end an attempt.
func EndingOf(ev Event) (Ending, bool) {
	end, ok := ev.(endEvent)
	if !ok {
		return Ending{}, false
	}
	return end.ending(), true
}

// EndsAttempt reports whether an event ends an attempt.
func EndsAttempt(ev Event) bool {
	_, ok := ev.(endEvent)
	return ok
}

func (TaskSucceeded) tell(h Header, e Ending) Event {
	return TaskSucceeded{Header: h, Output: e.Output, Duration: e.Duration}
}

func (ev TaskSucceeded) ending() Ending {
	return Ending{Outcome: task.OutcomeSuccess, State: task.Succeeded, Output: ev.Output, Duration: ev.Duration}
}

func (TaskFailed) tell(h Header, e Ending) Event {
	return TaskFailed{Header: h, Error: e.failure(), Allowed: e.Allowed, Duration: e.Duration}
}

func (ev TaskFailed) ending() Ending {
	return Ending{Outcome: task.OutcomeFailure, Decision: task.DecideMarkDead, State: task.Failed, Error: &ev.Error, Allowed: ev.Allowed, Duration: ev.Duration}
}

func (TaskRetrying) tell(h Header, e Ending) Event {
	return TaskRetrying{Header: h, Error: e.failure(), Delay: e.Delay, Duration: e.Duration}
}

func (ev TaskRetrying) ending() Ending {
	return Ending{Outcome: task.OutcomeFailure, Decision: task.DecideRetry, State: task.Pending, Error: &ev.Error, Delay: ev.Delay, Duration: ev.Duration}
}

func (TaskSuspended) tell(h Header, e Ending) Event {
	why := cmp.Or(e.Waiting, waitsBy[string(e.Outcome)], waitsBy[string(e.Decision)])
	return TaskSuspended{Header: h, Waiting: why, WakeAt: e.WakeAt, Error: e.Error, Duration: e.Duration}
}

// waitsBy maps an outcome or a decision to the waiting reason. It also applies if the wait is already over or the
// state is no longer known.
var waitsBy = map[string]task.Waiting{
	string(task.OutcomeDecompose):     task.WaitChildren, // also a decision
	string(task.OutcomeAddDependency): task.WaitDeps,     // also a decision
	string(task.OutcomeUndone):        task.WaitUndo,
	string(task.OutcomeUndoFailed):    task.WaitUndo,
	string(task.DecideRepair):         task.WaitRepair,
}

func (ev TaskSuspended) ending() Ending {
	end := Ending{Outcome: task.OutcomeSuspended, State: task.Pending, Waiting: ev.Waiting, WakeAt: ev.WakeAt, Error: ev.Error, Duration: ev.Duration}
	switch {
	case ev.Error == nil:
		return end
	case ev.Waiting == task.WaitUndo:
		end.Outcome = task.OutcomeUndoFailed
		return end
	}
	end.Outcome = task.OutcomeFailure // the decision was to wait
	switch end.Decision = task.DecideDecompose; ev.Waiting {
	case task.WaitDeps:
		end.Decision = task.DecideAddDependency
	case task.WaitRepair:
		end.Decision = task.DecideRepair
	}
	return end
}

func (TaskUndoing) tell(h Header, e Ending) Event {
	return TaskUndoing{Header: h, Error: e.failure(), EndsAs: e.EndsAs, Duration: e.Duration}
}

func (ev TaskUndoing) ending() Ending {
	end := Ending{Outcome: task.OutcomeFailure, State: task.Pending, Waiting: task.WaitUndo, Error: &ev.Error, EndsAs: ev.EndsAs, Duration: ev.Duration}
	if ev.EndsAs == task.Cancelled {
		end.Outcome = task.OutcomeCancelled
	}
	return end
}

func (TaskBlocked) tell(h Header, e Ending) Event {
	return TaskBlocked{Header: h, Error: e.failure(), Duration: e.Duration}
}

func (ev TaskBlocked) ending() Ending {
	return Ending{Outcome: task.OutcomeBlocked, Decision: task.DecideBlock, State: task.Blocked, Error: &ev.Error, Duration: ev.Duration}
}

func (TaskCancelled) tell(h Header, e Ending) Event {
	return TaskCancelled{Header: h, Error: e.failure(), Duration: e.Duration}
}

func (ev TaskCancelled) ending() Ending {
	return Ending{Outcome: task.OutcomeCancelled, State: task.Cancelled, Error: &ev.Error, Duration: ev.Duration}
}

func (TaskReleased) tell(h Header, e Ending) Event {
	return TaskReleased{Header: h, Error: e.Error, Duration: e.Duration}
}

func (ev TaskReleased) ending() Ending {
	return Ending{Outcome: task.OutcomeReleased, State: task.Ready, Error: ev.Error, Duration: ev.Duration}
}

func (TaskLeaseLost) tell(h Header, e Ending) Event {
	return TaskLeaseLost{Header: h, State: e.State, Crash: e.Crash, Duration: e.Duration}
}

func (ev TaskLeaseLost) ending() Ending {
	return Ending{
		Outcome: task.OutcomeLeaseLost, State: ev.State, Crash: ev.Crash, Duration: ev.Duration,
		Error: &task.Error{Kind: task.KindLeaseExpired, Message: "the lease was lost"},
	}
}

// failure returns the error, or the zero Error without one.
func (e *Ending) failure() (err task.Error) {
	if e.Error != nil {
		err = *e.Error
	}
	return err
}
