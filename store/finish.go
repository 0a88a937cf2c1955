package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Finish is how an attempt ends. What the task becomes follows from Outcome
// and, where one was made, Decision:
//
//	success                         → succeeded, with Output
//	failure, blocked, decode_failed → as Decision says: retry (pending/retry, due after Delay),
//	                                  mark_dead (failed), block (blocked, for Waiting), succeed (succeeded),
//	                                  decompose and add_dependency as the outcomes of these names
//	failure with kind internal      → no Decision: pending/retry after Delay; with Delay < 0 failed
//	suspended                       → pending, for the reason in Waiting, until WakeAt (ready when that has passed) or
//	                                  until one of its waits is completed; ready if one was since the claim
//	cancelled                       → cancelled, with the kind of Error
//	decompose                       → pending/children until Children, which are stored with it, have ended; over a
//	                                  limit (task.MaxDepth, task.MaxChildren) failed, and no child is stored
//	released                        → ready at once, nothing counted
//	add_dependency                  → pending/deps until DependsOn has succeeded, ready if it has; cancelled with kind
//	                                  dependency_failed if it ended otherwise; failed if there is no such task, if that
//	                                  waits for this one, or if this one waited for it before
//
// A retry when the job has no attempt left (task.Budget.MaxTotalAttempts) is
// overruled, and so is whatever is no success when the task was asked to end with
// the cancel kind budget: the task fails with the error kind budget, which a
// decision mark_dead explains. A job whose total is used up while tasks of it are
// unfinished ends them (ChoreSpent).
type Finish struct {
	Lease    task.Lease
	Outcome  task.Outcome
	Output   json.RawMessage // success; decompose with JoinComplete; decision succeed
	Error    *task.Error     // every other outcome but suspended, released, decompose and add_dependency
	Decision *task.Decision  // TaskID, AttemptNo, At, NextReadyAt and ChildIDs are filled in by the store
	Delay    time.Duration   // of the retry
	WakeAt   time.Time       // suspended: an instant that Record gave; zero: only what it waits for wakes it
	Waiting  task.Waiting    // suspended: sleep, signal or children; decided to block: budget or (or none) manual
	WakeSeq  int             // suspended: the task's at the claim; if it has grown since, the task is ready at once
	Progress *task.Progress  // last report not yet written

	// Of a decompose, by outcome or decision. The children belong to the task's job, end with its deadline
	// at the latest, and get their Node from the store. They have neither needs nor
	// idempotency keys. The same report has the same IDs. The decision repair has one
	// child and task.JoinRepair.
	Children []task.New
	Join     task.Join

	DependsOn task.ID // add_dependency, by outcome or decision: any task of the namespace

	Idle        bool          // the attempt recorded no step and has no other input than the one before
	Elapsed     time.Duration // of the attempt
	CodeVersion int
	Handler     string // that ran, if it has a name; kept with the attempt
	RouteReason string // why that one; kept with the attempt

	Events []EventRow // stored with the end; at most MaxEvents

	StepsRun       []string // kept with the attempt
	StepsUnreached []string // kept with the attempt

	Notes map[string]string // kept with the attempt

	Unclean  bool // a cleanup of this attempt failed, or could not run
	Panicked bool // the handler did not return

	// EndsAs is set in every finish of an attempt in an undo phase: that of the phase.
	// Then the outcome is undone (all is undone), undo_failed (with Error; tried again
	// after Delay, given up if that is negative), blocked or suspended with Waiting
	// undo, released, or success (nothing was undone in the phase).
	EndsAs task.State
}

// Hash identifies the content of a finish: the same attempt reported twice
// has the same hash (R8). Times and progress do not count.
func (f *Finish) Hash() string {
	b := make([]byte, 0, 256+len(f.Output))
	// Lengths before texts, so that no two contents read the same.
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(string(f.Outcome))
	text(string(f.Output))
	if e := f.Error; e != nil {
		b = append(b, 1)
		for _, s := range []string{string(e.Kind), e.Message, e.Step, e.Stack} {
			text(s)
		}
		// Only then: reports of older programs keep their hash.
		if e.Code != "" {
			b = append(b, 3)
			text(e.Code)
		}
		if e.Ask != "" {
			b = append(b, 4)
			text(e.Ask)
		}
	}
	if d := f.Decision; d != nil {
		b = append(b, 2)
		text(string(d.Kind))
		text(d.Reason.Text)
	}
	if f.Join != task.JoinNone {
		b = append(b, 5)
		text(string(f.Join))
		for i := range f.Children {
			b = append(b, f.Children[i].ID[:]...)
		}
	}
	if !f.DependsOn.IsZero() {
		b = append(append(b, 6), f.DependsOn[:]...)
	}
	if f.Waiting == task.WaitSignal || f.Waiting == task.WaitChildren {
		b = append(b, 7)
		text(string(f.Waiting))
	}
	if f.EndsAs != "" {
		b = append(b, 8)
		text(string(f.EndsAs))
	}
	b = binary.AppendVarint(b, int64(f.Delay))
	b = binary.AppendVarint(b, f.WakeAt.UnixMicro())
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// FinishResult answers one Finish. Reported again (R8), the state is still the one
// that the attempt led to.
type FinishResult struct {
	Err       error
	State     task.State    // after the move
	Waiting   task.Waiting  // with it
	Job       task.JobState // that its job got by the batch; "": it kept its state, or the report was made before
	Overruled *Overruled    // nil: what the Finish says was recorded
}

// Overruled is what a store recorded of a Finish, and made of its task, other than that
// says: the task was asked to end, its budget is used up, it cannot have what it asked for,
// it is undone before it ends, or ends with the verdict that its undo phase kept.
type Overruled struct {
	Outcome  task.Outcome      // of the attempt
	Decision task.DecisionKind // "": none
	Error    *task.Error       // with which the task ended, or is to end; else that of the attempt; nil: none
	EndsAs   task.State        // of the undo phase that began
}
