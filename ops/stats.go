package ops

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxStatsRows is how many rows an answer of Client.Stats has at most.
const MaxStatsRows = 10_000

// StatsRequest asks for statistics of attempts.
type StatsRequest struct {
	// The span: attempts that ended in [From, To). Default: the hour before now. From is
	// rounded down to a multiple of Step, since 1970.
	From, To time.Time

	// Step is the span of a row: it is rounded up to a multiple of what is kept, which is
	// 10 s, a minute when From is over an hour ago, and an hour when it is over a week ago.
	// 0: a row is of the whole span.
	Step time.Duration

	By          []store.StatBy // what rows are told apart by; default nothing
	Type, Queue string         // only attempts of tasks of this type, in this queue; default all
}

// Stats are statistics of the attempts that ended in a span of time.
type Stats struct {
	From time.Time     `json:"from"`
	To   time.Time     `json:"to"`
	Step time.Duration `json:"step_ns"` // 0: each row is of all of it
	Rows []StatsRow    `json:"rows"`    // by From and then by what they are told apart by; there is none where nothing ended
}

// StatsRow counts the attempts that ended within a step. The fields that the request does
// not name in By are empty.
type StatsRow struct {
	From      time.Time      `json:"from"`                // when the step begins
	Type      string         `json:"task_type,omitempty"` // "(other)" beyond the first 500 types and queues of a worker
	Queue     string         `json:"queue,omitempty"`
	Outcome   task.Outcome   `json:"outcome,omitempty"`
	ErrorKind task.ErrorKind `json:"error_kind,omitempty"` // "": it has no error
	Worker    string         `json:"worker,omitempty"`     // its ID; "" when the attempt ended over an hour ago

	Count int64      `json:"count"`
	Run   StatsTimes `json:"run"`  // how long the attempts ran; one that lost its lease is left out
	Wait  StatsTimes `json:"wait"` // how long their tasks were due before; so here
}

// StatsTimes describes durations; each value is at most 12.5 % off.
type StatsTimes struct {
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	Mean time.Duration `json:"mean_ns"`
}

// StatsBys lists what rows of statistics can be told apart by.
func StatsBys() []store.StatBy {
	return []store.StatBy{store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind, store.ByWorker}
}
