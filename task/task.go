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

// New is a task about to be stored: a validated and encoded draft with an ID. Every field is final; stores add
// states, times and counters.
type New struct {
	ID            ID
	Type          string
	Queue         string          // never empty
	Input         json.RawMessage // valid JSON
	SchemaVersion int             // ≥ 1
	Priority      int             // 1 … 9

	Delay       time.Duration // due this long after the enqueue, by the store's clock
	At          time.Time     // due at this instant, as the user gave it; zero: Delay applies
	ExpireAfter time.Duration // deadline, counted from the enqueue; 0: no deadline

	MaxAttempts   int           // ≥ 1
	MaxRepairs    int           // ≥ 0
	MaxCost       int64         // micro-units that its steps may spend; 0: no limit of its own
	MaxNoProgress int           // consecutive attempts without a new record; 0: DefaultMaxNoProgress
	Backoff       time.Duration // first retry delay
	BackoffMax    time.Duration // maximum retry delay
	Timeout       time.Duration // of one attempt; 0: no timeout

	Options

	IdempotencyKey   string // unique per (namespace, type) while the task exists; optional
	ConcurrencyKey   string // at most ConcurrencyLimit tasks with this key run at once; optional
	ConcurrencyLimit int    // ≥ 1 when ConcurrencyKey is set
	Coalesce         bool   // an unstarted task with the same key takes this input instead; needs one of the keys
	RequireSameInput bool   // an existing task with the same IdempotencyKey must have the same input; checked by clients, not by stores

	Labels   map[string]string // filterable
	Metadata map[string]string // for handlers; not filterable
	Redact   []string          // values hidden from readers: patterns of paths, "input/card/number"
	Expire   []Expiry          // fields of the input with a retention time

	Node         string // name inside its job; "" outside jobs
	Needs        []Edge // edges to tasks of the same submission
	AllowFailure bool   // its failure does not count against its job and satisfies edges of the kind success: see End.Allowed

	UndoOf ID // of an undo task: the task whose steps it undoes; see Record in package store
}

// Task is a task as a reader sees it, independent of the store's layout.
type Task struct {
	ID       ID     `json:"id"`
	JobID    ID     `json:"job_id,omitzero"`
	ParentID ID     `json:"parent_task_id,omitzero"`
	RerunOf  ID     `json:"rerun_of,omitzero"` // the task that this task repeats
	UndoOf   ID     `json:"undo_of,omitzero"`  // of an undo task: the succeeded child whose steps it undoes
	Depth    int    `json:"depth,omitempty"`   // level below a task that is not a child; decompositions count, tasks started by a step do not
	Node     string `json:"node,omitempty"`
	Type     string `json:"task_type"`
	Queue    string `json:"queue"`
	Priority int    `json:"priority"`

	State         State     `json:"state"`
	Waiting       Waiting   `json:"waiting_reason,omitempty"`
	Pause         PauseKind `json:"pause,omitempty"`   // the pause that applies to it
	ReadyAt       time.Time `json:"ready_at,omitzero"` // when it may run next; zero while its needs are open
	RemainingDeps int       `json:"remaining_deps"`    // open needs that it waits for; edges of the kind failed stop counting once one is satisfied
	Join          Join      `json:"join,omitempty"`    // the wait that its last attempt asked for, while it waits; kept if the task ends during the wait

	ValuesDropped bool `json:"values_dropped,omitempty"` // by retention: input, output, progress, and the values of steps and signals are gone

	// Forgotten reports that the content of the task was erased (weaver.Client.Forget). ValuesDropped is then set
	// too.
	Forgotten bool `json:"forgotten,omitempty"`

	Input         json.RawMessage `json:"input,omitempty"`
	SchemaVersion int             `json:"schema_version"`
	Output        json.RawMessage `json:"output,omitempty"` // succeeded tasks only
	UnblockInput  json.RawMessage `json:"unblock_input,omitempty"`
	UnblockFor    string          `json:"unblock_for,omitempty"` // name of the question that UnblockInput answers; "": the question has no name
	Error         *Error          `json:"error,omitempty"`       // of the last failed attempt; nil after success
	Progress      *Progress       `json:"progress,omitempty"`
	StepCount     int             `json:"step_count"`         // completed steps
	WakeSeq       int             `json:"wake_seq,omitempty"` // number of its waits that others have completed

	AttemptNo        int `json:"attempt_no"`    // number of the last attempt, only grows
	AttemptCount     int `json:"attempt_count"` // attempts that count against MaxAttempts
	MaxAttempts      int `json:"max_attempts"`
	CrashCount       int `json:"crash_count"`       // consecutive leases lost to a stopped process
	QuarantineLosses int `json:"quarantine_losses"` // leases lost while in quarantine with other tasks (R7)
	InternalCount    int `json:"internal_count"`    // consecutive engine errors
	RepairCount      int `json:"repair_count"`
	MaxRepairs       int `json:"max_repairs"`
	IdleAttempts     int `json:"idle_attempts,omitempty"`   // consecutive attempts without a new record
	MaxNoProgress    int `json:"max_no_progress,omitempty"` // limit of IdleAttempts; 0: DefaultMaxNoProgress

	Cost    int64 `json:"cost,omitempty"`     // micro-units that its steps have spent; a retry does not reset them
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
	Redact           []string          `json:"redact,omitempty"` // values hidden from readers
	Expire           []Expiry          `json:"expire,omitempty"` // fields of the input with a retention time

	CancelRequested bool      `json:"cancel_requested,omitempty"` // set while it runs or is due to clean up, and after its end
	CancelKind      ErrorKind `json:"cancel_kind,omitempty"`      // cancelled, deadline, parent_ended, budget or job_budget
	CancelBy        string    `json:"cancel_by,omitempty"`
	CancelReason    string    `json:"cancel_reason,omitempty"`

	Epoch          int64     `json:"lease_epoch"`
	LeaseID        LeaseID   `json:"lease_id,omitzero"` // set if and only if running
	LeasedBy       string    `json:"leased_by,omitempty"`
	LeaseExpiresAt time.Time `json:"lease_expires_at,omitzero"`
	StartedVersion int       `json:"started_version,omitempty"` // code version of the first attempt

	UndoOpen int        `json:"undo_open,omitempty"` // steps with an undo that began and were not undone
	UndoNo   int        `json:"-"`                   // number of the last such step
	Undo     *UndoPhase `json:"undo,omitempty"`      // set during the undo phase, and after the undo was given up

	DeadlineAt time.Time `json:"deadline_at,omitzero"`
	CreatedAt  time.Time `json:"created_at"` // the time of the ID
	UpdatedAt  time.Time `json:"updated_at"`
	StartedAt  time.Time `json:"started_at,omitzero"` // of the current or last attempt
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// End returns how the task ended; its State is not terminal if the task has not ended.
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
	Code    string    `json:"code,omitempty"`  // attached by the handler, for programs
	Step    string    `json:"step,omitempty"`  // the failed step, if any
	Stack   string    `json:"stack,omitempty"` // of a panic
	Ask     string    `json:"ask,omitempty"`   // name of the question that blocked the task (weaver.Ask)

	// AskShape describes the form of the answer to Ask: the name of a basic type, [ELEMENT], {"FIELD": …}, or {"":
	// ELEMENT} for a map. If it is empty, the handler's program validates the answer.
	AskShape string `json:"ask_shape,omitempty"`
	// AskUntil is the time at which the wait for the answer to Ask ends; zero: never.
	AskUntil time.Time `json:"ask_until,omitzero"`
}

