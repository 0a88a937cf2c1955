// Package event defines the events of tasks and jobs, one Go type each, and the Sink that receives them. The set is
// closed.
//
// Events are emitted after the fact: task.started follows the commit of the claim, completed and failed follow the
// commit of the write. Only step.started comes just before the step's function runs. Events may be lost with the
// process, and no decision depends on them. [Encoder] writes them as JSON.
package event

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/goweaver/weaver/task"
)

// Event is one of the types of this package; no other type implements it.
type Event interface {
	// Type returns the event's name, for example "task.started".
	Type() string
	// Head returns the header.
	Head() Header
	sealed()
}

// Header holds the fields that all events share.
type Header struct {
	At        time.Time `json:"timestamp,omitzero"`
	Namespace string    `json:"namespace,omitempty"`
	TaskID    task.ID   `json:"task_id,omitzero"`
	TaskType  string    `json:"task_type,omitempty"`
	JobID     task.ID   `json:"job_id,omitzero"`
	Node      string    `json:"node,omitempty"` // the task's name inside its job
	AttemptNo int       `json:"attempt_no,omitempty"`
	Sequence  int64     `json:"sequence,omitempty"` // order of the events of a task: see Sequence
}

// Head implements Event.
func (h Header) Head() Header { return h }
func (Header) sealed()        {}

// Sink receives events synchronously, in order per task: the next attempt of a task begins after the sink received
// the end of the previous attempt. Events of concurrent steps, and of an attempt that lost its lease, arrive as they
// happen; their Sequence orders them. A slow or panicking sink delays only its task. A Sink must be safe for
// concurrent use.
type Sink interface {
	Emit(Event)
}

// SinkFunc lets a function be a Sink.
type SinkFunc func(Event)

// Emit implements Sink.
func (f SinkFunc) Emit(e Event) { f(e) }

