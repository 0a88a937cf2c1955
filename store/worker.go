package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// WorkerID is a random id of one engine in one process.
type WorkerID string

// WorkerInfo announces a worker.
type WorkerInfo struct {
	ID   WorkerID
	Name string // host:pid, for people
	TTL  time.Duration
}

// ClaimRequest asks for work.
type ClaimRequest struct {
	Worker  WorkerID
	Name    string       // kept as leased_by
	LeaseID task.LeaseID // fresh for every call
	TTL     time.Duration
	Limit   int            // free slots
	Types   map[string]int // task types this worker knows, each with its code version
	Queues  map[string]int // free slots per queue; nil: every queue, up to Limit
	IDs     []task.ID      // only these (hints); nil: any
	Again   bool           // look up what LeaseID already claimed

	// Wait lets the store hold a call that finds nothing due, for at most that
	// long, to answer it from the very transaction that makes something due.
	// Such a call ends early, with nothing, when Wake receives or its context
	// ends. A store may answer at once instead.
	Wait time.Duration
	Wake <-chan struct{}

	// Suspects (R7): a task with crash_count ≥ 2 is claimed only while the
	// worker runs fewer of them than its company, max(1, Slots/8 >>
	// task.SuspectLosses), and than that of every suspect that runs.
	Slots           int // all slots of the worker
	Quarantined     int // suspects it runs now
	QuarantineLimit int // the smallest Claimed.Company of those; 0: no limit
}

// ClaimResult is what a claim got.
type ClaimResult struct {
	Tasks  []Claimed
	Now    time.Time     // the store's clock at the claim
	Next   time.Duration // until the next dispatch row of these lanes is due; 0: more are due now; <0: none known
	Waited time.Duration // how long the call waited, by Wait, before this claim; 0: it was answered at once
}

// Claimed is one leased task, with what earlier attempts recorded.
type Claimed struct {
	Task            task.Task // State running, AttemptNo already raised
	Lease           task.Lease
	Steps           []task.Step   // completed and failed, by index; nil on a first attempt
	Quarantined     bool          // counts as a suspect while it runs
	QuarantineLimit int           // of a suspect: how many may run while it does, itself among them
	TimeLeft        time.Duration // to the deadline; 0: no deadline
}

// HeartbeatRequest extends leases.
type HeartbeatRequest struct {
	Worker WorkerID
	TTL    time.Duration
	Leases []task.Lease
}

// Beat answers for one lease: at most one of the fields is set.
type Beat struct {
	Lost   bool           // another epoch stands: the lease is gone
	Retry  bool           // could not be told now: ask again within a second
	Cancel task.ErrorKind // extended, and the task is asked to end: cancelled or deadline
	By     string         // with Cancel
	Reason string         // with Cancel
}

// Finish is how an attempt ends. What the task becomes follows from Outcome
// and, where one was made, Decision:
//
//	success                         → succeeded, with Output
//	failure, blocked, decode_failed → as Decision says: retry (pending/retry, due after Delay),
//	                                  mark_dead (failed), block (blocked/manual), succeed (succeeded)
//	failure with kind internal      → no Decision: pending/retry after Delay; with Delay < 0 failed
//	suspended                       → pending/sleep until WakeAt (ready when that has passed)
//	cancelled                       → cancelled, with the kind of Error
//	released                        → ready at once, nothing counted
type Finish struct {
	Lease    task.Lease
	Outcome  task.Outcome
	Output   json.RawMessage // success
	Error    *task.Error     // every other outcome but suspended and released
	Decision *task.Decision  // TaskID, AttemptNo, At and NextReadyAt are filled in by the store
	Delay    time.Duration   // of the retry
	WakeAt   time.Time       // suspended: an instant that Record gave
	Progress *task.Progress  // last report not yet written

	Elapsed     time.Duration // of the attempt
	CodeVersion int

	StepsRun       []string // kept with the attempt
	StepsUnreached []string // kept with the attempt
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
	}
	if d := f.Decision; d != nil {
		b = append(b, 2)
		text(string(d.Kind))
		text(d.Reason.Text)
	}
	b = binary.AppendVarint(b, int64(f.Delay))
	b = binary.AppendVarint(b, f.WakeAt.UnixMicro())
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// ReplayedResult returns what a finish made of its task, for a store that is told it
// again: the outcome that it recorded, at an instant, is cancelled when the
// task was to be cancelled, else the finish's own. What the task has become
// since does not matter.
func (f *Finish) ReplayedResult(recorded task.Outcome, at time.Time) (task.State, task.Waiting) {
	switch {
	case recorded == task.OutcomeCancelled:
		return task.Cancelled, task.WaitNone
	case f.Outcome == task.OutcomeSuccess:
		return task.Succeeded, task.WaitNone
	case f.Outcome == task.OutcomeSuspended && f.WakeAt.After(at):
		return task.Pending, task.WaitSleep
	case f.Outcome == task.OutcomeSuspended:
		return task.Ready, task.WaitNone
	case f.Outcome == task.OutcomeReleased:
		return task.Ready, task.WaitNone
	}
	kind := task.DecideRetry
	if f.Decision != nil {
		kind = f.Decision.Kind
	} else if f.Delay < 0 {
		kind = task.DecideMarkDead
	}
	switch kind {
	case task.DecideMarkDead:
		return task.Failed, task.WaitNone
	case task.DecideBlock:
		return task.Blocked, task.WaitManual
	case task.DecideSucceed:
		return task.Succeeded, task.WaitNone
	}
	if f.Delay <= 0 {
		return task.Ready, task.WaitNone
	}
	return task.Pending, task.WaitRetry
}

// FinishResult answers one Finish. Told again (R8), the state is still the one
// that the attempt led to.
type FinishResult struct {
	Err     error
	State   task.State   // after the move
	Waiting task.Waiting // with it
}

// Record is what a running attempt writes.
type Record struct {
	Lease    task.Lease
	Step     *task.Step     // TaskID and CompletedAt are filled in by the store; StartedAt too, from Elapsed
	Elapsed  time.Duration  // of the step
	Sleep    time.Duration  // a sleep step: wake after this long, by the store's clock; with Step.WakeAt set that instant counts
	Tasks    []task.New     // a start step: enqueued in the same transaction; when the first has an idempotency key, the store fills in the id that stands under it as the step's value
	Progress *task.Progress // latest report
}

// RecordResult answers one Record.
type RecordResult struct {
	Err      error
	Step     task.Step  // as stored, or as it stood already
	Enqueued []Enqueued // one per Tasks
}

// ReapRequest asks to end what time has ended.
type ReapRequest struct {
	Worker      WorkerID // who asks
	TTL         time.Duration
	CrashBudget int // <0: none
	Limit       int // rows per call and kind; 0: 1,000
}

// ReapResult is what a reap did.
type ReapResult struct {
	Reaped    []Reaped
	Expired   []task.ID     // ended or asked to end by their deadline
	Next      time.Duration // until the next lease or deadline can expire, or, paused, until the asker may be steady; <0: none known
	WarmingUp bool          // expired leases were left alone: the asker is not steady
}

// Reaped is one lease that was taken away.
type Reaped struct {
	Task  task.ID
	State task.State // afterwards
	Crash bool       // counted against the crash budget
}
