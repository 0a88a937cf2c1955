package store

import (
	"cmp"
	"time"

	"github.com/goweaver/weaver/task"
)

// Limits of statistics.
const (
	StatsSlot        = 10 * time.Second
	StatsMinuteAfter = time.Hour
	StatsHourAfter   = 7 * 24 * time.Hour
	StatsKept        = 90 * 24 * time.Hour

	// StatsLate is the maximum age of a slot to write. The gap between it and StatsMinuteAfter lets
	// running transactions end.
	StatsLate = StatsMinuteAfter - 5*time.Minute

	MaxStatsWrite = 1000
	StatsLooks    = 50_000
	StatsBite     = 500 // rows that one Collect moves
)

// StatsOther replaces the type and queue of rows beyond the number counted individually. No type or
// queue has this name.
const StatsOther = "(other)"

// StatKey is the key of a statistics row.
type StatKey struct {
	Slot      time.Time // its start, a multiple of StatsSlot since 1970
	Worker    WorkerID  // "" for several
	Type      string
	Queue     string
	Outcome   task.Outcome
	ErrorKind task.ErrorKind // "" for no error
}

// SlotOf returns the start of the slot that contains an instant. Slots of a width are counted from
// 1970.
func SlotOf(at time.Time, width time.Duration) time.Time {
	us, w := at.UnixMicro(), width.Microseconds()
	return time.UnixMicro(us - (us%w+w)%w).UTC()
}

// Compare orders keys by slot and then by the other fields.
func (k *StatKey) Compare(other *StatKey) int {
	return cmp.Or(k.Slot.Compare(other.Slot), cmp.Compare(k.Worker, other.Worker), cmp.Compare(k.Type, other.Type),
		cmp.Compare(k.Queue, other.Queue), cmp.Compare(k.Outcome, other.Outcome), cmp.Compare(k.ErrorKind, other.ErrorKind))
}

// StatRow counts the attempts that ended in a slot, by key.
type StatRow struct {
	StatKey
	Count int64
	Run   Histogram // run times
	Wait  Histogram // waiting times from due to claimed
}

// Add adds the counts of another row and keeps the key.
func (r *StatRow) Add(other *StatRow) {
	r.Count += other.Count
	r.Run.Merge(other.Run)
	r.Wait.Merge(other.Wait)
}

// StatBy names a field of a StatKey.
type StatBy string

// The fields to group statistics by.
const (
	ByType      StatBy = "type"
	ByQueue     StatBy = "queue"
	ByOutcome   StatBy = "outcome"
	ByErrorKind StatBy = "error_kind"
	ByWorker    StatBy = "worker"
)

// StatsQuery asks for statistics.
type StatsQuery struct {
	From, To time.Time     // selects slots that begin in [From, To)
	Step     time.Duration // width of the result rows, a multiple of StatsSlot; 0 means one row whose Slot is From
	By       []StatBy      // fields that rows keep; the others are empty
	Type     string        // "" selects all types
	Queue    string        // "" selects all queues
}

// StatsPage is an answer to a StatsQuery.
type StatsPage struct {
	Rows []StatRow // by key; Slot is the start of the step, a multiple of it since 1970
	// Next is the start of the first unread slot, possibly within a step. Repeat the query with it as
	// From, and merge rows with the same key. Zero at the end.
	Next time.Time
}

// StatsMerged is the result of a Collect of statistics.
type StatsMerged struct {
	Merged  int // number of rows merged into coarser ones
	Dropped int // number of rows removed
}
