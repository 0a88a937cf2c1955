package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// WorkerID is a random id of one engine in one process.
type WorkerID string

// DefaultLease is the lifetime of a lease, unless the program sets another.
const DefaultLease = 30 * time.Second

// WorkerInfo announces a worker.
type WorkerInfo struct {
	ID    WorkerID      `json:"worker_id"`
	Name  string        `json:"name"` // host:pid, for people
	TTL   time.Duration `json:"ttl_ns"`
	Types []string      `json:"task_types"` // that it handles
	Announcement

	// SessionGrace is how long the worker relies on its leases without an answer of
	// its session (Ops.Session). Readers do not see it.
	SessionGrace time.Duration `json:"-"`
}

// Announcement is what a worker says of itself for people; all of it may be missing.
type Announcement struct {
	Host       string     `json:"host,omitempty"`
	PID        int        `json:"pid,omitempty"`
	Version    string     `json:"version,omitempty"` // of its program
	Queues     []string   `json:"queues,omitempty"`  // that it serves; none: all in which tasks of its types wait
	Slots      int        `json:"slots,omitempty"`   // how many tasks it runs at once
	Connection Connection `json:"connection,omitempty"`
	Troubles   []Trouble  `json:"troubles,omitempty"` // the task types that it cannot run at the moment, by name; at most MaxTroubles
}

// MaxTroubles is the number of troubles that a worker announces at most.
const MaxTroubles = 20

// Trouble says why a worker cannot run tasks of a type: it has no file descriptors, no key,
// no bucket. It releases such tasks at no cost and claims few of them until they run again.
type Trouble struct {
	TaskType string    `json:"task_type"`
	Error    string    `json:"error"`    // of the last attempt
	Since    time.Time `json:"since"`    // by the worker's clock
	Released int       `json:"released"` // attempts
	// Lasting says that the worker is configured without a bucket, a codec or a key: it
	// runs such tasks when it is started anew.
	Lasting bool `json:"lasting,omitempty"`
}

// Connection is what leads from a worker to a database server. The store says so, not
// the worker.
type Connection string

// Kinds of connections. A store without a server has none.
const (
	ConnectionDirect Connection = "direct" // to the server itself
	ConnectionPooled Connection = "pooled" // through a pooler, a proxy or a socket that may lead to one: its death is found on its own machine only, or when its leases expire
)

// WorkerStatus is a worker as readers see it. One that was forgotten while it
// was silent and is heard of again has neither Name nor Types until it joins.
type WorkerStatus struct {
	WorkerInfo
	LastSeen  time.Time `json:"last_seen"`           // its last Join or Heartbeat
	Running   Count     `json:"running"`             // tasks that it holds leases of, each of which takes a slot
	Silent    bool      `json:"silent,omitempty"`    // it was not seen for its TTL
	Dead      bool      `json:"dead,omitempty"`      // its process is known to have ended
	IdleSince time.Time `json:"idle_since,omitzero"` // since when it finds nothing to claim, where the store knows
}

// InTrouble reports whether the worker lives and cannot run tasks of a type.
func (w *WorkerStatus) InTrouble() bool { return len(w.Troubles) > 0 && !w.Dead && !w.Silent }

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
