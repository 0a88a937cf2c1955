package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// WorkerID is a random id of one engine in one process.
type WorkerID string

// WorkerInfo announces a worker.
type WorkerInfo struct {
	ID    WorkerID      `json:"worker_id"`
	Name  string        `json:"name"` // host:pid, for people
	TTL   time.Duration `json:"ttl_ns"`
	Types []string      `json:"task_types"` // that it handles

	// SessionGrace is how long the worker relies on its leases without an answer of
	// its session (SessionKeeper). Readers do not see it.
	SessionGrace time.Duration `json:"-"`
}

// WorkerStatus is a worker as readers see it. One that was forgotten while it
// was silent and is heard of again has neither Name nor Types until it joins.
type WorkerStatus struct {
	WorkerInfo
	LastSeen time.Time `json:"last_seen"` // its last Join or Heartbeat
	Running  int       `json:"running"`   // tasks that it holds leases of
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
	Cancel task.ErrorKind // extended, and the task is asked to end: cancelled, deadline or parent_ended
	By     string         // with Cancel
	Reason string         // with Cancel
}
