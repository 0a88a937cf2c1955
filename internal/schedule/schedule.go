// Package schedule decides what follows for schedules: when one fires next, what becomes of missed
// fires, and what a fire enqueues. Its functions are pure; engines and clients read the row of a
// schedule, call them, and write the row by compare-and-set (store.WriteSchedule).
package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Overlap says what becomes of a fire while the last run has not ended.
type Overlap string

// The overlaps.
const (
	Skip          Overlap = "skip"           // it is skipped
	Queue         Overlap = "queue"          // it waits for the end of all runs before it
	CancelRunning Overlap = "cancel_running" // it cancels the run and waits for its end; it replaces a fire that waits
	Allow         Overlap = "allow"          // it starts a run beside the others
)

// Overlaps returns all overlaps; the first is the default.
func Overlaps() []Overlap { return []Overlap{Skip, Queue, CancelRunning, Allow} }

// DefaultCatchUp is the default of Rule.CatchUp.
const DefaultCatchUp = time.Hour

// MaxQueued is the maximum number of fires of a schedule that wait. Further ones are skipped.
const MaxQueued = 100

// Rule is the definition of a schedule, without its work, and the program that declares it.
type Rule struct {
	calendar.Spec

	Overlap Overlap           `json:"overlap,omitempty"`
	CatchUp calendar.Duration `json:"catch_up,omitzero"` // the latest missed fire is made up for if it is not older

	// Program is the program whose code declares the schedule; "": an operator or a call put it.
	Program     string `json:"program,omitempty"`
	CodeVersion int    `json:"code_version,omitzero"` // of the program
}

// State is what a schedule has done, and does next.
type State struct {
	// Version is the number of the definition: it rises when the rule or the work changes.
	Version int `json:"version"`
	// After is the time up to which all fires are decided.
	After time.Time `json:"after"`
	// Next is the next scheduled time; zero: none. It fires at Next + Delay.
	Next  time.Time         `json:"next,omitzero"`
	Delay calendar.Duration `json:"delay,omitzero"`
	// Zone is the version of the zone's rules by which Next was computed.
	Zone string `json:"zone,omitempty"`
	// Queued are the scheduled times that wait for the end of the last run, in order.
	Queued []time.Time `json:"queued,omitempty"`
	// Last is the last run.
	Last *Run `json:"last,omitempty"`
	// Triggered is the time of the last run that was triggered.
	Triggered time.Time `json:"triggered,omitzero"`
	// Pruned is the time before which the records of fires may be deleted.
	Pruned time.Time `json:"pruned,omitzero"`
	// Paused is the pause; nil: the schedule is active.
	Paused *Pause `json:"paused,omitempty"`
}

// Run is a run of a schedule.
type Run struct {
	At   time.Time `json:"at"` // the scheduled time
	Task task.ID   `json:"task_id,omitzero"`
	Job  task.ID   `json:"job_id,omitzero"`
}

// Pause is the pause of a schedule.
type Pause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Gone is the code version of the program that no longer declares the schedule; 0: a person paused it.
	Gone int `json:"gone,omitzero"`
}

// Schedule is a stored schedule with its documents decoded.
type Schedule struct {
	Row   store.Schedule
	Rule  Rule
	Work  Work
	State State
	When  *calendar.Recurrence
}

// Read decodes the row of a schedule.
func Read(row store.Schedule) (*Schedule, error) {
	s := &Schedule{Row: row}
	fail := func(what string, err error) (*Schedule, error) {
		return nil, fmt.Errorf("schedule %s: its %s cannot be read, a newer program may have written it: %w", row.Name, what, err)
	}
	if err := json.Unmarshal(row.Rule, &s.Rule); err != nil {
		return fail("rule", err)
	}
	if err := json.Unmarshal(row.State, &s.State); err != nil {
		return fail("state", err)
	}
	if sealed, ok := task.SealedOf(row.Work); ok {
		return fail("work", fmt.Errorf("%s", sealed.Why))
	}
	if err := json.Unmarshal(row.Work, &s.Work); err != nil {
		return fail("work", err)
	}
	var err error
	if s.When, err = calendar.New(s.Rule.Spec); err != nil {
		return fail("rule", err)
	}
	return s, nil
}

// encode returns a value as JSON. Text of inputs keeps its <, > and &.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the documents have no values that cannot be encoded, and inputs are valid JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

// overlap returns the overlap, with the default.
func (r *Rule) overlap() Overlap {
	if r.Overlap == "" {
		return Skip
	}
	return r.Overlap
}

// catchUp returns CatchUp, with the default.
func (r *Rule) catchUp() time.Duration {
	if r.CatchUp == 0 {
		return DefaultCatchUp
	}
	return time.Duration(r.CatchUp)
}

// Description has the parts of a schedule for readers, with their defaults.
type Description struct {
	Next, FiresAt          time.Time // zero: none, or paused
	Every, CatchUp, Jitter string
	Overlap                Overlap
}

// Describe returns the parts of the schedule for readers.
func (s *Schedule) Describe() Description {
	d := Description{Overlap: s.Rule.overlap(), CatchUp: calendar.Duration(s.Rule.catchUp()).String()}
	if s.Rule.Every != 0 {
		d.Every = s.Rule.Every.String()
	}
	if s.Rule.Jitter != 0 {
		d.Jitter = s.Rule.Jitter.String()
	}
	if s.State.Paused == nil && !s.State.Next.IsZero() {
		d.Next, d.FiresAt = s.State.Next, s.fireAt()
	}
	return d
}

// Upcoming returns the next n scheduled times that are not decided.
func (s *Schedule) Upcoming(n int) (times []time.Time) {
	for at := s.State.After; len(times) < n; {
		next, ok := s.When.Next(at)
		if !ok {
			break
		}
		times, at = append(times, next), next
	}
	return times
}