// Progress is the latest progress report of a task. A zero Total means unknown.
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
	Handler     string    `json:"handler,omitempty"`        // name of the handler that a router chose; "": the unnamed handler
	RouteReason string    `json:"handler_reason,omitempty"` // the router's reason; "": no router chose
	StartedAt   time.Time `json:"started_at"`
	FinishedAt  time.Time `json:"finished_at,omitzero"` // zero while it runs
	Outcome     Outcome   `json:"outcome,omitempty"`    // empty while it runs
	Error       *Error    `json:"error,omitempty"`
	OutcomeHash string    `json:"outcome_hash,omitempty"`
	StepsRun    []string  `json:"steps_run,omitempty"` // step functions that this attempt started, in order; at most the first 1,000

	// StepsUnreached lists completed steps of earlier attempts that this attempt never reached: a renamed or removed
	// step, or a name that changes.
	StepsUnreached []string `json:"steps_unreached,omitempty"`

	Notes map[string]string `json:"notes,omitempty"` // recorded by its handler or a plug-in
}

// Decision is the action chosen after an attempt, with its reason.
type Decision struct {
	TaskID      ID           `json:"task_id"`
	AttemptNo   int          `json:"attempt_no"`
	At          time.Time    `json:"decided_at"`
	Kind        DecisionKind `json:"kind"`
	NextReadyAt time.Time    `json:"next_ready_at,omitzero"`
	ChildIDs    []ID         `json:"child_task_ids,omitempty"` // of a decompose: the first 1,000
	Reason      Reason       `json:"reason"`
}

// Reason is the evidence of a decision: enough to repeat the decision with the same result.
type Reason struct {
	Policy   string         `json:"policy"`             // name of the decider
	Version  int            `json:"version"`            // of that policy
	Text     string         `json:"text"`               // one sentence for people
	Evidence map[string]any `json:"evidence,omitempty"` // counters and attempts that were read; numbers read from a store are float64, or json.Number where float64 would lose digits
	Change   string         `json:"change,omitempty"`   // difference of the next attempt

	// Fallback explains why the default decided instead of the Decider: the Decider panicked or its decision was not
	// possible. Said is the kind that the Decider chose, "" if it chose no kind.
	Fallback string       `json:"fallback,omitempty"`
	Said     DecisionKind `json:"said,omitempty"`

	// Asked holds the input of the Decider that neither the task nor its attempt keeps. It is nil for a decision of
	// an older program.
	Asked *Asked `json:"asked,omitempty"`
}

