package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// ClaimRequest asks for work.
type ClaimRequest struct {
	Worker  WorkerID
	Name    string       // kept as leased_by
	LeaseID task.LeaseID // fresh for every call
	TTL     time.Duration
	Limit   int                 // free slots
	Types   map[string]int      // task types this worker knows, each with its code version
	Schemas map[string]int      // the newest schema version that this worker reads of a type's inputs; a type without an entry: any
	Queues  map[string]int      // free slots per queue; nil: every queue, up to Limit
	Bound   map[string][]string // the only queues to claim a task type from; a type without an entry: all that Queues allows
	IDs     []task.ID           // only these (hints); nil: any
	Again   bool                // look up what LeaseID already claimed
	Behind  ClaimPlace          // leave what comes up to here in the order of claims: ClaimResult.Behind of the claim before; zero: nothing

	Wait time.Duration   // with nothing due the store may hold the claim so long (CanWait); 0: it answers at once
	Wake <-chan struct{} // ends that wait when it receives; nil: nothing does

	// Quarantine (R7): a task with crash_count ≥ 2 is claimed only while the
	// worker runs fewer of them than the task's own quarantine limit,
	// max(1, Slots/8 >> task.QuarantineLosses), and than the limit of every
	// quarantined task that it runs already. Once Slots/8 >> task.QuarantineLosses
	// is 0 it runs alone: it is claimed only by a worker that runs nothing, and
	// while it runs this worker claims nothing.
	Slots           int  // all slots of the worker
	Running         int  // attempts that it runs now
	Quarantined     int  // of these, those of quarantined tasks
	QuarantineLimit int  // the smallest limit of those; 0: none
	Alone           bool // one of them runs alone
}

// ClaimResult is what a claim got.
type ClaimResult struct {
	Tasks  []Claimed
	Now    time.Time     // the store's clock at the claim
	Next   time.Duration // until the next dispatch row of these lanes is due; 0: more are due now, or the claim took Limit tasks and did not look; <0: none known
	Waited time.Duration // how long the store held the claim before this answer; 0: it was answered at once

	// AloneDue reports that the claim passed over a due task that has to run alone,
	// because the worker runs other tasks or this claim took some. It is claimed
	// when the worker runs nothing.
	AloneDue bool

	// Stopped reports that the claim looked at as many due rows as one claim
	// may, 4 × Limit + 256, before it found Limit tasks, and that there are
	// more. Next is 0. The caller asks again at once, with Behind.
	Stopped bool
	// Behind is where the next claim goes on when this one stopped at rows none
	// of which it could claim or move; else zero.
	Behind ClaimPlace
}

// ClaimPlace is the place of a due row in the order in which claims look at
// them: by priority, then due time, then task. The zero value comes first.
type ClaimPlace struct {
	Priority int
	Due      time.Time
	Task     task.ID
}

// Claimed is one leased task, with what earlier attempts recorded.
type Claimed struct {
	Task            task.Task // State running, AttemptNo already raised
	Lease           task.Lease
	Steps           []task.Step   // completed, waiting and failed, by index; nil on a first attempt
	Quarantined     bool          // it is quarantined while it runs
	QuarantineLimit int           // if quarantined: how many such tasks may run beside each other, this one included
	Alone           bool          // if quarantined: it runs alone
	Waited          time.Duration // since it was due, by the store's clock, or since it was enqueued if it was interrupted; 0: also for one looked up (Again)
	TimeLeft        time.Duration // to the deadline; 0: no deadline; < 0: it passed, and the task was asked to end and cleans up
}
