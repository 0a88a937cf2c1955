package task

import (
	"encoding/json"
	"time"
)

// Priorities run from 1 (first) to 9 (last).
const (
	MinPriority     = 1
	DefaultPriority = 5
	MaxPriority     = 9
)

// Defaults of a task's limits.
const (
	DefaultQueue       = "default"
	DefaultMaxAttempts = 5
	DefaultMaxRepairs  = 2
	DefaultBackoff     = 2 * time.Second
	DefaultBackoffMax  = time.Hour
)

// New is a task about to be stored: a draft that was validated, encoded and
// given its ID. Every field is final; stores add states, times and counters.
type New struct {
	ID            ID
	Type          string
	Queue         string          // never empty
	Input         json.RawMessage // valid JSON
	SchemaVersion int             // ≥ 1
	Priority      int             // 1 … 9

	Delay       time.Duration // due this long after the enqueue, by the store's clock
	At          time.Time     // due at this instant (the user's wish, as given); zero: Delay counts
	ExpireAfter time.Duration // deadline, from the enqueue on; 0: none

	MaxAttempts   int           // ≥ 1
	MaxRepairs    int           // ≥ 0
	MaxCost       int64         // micro-units that its steps may spend; 0: no limit of its own
	MaxNoProgress int           // attempts in a row that record nothing new; 0: DefaultMaxNoProgress
	Backoff       time.Duration // first retry delay
	BackoffMax    time.Duration // cap of the delay
	Timeout       time.Duration // of one attempt; 0: none

	Options

	IdempotencyKey   string // unique per (namespace, type) while the task exists; "": none
	ConcurrencyKey   string // at most ConcurrencyLimit tasks with it run at once; "": none
	ConcurrencyLimit int    // ≥ 1 when ConcurrencyKey is set
	Coalesce         bool   // a task with its key that has not started takes its input instead; it has one of the keys
	RequireSameInput bool   // an existing task with its IdempotencyKey has to have its input; clients look, stores do not

	Labels   map[string]string // for filters
	Metadata map[string]string // for handlers; not filterable
	Redact   []string          // what readers do not show of its values: patterns of paths, "input/card/number"
	Expire   []Expiry          // fields of its input that are stored for a time

	Node         string // name inside its job; "" outside jobs
	Needs        []Edge // edges to tasks of the same submission
	AllowFailure bool   // its failure is not counted against its job, and meets needs as success does: see End.Allowed

	UndoOf ID // an undo task: the task whose steps it undoes; see Record in package store
}

