package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// ClaimRequest asks for work.
type ClaimRequest struct {
	Worker  WorkerID
	Name    string       // kept as leased_by
	LeaseID task.LeaseID // new for every call
	TTL     time.Duration
	Limit   int                 // free slots
	Types   map[string]int      // task types that this worker handles, each with its code version
	Schemas map[string]int      // newest schema version that this worker reads, by type; any version for a type without an entry
	Queues  map[string]int      // free slots per queue; nil: every queue, up to Limit
	Bound   map[string][]string // the only queues to claim a task type from; a type without an entry: all of Queues
	IDs     []task.ID           // claim only these tasks (hints); nil: any
	Again   bool                // return the tasks that LeaseID already claimed
	Behind  ClaimPlace          // skip rows up to this place in claim order: ClaimResult.Behind of the previous claim; zero: skip no rows

	// LeaveSent leaves tasks whose hint was sent, for workers that receive it, unless no other task can
	// be claimed (W4). Tasks whose hint was refused, or sent twice, are claimed in their order. A claim
	// of IDs ignores it.
	LeaveSent bool

	Wait time.Duration   // maximum time for which the store holds a claim that found no due task (CanWait); 0: it answers at once
	Wake <-chan struct{} // a receive ends the wait; nil: never

	// Quarantine (R7): a task with crash_count ≥ 2 is claimed only while the worker runs fewer such
	// tasks than the task's own quarantine limit, max(1, Slots/8 >> task.QuarantineLosses), and than
	// the limit of every quarantined task that it already runs. Once Slots/8 >> task.QuarantineLosses
	// is 0, the task runs alone: only an idle worker claims it, and that worker claims nothing else
	// while it runs.
	Slots           int  // all slots of the worker
	Running         int  // attempts that it now runs
	Quarantined     int  // quarantined ones among Running
	QuarantineLimit int  // smallest limit among them; 0 if there are no such attempts
	Alone           bool // one of them runs alone
}

// ClaimResult is the answer to a claim.
type ClaimResult struct {
	Tasks  []Claimed
	Now    time.Time     // the store's clock at the claim
	Next   time.Duration // time until the next dispatch row of these lanes is due; 0: more are due now, or the claim stopped at Limit; < 0: unknown
	Waited time.Duration // time for which the store held the claim; 0: answered at once

	// AloneDue reports that the claim skipped a due task that must run alone, because the worker runs
	// other tasks or this claim took some. It is claimed once the worker is idle.
	AloneDue bool

	// Stopped reports that the claim read the maximum number of due rows, 4 × Limit + 256, before it
	// found Limit tasks, and that there are more. Next is 0. The caller repeats the claim at once,
	// with Behind.
	Stopped bool
	// Behind is the place at which the next claim continues, set if this one stopped and could neither
	// claim nor move any row.
	Behind ClaimPlace
}

// ClaimPlace is a position in claim order: by priority, then due time, then task. The zero value is
// the first position.
type ClaimPlace struct {
	Priority int
	Due      time.Time
	Task     task.ID
}

// Claimed is one leased task with the records of earlier attempts.
type Claimed struct {
	Task            task.Task // State running, AttemptNo already raised
	Lease           task.Lease
	Steps           []task.Step   // completed, waiting and failed, by index; nil on a first attempt
	Quarantined     bool          // quarantined while it runs
	QuarantineLimit int           // if quarantined: maximum number of such tasks running at once, including this one
	Alone           bool          // if quarantined: it runs alone
	Waited          time.Duration // time since it was due (store's clock), or since its enqueue if it was interrupted; 0 with Again
	TimeLeft        time.Duration // time to the deadline; 0: no deadline; < 0: it has passed, and the task must end and clean up
}
