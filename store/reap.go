package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// ReapRequest asks to end what time has ended.
type ReapRequest struct {
	Worker      WorkerID // who asks
	TTL         time.Duration
	CrashBudget int // <0: none
	Limit       int // rows per call and kind; 0: 1,000
}

// ReapResult is what a reap did.
type ReapResult struct {
	Reaped       []Reaped
	Expired      []task.ID     // ended or asked to end by their deadline, or due to clean up
	Next         time.Duration // until the next lease or deadline can expire, or, warming up, until the asker can be eligible; <0: none known
	NextDeadline time.Duration // until the next deadline passes; 1ns: one has passed, beyond Limit; 0: none known
	Chores       bool          // work that earlier operations left is not done yet: call again
	WarmingUp    bool          // expired leases were left alone: the asker is not eligible to reap them yet
}

// Reaped is one lease that was taken away.
type Reaped struct {
	Task  task.ID
	State task.State // afterwards
	Crash bool       // counted against the crash budget
}