// Task is one task as a reader sees it, whatever the store's layout.
type Task struct {
	ID       ID     `json:"id"`
	JobID    ID     `json:"job_id,omitzero"`
	ParentID ID     `json:"parent_task_id,omitzero"`
	RerunOf  ID     `json:"rerun_of,omitzero"` // the task that this one repeats
	UndoOf   ID     `json:"undo_of,omitzero"`  // of an undo task: the task, a child that succeeded, whose steps it undoes
	Depth    int    `json:"depth,omitempty"`   // below a task that is no child: of decompositions, not of tasks that a step started
	Node     string `json:"node,omitempty"`
	Type     string `json:"task_type"`
	Queue    string `json:"queue"`
	Priority int    `json:"priority"`

	State         State     `json:"state"`
	Waiting       Waiting   `json:"waiting_reason,omitempty"`
	Pause         PauseKind `json:"pause,omitempty"`   // what of it an operator paused
	ReadyAt       time.Time `json:"ready_at,omitzero"` // when it may run next; zero while its needs are open
	RemainingDeps int       `json:"remaining_deps"`    // open needs that it waits for: none of the kind failed once one of those went wrong
	Join          Join      `json:"join,omitempty"`    // what its last attempt had it wait for, while it does; kept when it ends meanwhile

	ValuesDropped bool `json:"values_dropped,omitempty"` // by a rule of retention: input, output, progress, and the values of steps and signals are gone

	// Forgotten: what the task held and said was erased (weaver.Client.Forget). Then
	// ValuesDropped is set too.
	Forgotten bool `json:"forgotten,omitempty"`

	Input         json.RawMessage `json:"input,omitempty"`
	SchemaVersion int             `json:"schema_version"`
	Output        json.RawMessage `json:"output,omitempty"` // succeeded tasks only
	UnblockInput  json.RawMessage `json:"unblock_input,omitempty"`
	UnblockFor    string          `json:"unblock_for,omitempty"` // the question that UnblockInput answers; "": none that has a name
	Error         *Error          `json:"error,omitempty"`       // the last one; nil after success
	Progress      *Progress       `json:"progress,omitempty"`
	StepCount     int             `json:"step_count"`         // completed steps
	WakeSeq       int             `json:"wake_seq,omitempty"` // how many of its waits others have completed

	AttemptNo        int `json:"attempt_no"`    // numbers the history, only grows
	AttemptCount     int `json:"attempt_count"` // counts against MaxAttempts
	MaxAttempts      int `json:"max_attempts"`
	CrashCount       int `json:"crash_count"`       // leases lost in a row to a stopped process
	QuarantineLosses int `json:"quarantine_losses"` // leases lost in quarantine beside others (R7)
	InternalCount    int `json:"internal_count"`    // engine errors in a row
	RepairCount      int `json:"repair_count"`
	MaxRepairs       int `json:"max_repairs"`
	IdleAttempts     int `json:"idle_attempts,omitempty"`   // in a row that recorded nothing new
	MaxNoProgress    int `json:"max_no_progress,omitempty"` // limit of IdleAttempts; 0: DefaultMaxNoProgress

	Cost    int64 `json:"cost,omitempty"`     // micro-units that its steps have spent; a retry does not undo them
	MaxCost int64 `json:"max_cost,omitempty"` // 0: no limit of its own

	Backoff    time.Duration `json:"backoff_ns"`
	BackoffMax time.Duration `json:"backoff_max_ns"`
	Timeout    time.Duration `json:"timeout_ns,omitempty"`

	Options
	AllowFailure bool `json:"allow_failure,omitempty"`

	IdempotencyKey   string            `json:"idempotency_key,omitempty"`
	ConcurrencyKey   string            `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int               `json:"concurrency_limit,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	Redact           []string          `json:"redact,omitempty"` // what readers do not show of its values
	Expire           []Expiry          `json:"expire,omitempty"` // fields of its input that are stored for a time

	CancelRequested bool      `json:"cancel_requested,omitempty"` // to end: it runs, is due to clean up, or has ended since
	CancelKind      ErrorKind `json:"cancel_kind,omitempty"`      // cancelled, deadline, parent_ended, budget or job_budget
	CancelBy        string    `json:"cancel_by,omitempty"`
	CancelReason    string    `json:"cancel_reason,omitempty"`

	Epoch          int64     `json:"lease_epoch"`
	LeaseID        LeaseID   `json:"lease_id,omitzero"` // set if and only if running
	LeasedBy       string    `json:"leased_by,omitempty"`
	LeaseExpiresAt time.Time `json:"lease_expires_at,omitzero"`
	StartedVersion int       `json:"started_version,omitempty"` // code version of the first attempt

	UndoOpen int        `json:"undo_open,omitempty"` // steps that began, with an undo, and were not undone
	UndoNo   int        `json:"-"`                   // number of the last beginning of such a step
	Undo     *UndoPhase `json:"undo,omitempty"`      // in its undo phase, or when that was given up

	DeadlineAt time.Time `json:"deadline_at,omitzero"`
	CreatedAt  time.Time `json:"created_at"` // the ID's time
	UpdatedAt  time.Time `json:"updated_at"`
	StartedAt  time.Time `json:"started_at,omitzero"` // of the current or last attempt
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// End is how the task ended, or that it has not.
func (t *Task) End() End {
	e := End{State: t.State, AllowFailure: t.AllowFailure}
	if t.Error != nil {
		e.Kind = t.Error.Kind
	}
	return e
}

// Error is a recorded failure.
type Error struct {
	Kind    ErrorKind `json:"kind"`
	Message string    `json:"message"`
	Code    string    `json:"code,omitempty"`  // that the handler attached, for programs
	Step    string    `json:"step,omitempty"`  // the step that failed, when one did
	Stack   string    `json:"stack,omitempty"` // of a panic
	Ask     string    `json:"ask,omitempty"`   // the question that blocked the task, by its name (weaver.Ask)

	// AskShape is what the answer to Ask must look like: the name of a basic type,
	// [ELEMENT], {"FIELD": …} or {"": ELEMENT} for a map. Empty: the program of the
	// handler decides.
	AskShape string `json:"ask_shape,omitempty"`
	// AskUntil is until when the task waits for the answer to Ask; zero: for ever.
	AskUntil time.Time `json:"ask_until,omitzero"`
}

// Progress is the latest progress report of a task. Total 0 means unknown.
type Progress struct {
	Current float64 `json:"current"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Attempt is one execution of a handler under one lease.
type Attempt struct {
	TaskID      ID        `json:"task_id"`
	No          int       `json:"attempt_no"`
	Epoch       int64     `json:"lease_epoch"`
	LeaseID     LeaseID   `json:"lease_id"`
	Worker      string    `json:"worker,omitempty"`
	CodeVersion int       `json:"code_version,omitempty"`
	Handler     string    `json:"handler,omitempty"`        // that a router chose, by name; "": the one without a name
	RouteReason string    `json:"handler_reason,omitempty"` // why; "": there was no choice
	StartedAt   time.Time `json:"started_at"`
	FinishedAt  time.Time `json:"finished_at,omitzero"` // zero: it runs
	Outcome     Outcome   `json:"outcome,omitempty"`    // empty: it runs
	Error       *Error    `json:"error,omitempty"`
	OutcomeHash string    `json:"outcome_hash,omitempty"`
	StepsRun    []string  `json:"steps_run,omitempty"` // step functions this attempt started, in order; at most the first 1,000

	// StepsUnreached names completed steps of earlier attempts that this one
	// never asked for: a renamed or removed step, or a name that changes.
	StepsUnreached []string `json:"steps_unreached,omitempty"`

	Notes map[string]string `json:"notes,omitempty"` // that its handler or a plug-in kept with it
}

// Decision is what was chosen after an attempt, and why.
type Decision struct {
	TaskID      ID           `json:"task_id"`
	AttemptNo   int          `json:"attempt_no"`
	At          time.Time    `json:"decided_at"`
	Kind        DecisionKind `json:"kind"`
	NextReadyAt time.Time    `json:"next_ready_at,omitzero"`
	ChildIDs    []ID         `json:"child_task_ids,omitempty"` // decompose: the first 1,000
	Reason      Reason       `json:"reason"`
}

// Reason is the evidence behind a decision: enough to decide again and get
// the same answer.
type Reason struct {
	Policy   string         `json:"policy"`             // which decider spoke
	Version  int            `json:"version"`            // of that policy
	Text     string         `json:"text"`               // one sentence for people
	Evidence map[string]any `json:"evidence,omitempty"` // counters and attempts that were read; of a store's, a number is a float64, or a json.Number where that would change its digits
	Change   string         `json:"change,omitempty"`   // what is different next time

	// Fallback is why the default decided and not the Decider: it panicked, or chose
	// what cannot be done. Said is the kind that it chose, "" if it chose none.
	Fallback string       `json:"fallback,omitempty"`
	Said     DecisionKind `json:"said,omitempty"`

	// Asked is what the Decider was asked with, beside what the task and its attempt
	// keep. nil: the decision is of an older program.
	Asked *Asked `json:"asked,omitempty"`
}

// Asked is what a Decider sees that no other row of its task keeps: the counters as
// they were when the attempt began, and how the handler classified its error.
type Asked struct {
	AttemptCount int `json:"attempt_count,omitempty"`
	CrashCount   int `json:"crash_count,omitempty"`
	RepairCount  int `json:"repair_count,omitempty"`
	StepCount    int `json:"step_count,omitempty"`
	IdleAttempts int `json:"idle_attempts,omitempty"`

	CanRepair  bool          `json:"can_repair,omitempty"`
	Permanent  bool          `json:"permanent,omitempty"`
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	TimeLeft   time.Duration `json:"time_left_ns,omitempty"` // to the deadline; 0: none
}

// StepState is how a step try ended.
type StepState string

// A step is completed once and for all, or one of its tries failed, or it waits.
const (
	StepCompleted StepState = "completed"
	StepFailed    StepState = "failed"
	StepWaiting   StepState = "waiting" // for a signal, or for the children of a call; it becomes completed
	StepBegun     StepState = "begun"   // a step with an undo whose end is not on record; it becomes completed
)

// StepKind says what a name in the one name space of a task's steps is for.
type StepKind string

// The kinds of steps.
const (
	KindStep  StepKind = "step"
	KindSleep StepKind = "sleep" // WakeAt is its value
	KindStart StepKind = "start" // its value is the id of the enqueued task
	// KindCleanup is a step that undoes others: it is recorded although its task
	// was asked to cancel.
	KindCleanup StepKind = "cleanup"
	KindAsk     StepKind = "ask" // its value is the answer that an unblock gave

	KindSignal StepKind = "signal" // its value is the payload of the signal; none: the wait timed out
	KindCall   StepKind = "call"   // it has no value: its children have what they gave
	KindRace   StepKind = "race"   // its value is the number of the wait that came first
	KindEach   StepKind = "each"   // its value says which children ended next

	KindUndo  StepKind = "undo"  // a try to undo the step of its name and round
	KindPoint StepKind = "point" // a point of no return; it has no value
)

// Step is one recorded try of a step. A completed one is never changed, and its
// function never runs again for the task; only the end of a sleep that a task is
// in moves when an operator reschedules the task.
type Step struct {
	TaskID      ID              `json:"task_id"`
	Name        string          `json:"name"`
	Index       int             `json:"index"` // given at the first call, stable across attempts
	Kind        StepKind        `json:"kind"`
	State       StepState       `json:"state"`
	AttemptNo   int             `json:"attempt_no"`       // 0: taken over from the task that this one repeats
	Try         int             `json:"try"`              // 1, 2, … inside the attempt
	Value       json.RawMessage `json:"value,omitempty"`  // completed
	Error       *Error          `json:"error,omitempty"`  // failed, or completed by RecordError
	WakeAt      time.Time       `json:"wake_at,omitzero"` // of a sleep; of a wait for a signal its timeout, zero: none
	StartedAt   time.Time       `json:"started_at"`
	CompletedAt time.Time       `json:"completed_at,omitzero"` // zero: it waits
	Cost        int64           `json:"cost,omitempty"`        // micro-units that the try spent
	Redact      []string        `json:"redact,omitempty"`      // paths in Value that readers do not show

	Signal         string `json:"signal,omitempty"`          // KindSignal: the name of the signal that it waits, or waited, for
	Children       int    `json:"children,omitempty"`        // KindCall: how many there are in all; the store fills it in
	ChildrenLeft   int    `json:"children_left,omitempty"`   // KindCall: how many have not ended, or are not stored yet
	ChildrenStored int    `json:"children_stored,omitempty"` // KindCall: how many are stored

	Undo   UndoState `json:"undo,omitempty"`    // of the step, or of the cleanup that a retry took off
	UndoNo int       `json:"undo_no,omitempty"` // steps are undone in descending order of it
	Round  int       `json:"round,omitempty"`   // how often the step, which has an undo, was undone or skipped before
}

// RanCleanup reports whether the step is a completed cleanup that does not run again.
func (s *Step) RanCleanup() bool {
	return s.Kind == KindCleanup && s.State == StepCompleted && !s.Past()
}

// Past reports whether the step no longer counts as run: it was undone or skipped, or it is
// a cleanup that ran before a retry that kept the steps of its task, and runs again.
func (s *Step) Past() bool { return s.Undo == UndoUndone || s.Undo == UndoSkipped }

// Checkpoint is the latest value that a task keeps under a name. Unlike the value
// of a step it is replaced.
type Checkpoint struct {
	TaskID    ID              `json:"task_id"`
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
	AttemptNo int             `json:"attempt_no"` // that saved it
	SavedAt   time.Time       `json:"saved_at"`
}

// Signal is a message to one task.
type Signal struct {
	TaskID  ID              `json:"task_id"`
	Seq     int             `json:"seq"` // 1, 2, … of its task
	Name    string          `json:"name"`
	Key     string          `json:"key"` // one signal per task, name and key
	Payload json.RawMessage `json:"payload"`
	SentAt  time.Time       `json:"sent_at"`
	Actor   string          `json:"actor,omitempty"`
	Step    string          `json:"step,omitempty"` // the wait that took it; "": none yet
}
