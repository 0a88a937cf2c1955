package ops

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxStatsRows is the maximum number of rows in an answer of Client.Stats.
const MaxStatsRows = 10_000

// StatsRequest asks for statistics of attempts.
type StatsRequest struct {
	// From and To select attempts that ended in [From, To). Default: the last hour. From is rounded
	// down to a multiple of Step, since 1970.
	From, To time.Time

	// Step is the width of a row, rounded up to a multiple of the stored width: 10 s, a minute if From
	// is over an hour ago, an hour if it is over a week ago. 0 means one row for the whole span.
	Step time.Duration

	By          []store.StatBy // fields to group by; default: no grouping
	Type, Queue string         // only attempts of tasks of this type, in this queue; default: all
}

// Stats holds statistics of the attempts that ended in a time span.
type Stats struct {
	From time.Time     `json:"from"`
	To   time.Time     `json:"to"`
	Step time.Duration `json:"step_ns"` // 0: each row covers the whole span
	Rows []StatsRow    `json:"rows"`    // by From, then by the grouping fields; no row where no attempt ended
}

// StatsRow counts the attempts that ended within a step. Fields not named in By are empty.
type StatsRow struct {
	From      time.Time      `json:"from"`                // start of the step
	Type      string         `json:"task_type,omitempty"` // "(other)" beyond the first 500 types and queues of a worker
	Queue     string         `json:"queue,omitempty"`
	Outcome   task.Outcome   `json:"outcome,omitempty"`
	ErrorKind task.ErrorKind `json:"error_kind,omitempty"` // "" for no error
	Worker    string         `json:"worker,omitempty"`     // worker ID; "" if the attempt ended over an hour ago

	Count int64      `json:"count"`
	Run   StatsTimes `json:"run"`  // run times, without attempts that lost their lease
	Wait  StatsTimes `json:"wait"` // times from due to start, without attempts that lost their lease
}

// StatsTimes describes durations; each value is within 12.5 %.
type StatsTimes struct {
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P95  time.Duration `json:"p95_ns"`
	P99  time.Duration `json:"p99_ns"`
	Mean time.Duration `json:"mean_ns"`
}

// StatsBys returns the fields by which statistics can be grouped.
func StatsBys() []store.StatBy {
	return []store.StatBy{store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind, store.ByWorker}
}
