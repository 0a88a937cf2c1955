package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// ReapRequest asks to process expired leases and deadlines.
type ReapRequest struct {
	Worker      WorkerID // the caller
	TTL         time.Duration
	CrashBudget int // < 0: no limit
	Limit       int // rows per call and kind; 0: 1,000
}

// ReapResult is the result of a reap.
type ReapResult struct {
	Reaped       []Reaped
	Expired      []task.ID     // tasks ended or asked to end by their deadline, or due to clean up
	Next         time.Duration // time until the next lease or deadline can expire or, while warming up, until the caller can be eligible; < 0: unknown
	NextDeadline time.Duration // time until the next deadline; 1ns: one has passed, beyond Limit; 0: no known deadline
	Chores       bool          // work of earlier operations is unfinished: call again
	WarmingUp    bool          // expired leases were skipped: the caller is not yet eligible to reap them
}

// Reaped is one revoked lease.
type Reaped struct {
	Task  task.ID
	State task.State // new state
	Crash bool       // counted against the crash budget
}
