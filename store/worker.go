package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// WorkerID is the random ID of one engine in one process.
type WorkerID string

// DefaultLease is the lifetime of a lease, unless the program sets another.
const DefaultLease = 30 * time.Second

// WorkerInfo announces a worker.
type WorkerInfo struct {
	ID    WorkerID      `json:"worker_id"`
	Name  string        `json:"name"` // host:pid, for people
	TTL   time.Duration `json:"ttl_ns"`
	Types []string      `json:"task_types"` // types that it handles
	Announcement

	// SessionGrace is how much time the worker relies on its leases without an answer of its session
	// (Ops.Session). Readers do not see it.
	SessionGrace time.Duration `json:"-"`
}

// Announcement describes a worker for people. Every field is optional.
type Announcement struct {
	Host        string     `json:"host,omitempty"`
	PID         int        `json:"pid,omitempty"`
	Version     string     `json:"version,omitempty"`      // of its program
	Program     string     `json:"program,omitempty"`      // that declares schedules
	CodeVersion int        `json:"code_version,omitempty"` // of Program
	Queues      []string   `json:"queues,omitempty"`       // queues that it serves; empty means all queues in which tasks of its types wait
	Slots       int        `json:"slots,omitempty"`        // maximum number of concurrent tasks
	Connection  Connection `json:"connection,omitempty"`
	Troubles    []Trouble  `json:"troubles,omitempty"` // task types that it cannot run at the moment, by name; at most MaxTroubles
	Sender      *Sender    `json:"sender,omitempty"`   // of a worker that sends orders
}

// Sender is the adapter of a worker that sends orders, and the state of its circuit breaker.
type Sender struct {
	Adapter     string    `json:"adapter"`
	Failed      int       `json:"failed"`                // of its last 20 sends, those that timed out or found the partner down
	PausedUntil time.Time `json:"paused_until,omitzero"` // it sends nothing until then, by its clock
	Reason      string    `json:"reason,omitempty"`      // of the pause
}

// MaxTroubles is the maximum number of troubles that a worker announces.
const MaxTroubles = 20

// Trouble is the reason why a worker cannot run tasks of a type: missing file descriptors, key or
// bucket. The worker releases such tasks at no cost and claims few of them until they run again.
type Trouble struct {
	TaskType string    `json:"task_type"`
	Error    string    `json:"error"`    // of the last attempt
	Since    time.Time `json:"since"`    // by the worker's clock
	Released int       `json:"released"` // attempts
	// Lasting reports that the worker's configuration lacks a bucket, a codec or a key: only a restart
	// helps.
	Lasting bool `json:"lasting,omitempty"`
}

// Connection is the kind of connection from a worker to a database server, as reported by the store.
type Connection string

// Kinds of connections. A store without a server has no kind.
const (
	ConnectionDirect Connection = "direct" // to the server
	ConnectionPooled Connection = "pooled" // through a pooler, a proxy, or a socket that may lead to one: a death is detected on the same machine only, or when its leases expire
)

// WorkerStatus is a worker as readers see it. A silent worker that was forgotten and returns has
// neither Name nor Types until it joins.
type WorkerStatus struct {
	WorkerInfo
	LastSeen  time.Time `json:"last_seen"`           // its last Join or Heartbeat
	Running   Count     `json:"running"`             // number of its leases, each of which takes a slot
	Silent    bool      `json:"silent,omitempty"`    // not seen for its TTL
	Dead      bool      `json:"dead,omitempty"`      // its process is known to have ended
	IdleSince time.Time `json:"idle_since,omitzero"` // start of its idle time, where the store knows it
}

// InTrouble reports whether the worker is alive and cannot run tasks of a type.
func (w *WorkerStatus) InTrouble() bool { return len(w.Troubles) > 0 && !w.Dead && !w.Silent }

// HeartbeatRequest extends leases.
type HeartbeatRequest struct {
	Worker WorkerID
	TTL    time.Duration
	Leases []task.Lease
}

// Beat answers for one lease. At most one of Lost, Retry and Cancel is set.
type Beat struct {
	Lost   bool           // the task has another epoch: the lease is lost
	Retry  bool           // unknown at the moment: ask again within a second
	Cancel task.ErrorKind // extended, and the task must end: cancelled, deadline or parent_ended
	By     string         // with Cancel
	Reason string         // with Cancel
}
