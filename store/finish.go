package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Finish ends an attempt. Outcome and Decision, if the decider ran, determine the task's next state.
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
// The task fails with the error kind budget, and a decision mark_dead explains it, in two cases: a
// retry when the job has no attempts left (task.Budget.MaxTotalAttempts), and any outcome but success
// when the cancel kind of the task is budget. A job with a used-up total and unfinished tasks ends
// those tasks (ChoreSpent).
// unfinished ends them (ChoreSpent).
type Finish struct {
	Lease    task.Lease
	Outcome  task.Outcome
	Output   json.RawMessage // success; decompose with JoinComplete; decision succeed
	Error    *task.Error     // every outcome except suspended, released, decompose and add_dependency
	Decision *task.Decision  // the store fills in TaskID, AttemptNo, At, NextReadyAt and ChildIDs
	Delay    time.Duration   // of the retry
	WakeAt   time.Time       // suspended: an instant that Record returned; zero: only a completed wait wakes the task
	Waiting  task.Waiting    // suspended: sleep, signal or children; blocked by a decision: budget or manual (default)
	WakeSeq  int             // suspended: the task's WakeSeq at the claim; if it has grown since, the task is ready at once
	Progress *task.Progress  // last unwritten report

	// Children of a decompose, by outcome or decision. They belong to the task's job and end with its
	// deadline at the latest; the store sets their Node. They have neither needs nor idempotency keys.
	// A repeated report has the same IDs. The decision repair has one child and task.JoinRepair.
	Children []task.New
	Join     task.Join

	DependsOn task.ID // add_dependency, by outcome or decision: any task of the namespace

	Idle        bool          // the attempt recorded no step and had the same input as the previous one
	Elapsed     time.Duration // run time of the attempt
	CodeVersion int
	Handler     string // name of the handler that ran, or ""; kept with the attempt
	RouteReason string // reason for choosing Handler; kept with the attempt

	Events []EventRow // stored with the finish; at most MaxEvents

	StepsRun       []string // kept with the attempt
	StepsUnreached []string // kept with the attempt

	Notes map[string]string // kept with the attempt

	Unclean  bool // a cleanup of this attempt failed or could not run
	Panicked bool // the handler panicked

	// EndsAs is the EndsAs of the undo phase, set in every finish of an attempt in a phase. The
	// outcome is then one of: undone (all is undone); undo_failed (with Error; retried after Delay,
	// given up if Delay is negative); blocked or suspended with Waiting undo; released; or success
	// (the phase had no undo to run).
	EndsAs task.State
}

// Hash identifies the content of a finish: a repeated report of an attempt has the same hash (R8).
// Times and progress are not part of it.
func (f *Finish) Hash() string {
	b := make([]byte, 0, 256+len(f.Output))
	// Each text follows its length, so different contents never encode alike.
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
		// An empty Code adds no bytes: reports of older programs keep their hash.
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

// FinishResult answers one Finish. A repeated report (R8) returns the state of the first one.
type FinishResult struct {
	Err       error
	State     task.State    // after the finish
	Waiting   task.Waiting  // reason for State
	Job       task.JobState // new state of the job after the batch; "" if it is unchanged, or for a repeated report
	Overruled *Overruled    // nil: the store recorded the Finish as reported
}

// Overruled is the outcome that a store recorded in place of a Finish. A store overrules a Finish when the task
// was asked to end, its budget is used up, or its request cannot be met. It also does so when the task
// is undone before it ends, or ends with the verdict kept by its undo phase.
type Overruled struct {
	Outcome  task.Outcome      // of the attempt
	Decision task.DecisionKind // "" if no decision was made
	Error    *task.Error       // final error of the task, or of its undo phase; else that of the attempt; may be nil
	EndsAs   task.State        // of the new undo phase
}
