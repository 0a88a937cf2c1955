package memstore

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// space holds one namespace: one map or list per table.
type space struct {
	generation  string
	tasks       map[task.ID]*row
	idempotent  map[idempotency]task.ID // an index over tasks
	jobs        map[task.ID]*task.Job
	onceJobs    map[jobKey]task.ID            // an index over jobs
	needs       map[task.ID][]*store.EdgeRow  // edges by the dependent
	dependents  map[task.ID][]*store.EdgeRow  // the same edges by the dependency
	attempts    map[task.ID][]task.Attempt    // ended ones, by number
	decisions   map[task.ID][]task.Decision   // by attempt
	steps       map[task.ID][]task.Step       // by index, attempt and try
	signals     map[task.ID][]task.Signal     // oldest first
	checkpoints map[task.ID][]task.Checkpoint // by name
	artifacts   map[task.ID][]task.Artifact   // by ID
	expiries    map[task.ID]*expiry
	bucket      store.Bucket      // the bucket of the blobs
	refs        map[task.ID][]ref // from values
	blobs       map[task.ID]*blob
	events      map[task.ID][]store.EventRow // by number
	feed        feed
	dispatch    map[task.ID]store.DispatchRow
	keys        map[string]*store.KeyRow
	waiters     map[task.ID]store.WaiterRow
	paused      map[string]store.AuditEntry // by queue: the audit entry of the pause
	pausedType  map[string]store.AuditEntry // by task type
	pausedTask  map[task.ID]*pausedTask
	audit       []store.AuditEntry
	types       map[string]store.AnnouncedType
	workers     map[store.WorkerID]*worker
	stats       stats
	schedules   map[string]*schedule    // by name
	limits      map[string]*limit       // set, or with the state of a rate
	lanes       lane.Cache              // the turns of lanes with a group
	orders      map[string]*order.Order // by idempotency key
	lastOrder   int64
}

// row is a stored task. Its ReadyAt is the requested start time (a wish, a retry, a
// sleep), not the value that readers see.
type row struct {
	task.Task
	worker store.WorkerID // of the running attempt
	held   store.WorkerID // of the previous attempt, whose lease may delay the undo
	alone  bool           // quarantined: it runs as the only task of its worker

	joinOutput json.RawMessage // the output once its children have succeeded
}

// idempotency is the scope of an idempotency key.
type idempotency struct{ taskType, key string }

// jobKey is the scope of a job's idempotency key.
type jobKey struct{ name, key string }

// worker is an announced process.
type worker struct {
	rules.Worker
	info   store.WorkerInfo
	joined bool // and not forgotten since: its death can be observed
}

func newSpace() *space {
	return &space{
		generation:  newGeneration(),
		tasks:       map[task.ID]*row{},
		idempotent:  map[idempotency]task.ID{},
		jobs:        map[task.ID]*task.Job{},
		onceJobs:    map[jobKey]task.ID{},
		needs:       map[task.ID][]*store.EdgeRow{},
		dependents:  map[task.ID][]*store.EdgeRow{},
		attempts:    map[task.ID][]task.Attempt{},
		decisions:   map[task.ID][]task.Decision{},
		steps:       map[task.ID][]task.Step{},
		signals:     map[task.ID][]task.Signal{},
		checkpoints: map[task.ID][]task.Checkpoint{},
		artifacts:   map[task.ID][]task.Artifact{},
		expiries:    map[task.ID]*expiry{},
		refs:        map[task.ID][]ref{},
		blobs:       map[task.ID]*blob{},
		events:      map[task.ID][]store.EventRow{},
		dispatch:    map[task.ID]store.DispatchRow{},
		keys:        map[string]*store.KeyRow{},
		waiters:     map[task.ID]store.WaiterRow{},
		paused:      map[string]store.AuditEntry{},
		pausedType:  map[string]store.AuditEntry{},
		pausedTask:  map[task.ID]*pausedTask{},
		workers:     map[store.WorkerID]*worker{},
		orders:      map[string]*order.Order{},
		stats:       stats{},
		schedules:   map[string]*schedule{},
		limits:      map[string]*limit{},
		types:       map[string]store.AnnouncedType{},
	}
}

// sorted returns the tasks for which keep holds, oldest first.
func (sp *space) sorted(keep func(r *row) bool) []*row {
	var out []*row
	for _, r := range sp.tasks {
		if keep(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *row) int { return a.ID.Compare(b.ID) })
	return out
}

// derived returns a copy of a task as readers see it at now.
func (sp *space) derived(r *row, now time.Time) task.Task {
	t := copyTask(&r.Task)
	stands := store.Availability{Dispatch: sp.dispatch[r.ID].AvailableAt, Waiter: sp.waiters[r.ID].DueAt, Pause: sp.pauseOf(r.Queue, r.Type)}
	if p, ok := sp.pausedTask[r.ID]; ok {
		stands.Pause, stands.Parked = task.PauseTask, p.due
	}
	store.Derive(&t, stands, now)
	return t
}

func byStep(a, b task.Step) int {
	if a.Index != b.Index {
		return a.Index - b.Index
	}
	if a.AttemptNo != b.AttemptNo {
		return a.AttemptNo - b.AttemptNo
	}
	if a.Try != b.Try {
		return a.Try - b.Try
	}
	return strings.Compare(a.Name, b.Name)
}

func byEdge(a, b *store.EdgeRow) int {
	if c := a.Task.Compare(b.Task); c != 0 {
		return c
	}
	if c := a.Needs.Compare(b.Needs); c != 0 {
		return c
	}
	return strings.Compare(string(a.Kind), string(b.Kind))
}
