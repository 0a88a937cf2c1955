package store

import (
	"cmp"
	"time"

	"github.com/goweaver/weaver/task"
)

// What statistics are kept for, and how much of them one call reads or writes.
const (
	StatsSlot        = 10 * time.Second
	StatsMinuteAfter = time.Hour
	StatsHourAfter   = 7 * 24 * time.Hour
	StatsKept        = 90 * 24 * time.Hour

	// StatsLate is how old a slot may be that is written. What lies between it and
	// StatsMinuteAfter is time for a transaction to end.
	StatsLate = StatsMinuteAfter - 5*time.Minute

	MaxStatsWrite = 1000
	StatsLooks    = 50_000
	StatsBite     = 500 // rows that one Collect of them moves
)

// StatsOther stands for the type and queue of what has more of them than are counted
// one by one. It is no type's and no queue's name.
const StatsOther = "(other)"

// StatKey is what attempts are counted by.
type StatKey struct {
	Slot      time.Time // when it begins, a multiple of StatsSlot since 1970
	Worker    WorkerID  // "": several
	Type      string
	Queue     string
	Outcome   task.Outcome
	ErrorKind task.ErrorKind // "": it has no error
}

// SlotOf returns the beginning of the slot of a width that an instant is in: widths are
// counted from 1970.
func SlotOf(at time.Time, width time.Duration) time.Time {
	us, w := at.UnixMicro(), width.Microseconds()
	return time.UnixMicro(us - (us%w+w)%w).UTC()
}

// Compare orders keys by slot and then by the other fields.
func (k *StatKey) Compare(other *StatKey) int {
	return cmp.Or(k.Slot.Compare(other.Slot), cmp.Compare(k.Worker, other.Worker), cmp.Compare(k.Type, other.Type),
		cmp.Compare(k.Queue, other.Queue), cmp.Compare(k.Outcome, other.Outcome), cmp.Compare(k.ErrorKind, other.ErrorKind))
}

// StatRow counts the attempts of a key that ended in its slot.
type StatRow struct {
	StatKey
	Count int64
	Run   Histogram // how long they ran
	Wait  Histogram // how long their tasks were due before
}

// Add adds what another row has counted; the key stays.
func (r *StatRow) Add(other *StatRow) {
	r.Count += other.Count
	r.Run.Merge(other.Run)
	r.Wait.Merge(other.Wait)
}

// StatBy names a field of a StatKey.
type StatBy string

// The fields by which statistics can be asked for.
const (
	ByType      StatBy = "type"
	ByQueue     StatBy = "queue"
	ByOutcome   StatBy = "outcome"
	ByErrorKind StatBy = "error_kind"
	ByWorker    StatBy = "worker"
)

// StatsQuery asks for statistics.
type StatsQuery struct {
	From, To time.Time     // slots that begin in [From, To)
	Step     time.Duration // that rows are added up for, a multiple of StatsSlot; 0: all in one, whose Slot is From
	By       []StatBy      // the fields that rows keep; the others are empty
	Type     string        // only this type; "": all
	Queue    string        // only this queue; "": all
}

// StatsPage is an answer to a StatsQuery.
type StatsPage struct {
	Rows []StatRow // by their keys; Slot is the beginning of the step, a multiple of it since 1970
	// Next is the beginning of the slots that were not read, which may be inside of a
	// step: the same query From there goes on, and rows with the same key add up. Zero:
	// all were read.
	Next time.Time
}

// StatsMerged is what a Collect of statistics did.
type StatsMerged struct {
	Merged  int // rows that are part of coarser ones now
	Dropped int // rows that were removed
}
