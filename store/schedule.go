package store

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxScheduleFires is the maximum number of fires of one WriteSchedule, and of one page.
const MaxScheduleFires = 1000

// Schedule is the row of a schedule. A store does not read its three documents: engines and clients
// decide what follows from them, and write the row by compare-and-set (WriteSchedule).
type Schedule struct {
	Name     string
	Revision int64           // raised by each write; that of a new row is larger than that of a deleted one
	LookAt   time.Time       // when an engine must look at it; zero: never (paused, or no further fire)
	Rule     json.RawMessage // when it fires, and what declared it
	Work     json.RawMessage // what a fire enqueues; a codec seals it
	State    json.RawMessage // its next fire, its last run, its pause

	CreatedAt, UpdatedAt time.Time
}

// FireKind is what became of a scheduled time.
type FireKind string

// The kinds of fires.
const (
	FireFired   FireKind = "fired"   // it enqueued a run
	FireSkipped FireKind = "skipped" // it enqueued nothing (Reason)
	FireQueued  FireKind = "queued"  // it waits for the end of an earlier run
)

// ScheduleFire records what became of a scheduled time, or of several consecutive ones that were
// skipped for the same reason.
type ScheduleFire struct {
	At     time.Time // the scheduled time, or the first of several
	Until  time.Time // the last of several; otherwise equal to At
	Count  int       // number of scheduled times, ≥ 1
	Kind   FireKind
	Reason string // why it was skipped, or fired out of turn; "": it fired in turn
	By     string // who asked for it (trigger, backfill); "": the schedule

	Task task.ID // the run, if it is a task
	Job  task.ID // the run, if it is a job

	RecordedAt time.Time
}

// Firing is a fire with the run that it enqueues.
type Firing struct {
	ScheduleFire
	Run *Submission // nil: none
}

// ScheduleFilter selects schedules. Its zero value selects all of them, by name.
type ScheduleFilter struct {
	Name string // only this schedule; "": all

	Due   bool   // only those with LookAt at or before the store's time, earliest first
	After string // with neither Name nor Due: only names greater than this
	Limit int    // maximum number of schedules, and of fires; 0: 100, at most 1,000

	Fires    bool      // with Name: also its fires, newest first
	From, To time.Time // of the fires: at or after From, before To; zero: no limit
}

// SchedulePage is the answer to a ScheduleFilter.
type SchedulePage struct {
	Schedules []Schedule
	Fires     []ScheduleFire
	Now       time.Time     // the store's time
	Next      time.Duration // with Due: time until the next LookAt after those on the page; 0: now; < 0: none
}

// WriteSchedule creates, changes or deletes a schedule, and enqueues runs in the same transaction. It
// changes nothing unless the row's revision is Revision (ErrChanged), and the store's time has reached
// NotBefore (ErrState).
//
// For each of Fires it stores Run, as Enqueue does, with Task or Job set to the run (an existing one
// if the idempotency key is in use), and a record, which replaces a record with the same At that did
// not fire. A time that has fired is ErrChanged, and nothing is written. Fires are in ascending order
// of At.
type WriteSchedule struct {
	Audit
	Verb      string // of the audit entry, whose target is schedule/NAME; "": no entry
	Name      string
	Revision  int64     // of the row read; 0: the schedule must not exist
	NotBefore time.Time // zero: no limit
	Delete    bool      // the row and the records of its fires; runs stay

	LookAt            time.Time
	Rule, Work, State json.RawMessage // nil: unchanged

	Fires []Firing
	Prune time.Time // deletes records before this, the oldest 1,000 at most; zero: none
}