// Asked is the part of a Decider's input that no other row keeps: the counters at the beginning of the attempt and
// the handler's classification of its error.
type Asked struct {
	AttemptCount int `json:"attempt_count,omitempty"`
	CrashCount   int `json:"crash_count,omitempty"`
	RepairCount  int `json:"repair_count,omitempty"`
	StepCount    int `json:"step_count,omitempty"`
	IdleAttempts int `json:"idle_attempts,omitempty"`

	CanRepair  bool          `json:"can_repair,omitempty"`
	Permanent  bool          `json:"permanent,omitempty"`
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	TimeLeft   time.Duration `json:"time_left_ns,omitempty"` // until the deadline; 0: no deadline
}

// StepState is the state of a step try.
type StepState string

// A step completes once and stays completed; a try of a step may also fail or wait.
const (
	StepCompleted StepState = "completed"
	StepFailed    StepState = "failed"
	StepWaiting   StepState = "waiting" // waits for a signal or for the children of a call; becomes completed
	StepBegun     StepState = "begun"   // a step with an undo whose result is not recorded; becomes completed
)

// StepKind is the operation behind a step name. All kinds share one name space per task.
type StepKind string

// The kinds of steps.
const (
	KindStep  StepKind = "step"
	KindSleep StepKind = "sleep" // its value is WakeAt
	KindStart StepKind = "start" // its value is the ID of the enqueued task
	// KindCleanup is a step that undoes others. It is recorded even if a cancel of its task was requested.
	KindCleanup StepKind = "cleanup"
	KindAsk     StepKind = "ask" // its value is the answer of an unblock

	KindSignal StepKind = "signal" // its value is the payload of the signal; empty if the wait timed out
	KindCall   StepKind = "call"   // has no value: its children hold the outputs
	KindRace   StepKind = "race"   // its value is the number of the wait that ended first
	KindEach   StepKind = "each"   // its value lists the children that ended next

	KindUndo  StepKind = "undo"  // a try to undo the step of its name and round
	KindPoint StepKind = "point" // a point of no return; has no value
)

// Step is a recorded try of a step. A completed step never changes, and its function never runs again for the task.
// The one exception is a sleep in progress, whose end an operator can reschedule.
type Step struct {
	TaskID      ID              `json:"task_id"`
	Name        string          `json:"name"`
	Index       int             `json:"index"` // assigned at the first call, stable across attempts
	Kind        StepKind        `json:"kind"`
	State       StepState       `json:"state"`
	AttemptNo   int             `json:"attempt_no"`       // 0: taken over from the task that this task repeats
	Try         int             `json:"try"`              // 1, 2, … within the attempt
	Value       json.RawMessage `json:"value,omitempty"`  // of a completed step
	Error       *Error          `json:"error,omitempty"`  // of a failed step, or one completed by RecordError
	WakeAt      time.Time       `json:"wake_at,omitzero"` // of a sleep; timeout of a wait for a signal, zero: no timeout
	StartedAt   time.Time       `json:"started_at"`
	CompletedAt time.Time       `json:"completed_at,omitzero"` // zero while it waits
	Cost        int64           `json:"cost,omitempty"`        // micro-units spent by the try
	Redact      []string        `json:"redact,omitempty"`      // paths in Value hidden from readers

	Signal         string `json:"signal,omitempty"`          // KindSignal: the name of the awaited signal
	Children       int    `json:"children,omitempty"`        // KindCall: total number of children; set by the store
	ChildrenLeft   int    `json:"children_left,omitempty"`   // KindCall: children that have not ended or are not stored yet
	ChildrenStored int    `json:"children_stored,omitempty"` // KindCall: stored children

	Undo   UndoState `json:"undo,omitempty"`    // of the step, or of a cleanup that a retry removed
	UndoNo int       `json:"undo_no,omitempty"` // steps are undone in descending order of UndoNo
	Round  int       `json:"round,omitempty"`   // number of earlier undos or skips of a step with an undo
}

// RanCleanup reports whether the step is a completed cleanup that does not run again.
func (s *Step) RanCleanup() bool {
	return s.Kind == KindCleanup && s.State == StepCompleted && !s.Past()
}

// Past reports whether the step no longer counts as run. It was undone or skipped, or it is a cleanup that runs again
// because a retry kept the steps of its task.
func (s *Step) Past() bool { return s.Undo == UndoUndone || s.Undo == UndoSkipped }

// Checkpoint is the latest value that a task saved under a name. Unlike the value of a step it is replaced.
type Checkpoint struct {
	TaskID    ID              `json:"task_id"`
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
	AttemptNo int             `json:"attempt_no"` // the attempt that saved it
	SavedAt   time.Time       `json:"saved_at"`
}

// Signal is a message to one task.
type Signal struct {
	TaskID  ID              `json:"task_id"`
	Seq     int             `json:"seq"` // 1, 2, … per task
	Name    string          `json:"name"`
	Key     string          `json:"key"` // one signal per task, name and key
	Payload json.RawMessage `json:"payload"`
	SentAt  time.Time       `json:"sent_at"`
	Actor   string          `json:"actor,omitempty"`
	Step    string          `json:"step,omitempty"` // the wait that consumed it; "" while unconsumed
}