// The events of a task.
type (
	// TaskEnqueued reports that the task was stored. Readers derive it (Client.Subscribe); engines do not emit it.
	TaskEnqueued struct {
		Header
		Queue string          `json:"queue"`
		Input json.RawMessage `json:"input,omitempty"`
	}
	// TaskReopened reports that an ended or blocked task may run again. Readers derive it (Client.Events); engines do
	// not emit it.
	TaskReopened struct{ Header }
	// TaskStarted follows the commit of the claim.
	TaskStarted struct {
		Header
		Input json.RawMessage `json:"input,omitempty"`
	}
	// TaskSucceeded follows the commit of the last write.
	TaskSucceeded struct {
		Header
		Output   json.RawMessage `json:"output,omitempty"`
		Duration time.Duration   `json:"duration_ns"` // of this attempt
	}
	// TaskFailed reports the final failure of the task.
	TaskFailed struct {
		Header
		Error    task.Error    `json:"error"`
		Allowed  bool          `json:"allowed,omitempty"` // the job allows the failure
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskRetrying reports a failed attempt that will be followed by another.
	TaskRetrying struct {
		Header
		Error    task.Error    `json:"error"`
		Delay    time.Duration `json:"delay_ns"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskSuspended reports that the attempt left its worker to wait for a time, a signal, its children or another
	// task. A zero WakeAt means that no time ends the wait. Client.Events does not know WakeAt of sleeps and waits
	// for signals, and leaves it zero. With an Error, the attempt failed and the decision was to wait. In an undo
	// phase, the undo is incomplete and will be retried.
	TaskSuspended struct {
		Header
		Waiting  task.Waiting  `json:"waiting_reason,omitempty"` // sleep, signal, children, deps, repair or undo
		WakeAt   time.Time     `json:"wake_at,omitzero"`
		Error    *task.Error   `json:"error,omitempty"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskUndoing reports that the task is decided but has effects to undo. It ends with the state EndsAs after the
	// undo (task.UndoPhase).
	TaskUndoing struct {
		Header
		Error    task.Error    `json:"error"`
		EndsAs   task.State    `json:"ends_as,omitempty"` // "": unknown to the reader
		Duration time.Duration `json:"duration_ns"`       // of the attempt that ended the task
	}
	// TaskBlocked reports that the task needs a person.
	TaskBlocked struct {
		Header
		Error    task.Error    `json:"error"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskCancelled reports that a running task ended by a cancel or its deadline.
	TaskCancelled struct {
		Header
		Error    task.Error    `json:"error"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskReleased reports that an attempt was given back unfinished, without counting. Its engine stops or could no
	// longer rely on the lease, or its worker cannot run the task; in that case Error is set. The task is due again
	// at once, with Error after a short delay.
	TaskReleased struct {
		Header
		Error    *task.Error   `json:"error,omitempty"` // task.KindWorker
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskLeaseLost reports that an attempt lost its lease. A live worker emits the event when it discards the result
	// of the attempt. The process that took the lease away emits it with the resulting State of the task.
	TaskLeaseLost struct {
		Header
		State    task.State    `json:"state,omitempty"`
		Crash    bool          `json:"crash,omitempty"` // counts against the crash budget
		Duration time.Duration `json:"duration_ns,omitempty"`
	}
)

// The events inside an attempt.
type (
	// StepStarted precedes the run of the step's function.
	StepStarted struct {
		Header
		Step  string `json:"step"`
		Index int    `json:"index"`
		Try   int    `json:"try"`
		Undo  bool   `json:"undo,omitempty"` // the undo of the step
	}
	// StepCompleted follows the commit of the step's value.
	StepCompleted struct {
		Header
		Step     string          `json:"step"`
		Index    int             `json:"index"`
		Output   json.RawMessage `json:"output,omitempty"`
		Duration time.Duration   `json:"duration_ns"`
		Undo     bool            `json:"undo,omitempty"` // the undo of the step
	}
	// StepFailed follows the commit of the failed try.
	StepFailed struct {
		Header
		Step     string        `json:"step"`
		Index    int           `json:"index"`
		Try      int           `json:"try"`
		Error    task.Error    `json:"error"`
		Duration time.Duration `json:"duration_ns"`
		Undo     bool          `json:"undo,omitempty"` // the undo of the step
	}
	// Progress follows the commit of a progress report. Reports within 200 ms are combined: the latest is written and
	// emitted.
	Progress struct {
		Header
		task.Progress
	}
	// StreamChunk is a piece of the handler's live output (weaver.Emit). It is stored only if the engine keeps events
	// (weaver.PersistEvents).
	StreamChunk struct {
		Header
		Stream string `json:"stream"` // name of the handler's stream, for example "stdout"
		Data   any    `json:"data"`
	}
	// LogWritten is a line of the task's log. Step is empty outside steps.
	LogWritten struct {
		Header
		Step    string         `json:"step,omitempty"`
		Level   slog.Level     `json:"level"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data,omitempty"`
	}
)

// Type implements Event.
func (TaskEnqueued) Type() string { return "task.enqueued" }

// Type implements Event.
func (TaskReopened) Type() string { return "task.reopened" }

// Type implements Event.
func (TaskStarted) Type() string { return "task.started" }

// Type implements Event.
func (TaskSucceeded) Type() string { return "task.succeeded" }

// Type implements Event.
func (TaskFailed) Type() string { return "task.failed" }

// Type implements Event.
func (TaskRetrying) Type() string { return "task.retrying" }

// Type implements Event.
func (TaskSuspended) Type() string { return "task.suspended" }

// Type implements Event.
func (TaskUndoing) Type() string { return "task.undoing" }

// Type implements Event.
func (TaskBlocked) Type() string { return "task.blocked" }

// Type implements Event.
func (TaskCancelled) Type() string { return "task.cancelled" }

// Type implements Event.
func (TaskReleased) Type() string { return "task.released" }

// Type implements Event.
func (TaskLeaseLost) Type() string { return "task.lease_lost" }

// Type implements Event.
func (StepStarted) Type() string { return "step.started" }

// Type implements Event.
func (StepCompleted) Type() string { return "step.completed" }

// Type implements Event.
func (StepFailed) Type() string { return "step.failed" }

// Type implements Event.
func (Progress) Type() string { return "progress" }

// Type implements Event.
func (StreamChunk) Type() string { return "stream.chunk" }

// Type implements Event.
func (LogWritten) Type() string { return "log.written" }
