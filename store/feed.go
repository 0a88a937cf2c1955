package store

import (
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

const (
	// MinFeedKeep is the shortest time for which a feed keeps rows.
	MinFeedKeep = time.Minute
	// MaxFeedRows is how many rows a page of a feed has at most.
	MaxFeedRows = 500
	// MaxFeedLooks is how many rows one page looks at.
	MaxFeedLooks = 2000
	// MaxFeedBytes is how many bytes what the rows of a page quote has at most; a row
	// alone may have more.
	MaxFeedBytes = 256 << 10
)

// FeedState is how far a feed is.
type FeedState struct {
	On     bool
	Kept   int64 // rows up to here are gone
	Newest int64 // all rows up to here can be read
	Last   int64 // the highest position that was given away; rows up to it may be about to be committed
}

// FeedRequest asks for a page of a feed. Of a filter all must hold.
type FeedRequest struct {
	After int64 // a position; one below Kept is like Kept
	Task  task.ID
	Job   task.ID  // also what happens to its tasks
	Queue string   // of tasks
	Types []string // of tasks, any of them; "acme.*" stands for all that begin with "acme."
	Names []string // of events, any of them: "task.failed"
	Limit int      // at most MaxFeedRows; 0: that

	StateOnly bool // no rows: only how far the feed is
}

// FeedPage is a page of a feed. A page may be empty although there is more: it looks at
// MaxFeedLooks rows at most.
type FeedPage struct {
	FeedState
	Rows []FeedRow
	Next int64 // where to go on, at least After
	More bool  // there is more already
}

// FeedKind is what a row of a feed tells.
type FeedKind string

// The kinds of rows.
const (
	FeedEnqueued FeedKind = "enqueued" // the task was stored
	FeedStarted  FeedKind = "started"  // it was claimed
	FeedEnded    FeedKind = "ended"    // an attempt ended, with Outcome; the task then got State
	FeedOver     FeedKind = "over"     // the task ended or was blocked by others than its attempt
	FeedReopened FeedKind = "reopened" // it had ended or was blocked, and may run again
	FeedSettled  FeedKind = "settled"  // the job ended
	FeedEvent    FeedKind = "event"    // an event row
	FeedLog      FeedKind = "log"      // a line of the log
)

// FeedRow is a row of a feed. What it quotes (from Node on) is read from the rows
// of task, attempt and job, and missing when these are gone.
type FeedRow struct {
	Pos       int64
	Kind      FeedKind
	Name      string // of the event: FeedName
	At        time.Time
	Task      task.ID // zero: the row is of a job
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
	Redact       []string    // what readers do not show of the task's values
	Error        *task.Error // of the attempt, or of the task that is over
	StartedAt    time.Time   // of the attempt, or when the job was created
	NextReadyAt  time.Time   // of a retry
	JobName      string
	Counters     task.JobCounters // of the job when it ended; zero if it has changed since
	Event        EventRow
}

// FeedName is the name of the event that a row tells; that of an event row is its
// own type. "": a newer program wrote the row.
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

// Passes reports whether a row is one that the request asks for.
func (r *FeedRequest) Passes(row *FeedRow) bool {
	return (r.Task.IsZero() || row.Task == r.Task) && (r.Job.IsZero() || row.Job == r.Job) &&
		(r.Queue == "" || row.Queue == r.Queue) && oneOf(r.Types, row.Type) && oneOf(r.Names, row.Name)
}

func oneOf(list []string, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(want string) bool { return FeedMatches(want, name) })
}

// FeedMatches reports whether a name is the one that a request wants, which may stand for all
// that begin alike: "step.*".
func FeedMatches(want, name string) bool {
	prefix, open := strings.CutSuffix(want, "*")
	return want == name || open && strings.HasPrefix(name, prefix)
}
