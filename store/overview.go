package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxCount is how far tasks are counted.
const MaxCount = 10_000

// Count is a number of tasks: exact, or with More at least N.
type Count struct {
	N    int  `json:"n"`              // at most MaxCount
	More bool `json:"more,omitempty"` // there are more, or may be
}

// CountOf returns the count of n tasks.
func CountOf(n int) Count { return Count{N: min(n, MaxCount), More: n > MaxCount} }

// Plus returns the sum of two counts.
func (c Count) Plus(o Count) Count {
	sum := CountOf(c.N + o.N)
	sum.More = sum.More || c.More || o.More
	return sum
}

// String is the number, "10000+" if there may be more.
func (c Count) String() string {
	if c.More {
		return strconv.Itoa(c.N) + "+"
	}
	return strconv.Itoa(c.N)
}

// OverviewParts are parts of an Overview.
type OverviewParts uint

// The parts of an Overview.
const (
	OverviewCounts OverviewParts = 1 << iota
	OverviewQueues
	OverviewWorkers
	OverviewJob // CanCountJobs; of OverviewRequest.Job
)

// OverviewRequest asks for parts of an overview.
type OverviewRequest struct {
	Parts OverviewParts
	Job   task.ID // of OverviewJob
}

// Overview is what a namespace holds at one instant; parts that were not asked for
// are empty.
type Overview struct {
	At      time.Time      `json:"at"` // by the store's clock
	Counts  Counts         `json:"counts,omitzero"`
	Queues  []Queue        `json:"queues,omitempty"`  // those that hold dispatch rows, of which tasks run, or that are paused, by name; then the task types that are paused
	Workers []WorkerStatus `json:"workers,omitempty"` // that have joined and not left, by ID
	Job     JobCounts      `json:"-"`                 // the tasks of a job as they read; nothing for a job that does not exist
}

// Counts says how many tasks there are. Each is counted up to MaxCount, and so are
// the states, types and queues that are counted.
type Counts struct {
	// States has every state. A task that waits for its undo counts as ready once it is due. What succeeded is the rest, when all others are
	// counted; of a million that failed the rest is not known: it is {0, true}.
	States map[task.State]Count `json:"states"`
	Types  map[string]Count     `json:"task_types,omitempty"` // of all states
	Queues map[string]Count     `json:"queues,omitempty"`     // of all states
	More   bool                 `json:"more,omitempty"`       // Types and Queues are not all
	Chores Count                `json:"chores"`               // what of earlier commands is not done yet, as the cancel of a large job: work of the reaper
}

// Queue is one queue with dispatch rows, running tasks or a pause; or a task type that
// is paused, in whatever queues its tasks are, which has a Type and no Name.
type Queue struct {
	Name      string      `json:"queue"`
	Type      string      `json:"task_type,omitempty"`
	Due       Count       `json:"due"`                 // claimable now, but for a pause
	Later     Count       `json:"later"`               // claimable later
	OldestDue time.Time   `json:"oldest_due,omitzero"` // since when the first of those that are due is
	Running   Count       `json:"running"`             // under a lease
	Paused    bool        `json:"paused"`              // by an operator
	Pause     *AuditEntry `json:"pause,omitempty"`     // who paused it, when and why
}

// Lane is how many tasks of one queue and type a store found, for its overview.
type Lane struct {
	Queue, Type         string
	Due, Later, Running Count
	OldestDue           time.Time
}

// QueuesOf adds lanes up to queues. pauses are of queues, typePauses of types.
func QueuesOf(lanes []Lane, pauses, typePauses []AuditEntry) []Queue {
	var list []Queue
	at := make(map[string]int)
	queue := func(key string, q Queue) *Queue {
		if _, ok := at[key]; !ok {
			at[key] = len(list)
			list = append(list, q)
		}
		return &list[at[key]]
	}
	for i := range pauses {
		q := queue("q"+pauses[i].Target, Queue{Name: pauses[i].Target})
		q.Paused, q.Pause = true, &pauses[i]
	}
	for i := range typePauses {
		q := queue("t"+typePauses[i].Target, Queue{Type: typePauses[i].Target})
		q.Paused, q.Pause = true, &typePauses[i]
	}
	for i := range lanes {
		queue("q"+lanes[i].Queue, Queue{Name: lanes[i].Queue}).add(&lanes[i])
		if n, ok := at["t"+lanes[i].Type]; ok {
			list[n].add(&lanes[i])
		}
	}
	slices.SortFunc(list, func(a, b Queue) int {
		if (a.Type == "") != (b.Type == "") {
			return strings.Compare(a.Type, b.Type)
		}
		return strings.Compare(a.Type+a.Name, b.Type+b.Name)
	})
	return list
}

func (q *Queue) add(l *Lane) {
	q.Due, q.Later, q.Running = q.Due.Plus(l.Due), q.Later.Plus(l.Later), q.Running.Plus(l.Running)
	if !l.OldestDue.IsZero() && (q.OldestDue.IsZero() || l.OldestDue.Before(q.OldestDue)) {
		q.OldestDue = l.OldestDue
	}
}
