package event

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Ending describes the end of an attempt, or of a task without one, and the state of the
// task afterwards.
// [Ending.Event] returns the event of it: for engines as it happens, for readers from the
// rows of the task and from feeds. [EndingOf] returns the ending that an event tells of.
type Ending struct {
	Outcome  task.Outcome      // of the attempt, as recorded; "": no attempt ended, or it is not known
	Decision task.DecisionKind // "": none, or it is not known
	State    task.State        // of the task afterwards; "": it is not known any more
	Waiting  task.Waiting      // with it, or what the attempt asked to wait for

	Output   json.RawMessage // succeeded
	Error    *task.Error     // nil: none
	Allowed  bool            // failed: its job allows it
	Delay    time.Duration   // of a retry
	WakeAt   time.Time       // suspended; zero: no time ends the wait
	EndsAs   task.State      // of an undo phase that began
	Crash    bool            // lease_lost: it counts against the crash budget
	Duration time.Duration   // of the attempt
}

// endings is the table of outcome, decision and state to event. The first row that matches
// counts; an empty field of a row matches all.
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
	{outcome: task.OutcomeUndone, event: TaskSuspended{}}, // the undo is not complete, and tried again
	{outcome: task.OutcomeUndoFailed, event: TaskSuspended{}},

	{waiting: task.WaitUndo, event: TaskUndoing{}}, // any other outcome begins the phase

	{decision: task.DecideDecompose, event: TaskSuspended{}},
	{decision: task.DecideAddDependency, event: TaskSuspended{}},
	{decision: task.DecideRepair, event: TaskSuspended{}},
	{waiting: task.WaitChildren, event: TaskSuspended{}}, // from here on: the decision is not known
	{waiting: task.WaitDeps, event: TaskSuspended{}},
	{waiting: task.WaitRepair, event: TaskSuspended{}},
	{waiting: task.WaitSignal, event: TaskSuspended{}},
	{waiting: task.WaitSleep, event: TaskSuspended{}},

	{outcome: task.OutcomeCancelled, event: TaskCancelled{}}, // from here on: the state is not known any more
	{decision: task.DecideSucceed, event: TaskSucceeded{}},
	{decision: task.DecideMarkDead, event: TaskFailed{}},
	{decision: task.DecideBlock, event: TaskBlocked{}},

	{event: TaskRetrying{}},
}

// endEvent is an event that tells how an attempt ended.
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

// Event returns the event that tells of the ending, with a header.
func (e Ending) Event(h Header) Event { return e.find().tell(h, e) }

// Type returns the type of that event.
func (e Ending) Type() string { return e.find().Type() }

// Sequence returns the number of the event, by the epoch of the attempt's lease, or of the
// task if no attempt ended.
func (e Ending) Sequence(epoch int64) int64 {
	switch e.Outcome {
	case task.OutcomeLeaseLost:
		return SequenceWithoutLease(epoch, 0)
	case task.OutcomeNone: // after what its attempts told
		return SequenceWithoutLease(epoch, 1)
	}
	return LastSequence(epoch)
}

// Kind is that of the error.
func (e *Ending) Kind() task.ErrorKind { return e.failure().Kind }

// EndingOf returns the ending that an event tells of; false if no attempt ended with it.
func EndingOf(ev Event) (Ending, bool) {
	end, ok := ev.(endEvent)
	if !ok {
		return Ending{}, false
	}
	return end.ending(), true
}

// EndsAttempt reports whether an event tells how an attempt ended.
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

// waitsBy returns the reason for which a task waits after an outcome, or by a decision: also if the wait was
// over at once, or its state is not known any more.
var waitsBy = map[string]task.Waiting{
	string(task.OutcomeDecompose):     task.WaitChildren, // and the decision
	string(task.OutcomeAddDependency): task.WaitDeps,     // and the decision
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
	end.Outcome = task.OutcomeFailure // to wait was decided
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

// failure is the error, of which some events always have one.
func (e *Ending) failure() (err task.Error) {
	if e.Error != nil {
		err = *e.Error
	}
	return err
}
