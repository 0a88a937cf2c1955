package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxCount is the limit up to which tasks are counted.
const MaxCount = 10_000

// Count is a number of tasks: exact, or at least N if More is set.
type Count struct {
	N    int  `json:"n"`              // at most MaxCount
	More bool `json:"more,omitempty"` // there are or may be more
}

// CountOf returns the count of n tasks.
func CountOf(n int) Count { return Count{N: min(n, MaxCount), More: n > MaxCount} }

// Plus returns the sum of two counts.
func (c Count) Plus(o Count) Count {
	sum := CountOf(c.N + o.N)
	sum.More = sum.More || c.More || o.More
	return sum
}

// String returns the number, with "+" if there may be more: "10000+".
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
	OverviewJob   // CanCountJobs; of OverviewRequest.Job
	OverviewHints // for namespaces whose tasks are published
	OverviewLine  // of OverviewRequest.Task
)

// OverviewRequest asks for parts of an overview.
type OverviewRequest struct {
	Parts OverviewParts
	Job   task.ID // for OverviewJob
	Task  task.ID // for OverviewLine
}

// Overview is a snapshot of a namespace. Parts that were not requested are empty.
type Overview struct {
	At      time.Time      `json:"at"` // by the store's clock
	Counts  Counts         `json:"counts,omitzero"`
	Queues  []Queue        `json:"queues,omitempty"`  // queues with dispatch rows, running tasks or a pause, by name; then the paused task types
	Workers []WorkerStatus `json:"workers,omitempty"` // joined workers, by ID
	Job     JobCounts      `json:"-"`                 // tasks of a job by derived state; empty for an unknown job
	Hints   HintsOverview  `json:"-"`
	Line    *Line          `json:"-"` // nil for a task that is not due
}

// Line is the place of a due task among the due tasks of its queue that are claimed before it: those
// of a higher priority, of its priority and due earlier, and those of other groups of its type that
// have their turns before it. Of a queue it sees at most 100 lanes of the task's type and 100 others.
// Paused types do not count.
type Line struct {
	Ahead  Count       // of its type
	Queue  Count       // of all types
	Since  time.Time   // due time of the first of Ahead, or of the task itself
	Limits []LimitLine // limits that restrict its start, open or closed
}

// LimitLine is a limit of a due task, with the number of tasks of the Line to which it applies too.
type LimitLine struct {
	LimitRow
	Ahead Count
}

// HintsOverview describes the hints that publishers are to send: of the first due tasks of each lane that is not
// paused, among the first MaxHintLanes lanes.
type HintsOverview struct {
	Unsent  Count     // to be sent now, whether sent before or not
	Since   time.Time // the first of Unsent is to be sent since then; zero without one
	Refused Count     // refused by the transport for good: DispatchRow.Refused
}

// MaxHintLanes is the maximum number of lanes of a HintsOverview. With more, its counts have More.
const MaxHintLanes = 100

// Counts holds the numbers of tasks, each counted up to MaxCount, and so are the states, types and
// queues.
type Counts struct {
	// States has every state. A task that waits for its undo counts as ready once it is due. Succeeded
	// is the remainder if all others are counted exactly. With a million failed tasks it is unknown:
	// {0, true}.
	States map[task.State]Count `json:"states"`
	Types  map[string]Count     `json:"task_types,omitempty"` // of all states
	Queues map[string]Count     `json:"queues,omitempty"`     // of all states
	More   bool                 `json:"more,omitempty"`       // Types and Queues are incomplete
	Chores Count                `json:"chores"`               // unfinished work of earlier commands, for example the cancel of a large job, done by the reaper
}

// Queue is a queue with dispatch rows, running tasks or a pause, or a paused task type in all queues,
// which has a Type and no Name.
type Queue struct {
	Name      string      `json:"queue"`
	Type      string      `json:"task_type,omitempty"`
	Due       Count       `json:"due"`                 // claimable now, or if not paused
	Later     Count       `json:"later"`               // claimable later
	OldestDue time.Time   `json:"oldest_due,omitzero"` // earliest due time among Due
	Running   Count       `json:"running"`             // under a lease
	Paused    bool        `json:"paused"`              // by an operator
	Pause     *AuditEntry `json:"pause,omitempty"`     // actor, time and reason
}

// Lane is the number of tasks of one queue and type, for an overview.
type Lane struct {
	Queue, Type         string
	Due, Later, Running Count
	OldestDue           time.Time
}

// QueuesOf sums lanes to queues. pauses are of queues, typePauses of types.
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
