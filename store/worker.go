package store

import (
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

// HeartbeatRequest extends leases.
type HeartbeatRequest struct {
	Worker WorkerID
	TTL    time.Duration
	Leases []task.Lease
}

// Beat answers for one lease: at most one of the fields is set.
type Beat struct {
	Lost   bool           // the task has another epoch: the lease is gone
	Retry  bool           // not known at the moment: ask again within a second
	Cancel task.ErrorKind // extended, and the task is asked to end: cancelled or deadline
	By     string         // with Cancel
	Reason string         // with Cancel
}
