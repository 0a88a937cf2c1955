package store

import (
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

const (
	// MinFeedKeep is the minimum retention of a feed.
	MinFeedKeep = time.Minute
	// MaxFeedRows is the maximum number of rows in a page of a feed.
	MaxFeedRows = 500
	// MaxFeedLooks is the maximum number of rows that one page reads.
	MaxFeedLooks = 2000
	// MaxFeedBytes is the maximum size in bytes of the quoted data in a page. A single row may exceed
	// it.
	MaxFeedBytes = 256 << 10
)

// FeedState holds the bounds of a feed.
type FeedState struct {
	On     bool
	Kept   int64 // rows up to this position are deleted
	Newest int64 // rows up to this position are readable
	Last   int64 // highest assigned position; rows up to it may still be uncommitted
}

// FeedRequest asks for a page of a feed. A row must match every filter.
type FeedRequest struct {
	After int64 // a position; lower than Kept means Kept
	Task  task.ID
	Job   task.ID  // the job, including its tasks
	Queue string   // queue of the tasks
	Types []string // types of the tasks, any of them; "acme.*" matches the prefix "acme."
	Names []string // names of events, any of them: "task.failed"
	Limit int      // at most MaxFeedRows; 0 means MaxFeedRows

	StateOnly bool // return no rows, only the FeedState
}

// FeedPage is a page of a feed. A page reads at most MaxFeedLooks rows, so it may be empty while More
// is true.
type FeedPage struct {
	FeedState
	Rows []FeedRow
	Next int64 // position for the next request, at least After
	More bool  // more rows are already readable
}

// FeedKind is the kind of a feed row.
type FeedKind string

// The kinds of rows.
const (
	FeedEnqueued FeedKind = "enqueued" // the task was stored
	FeedStarted  FeedKind = "started"  // it was claimed
	FeedEnded    FeedKind = "ended"    // an attempt ended, with Outcome; State is the task's new state
	FeedOver     FeedKind = "over"     // the task ended or was blocked by something other than its attempt
	FeedReopened FeedKind = "reopened" // a finished or blocked task may run again
	FeedSettled  FeedKind = "settled"  // the job ended
	FeedEvent    FeedKind = "event"    // an event row
	FeedLog      FeedKind = "log"      // a line of the log
)

// FeedRow is a row of a feed. The fields from Node on are read from the rows of the task, attempt and
// job; they are empty when those rows are deleted.
type FeedRow struct {
	Pos       int64
	Kind      FeedKind
	Name      string // name of the event: FeedName
	At        time.Time
	Task      task.ID // zero for a row of a job
	Job       task.ID
	Type      string
	Queue     string
	AttemptNo int
	Epoch     int64 // of the lease
	State     string
	Waiting   task.Waiting
	Outcome   task.Outcome

	Gone         bool // the task was deleted
	Node         string
	AllowFailure bool
	Redact       []string    // fields of the task's values that readers must hide
	Error        *task.Error // of the attempt, or of the task that ended
	StartedAt    time.Time   // start of the attempt, or creation time of the job
	NextReadyAt  time.Time   // of a retry
	JobName      string
	Counters     task.JobCounters // of the job when it ended; zero if they have changed since
	Event        EventRow
}

// FeedName returns the event name of a row. The name of an event row is its own type. "" means that a
// newer program wrote the row.
func FeedName(kind FeedKind, state string, waiting task.Waiting, outcome task.Outcome) string {
	switch kind {
	case FeedEnqueued:
		return event.TaskEnqueued{}.Type()
	case FeedStarted:
		return event.TaskStarted{}.Type()
	case FeedReopened:
		return event.TaskReopened{}.Type()
	case FeedSettled:
		return event.JobSettled{}.Type()
	case FeedEnded, FeedOver:
		return event.Ending{Outcome: outcome, State: task.State(state), Waiting: waiting}.Type()
	}
	return ""
}

// Passes reports whether a row matches the request.
func (r *FeedRequest) Passes(row *FeedRow) bool {
	return (r.Task.IsZero() || row.Task == r.Task) && (r.Job.IsZero() || row.Job == r.Job) &&
		(r.Queue == "" || row.Queue == r.Queue) && oneOf(r.Types, row.Type) && oneOf(r.Names, row.Name)
}

func oneOf(list []string, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(want string) bool { return FeedMatches(want, name) })
}

// FeedMatches reports whether a name matches the wanted name, which may end in a wildcard: "step.*".
func FeedMatches(want, name string) bool {
	prefix, open := strings.CutSuffix(want, "*")
	return want == name || open && strings.HasPrefix(name, prefix)
}
