// Package event is the closed set of things that happen to tasks, one Go type
// each, and the Sink that receives them.
//
// Events are emitted after the fact: task.started just after the claim
// committed, step.started just before the step's function runs, completed and
// failed just after the write committed. They are derived, may be lost with
// the process, and no decision is based on them. [Encoder] writes them as JSON.
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
	// Head returns what every event carries.
	Head() Header
	sealed()
}

// Header is what every event carries.
type Header struct {
	At        time.Time `json:"timestamp,omitzero"`
	Namespace string    `json:"namespace,omitempty"`
	TaskID    task.ID   `json:"task_id,omitzero"`
	TaskType  string    `json:"task_type,omitempty"`
	JobID     task.ID   `json:"job_id,omitzero"`
	Node      string    `json:"node,omitempty"` // the task's name inside its job
	AttemptNo int       `json:"attempt_no,omitempty"`
	Sequence  int64     `json:"sequence,omitempty"` // orders the events of a task: see Sequence
}

// Head implements Event.
func (h Header) Head() Header { return h }
func (Header) sealed()        {}

// Sink receives events, synchronously and in order per task: the next attempt of a task
// begins when it has heard how the one before ended. Events of steps that run beside each
// other, and those of an attempt that has lost its lease, come as they happen; their
// Sequence orders them. A slow or panicking sink delays that task only. It must be safe
// for concurrent use.
type Sink interface {
	Emit(Event)
}

// SinkFunc lets a function be a Sink.
type SinkFunc func(Event)

// Emit implements Sink.
func (f SinkFunc) Emit(e Event) { f(e) }

// The events of a task's life.
type (
	// TaskEnqueued says that the task was stored. Readers derive it (Client.Subscribe);
	// engines do not emit it.
	TaskEnqueued struct {
		Header
		Queue string          `json:"queue"`
		Input json.RawMessage `json:"input,omitempty"`
	}
	// TaskReopened says that a task which had ended, or was blocked, may run again.
	// Readers derive it (Client.Events); engines do not emit it.
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
	// TaskFailed says that the task ended for good.
	TaskFailed struct {
		Header
		Error    task.Error    `json:"error"`
		Allowed  bool          `json:"allowed,omitempty"` // its job allows it
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskRetrying says that an attempt failed and another one will follow.
	TaskRetrying struct {
		Header
		Error    task.Error    `json:"error"`
		Delay    time.Duration `json:"delay_ns"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskSuspended says that the attempt left its worker to wait: for a time, a
	// signal, its children, or another task. A zero WakeAt: no time lets it go on, or, of
	// Client.Events, which does not know it, of a sleep or a wait for a signal too. With an
	// Error the attempt failed, and to wait was decided; for undo: it could not undo all,
	// and is tried again.
	TaskSuspended struct {
		Header
		Waiting  task.Waiting  `json:"waiting_reason,omitempty"` // sleep, signal, children, deps, repair or undo
		WakeAt   time.Time     `json:"wake_at,omitzero"`
		Error    *task.Error   `json:"error,omitempty"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskUndoing says that the task is over, but left something to undo: it ends, as
	// EndsAs, when that is done (task.UndoPhase).
	TaskUndoing struct {
		Header
		Error    task.Error    `json:"error"`
		EndsAs   task.State    `json:"ends_as,omitempty"` // "": the reader does not know
		Duration time.Duration `json:"duration_ns"`       // of the attempt that ended it
	}
	// TaskBlocked says that a person has to help.
	TaskBlocked struct {
		Header
		Error    task.Error    `json:"error"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskCancelled says that a running task ended by cancel or deadline.
	TaskCancelled struct {
		Header
		Error    task.Error    `json:"error"`
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskReleased says that an attempt was given back unfinished, at no cost, because
	// its engine stops or could not rely on the lease any more, or its worker cannot run
	// it: Error. The task is due again, in the last case after a moment.
	TaskReleased struct {
		Header
		Error    *task.Error   `json:"error,omitempty"` // task.KindWorker
		Duration time.Duration `json:"duration_ns"`
	}
	// TaskLeaseLost says that the lease of an attempt was lost. Its worker, if it
	// lives, emits it when it drops what the attempt reported. The process that took
	// the lease away emits it with the State of the task afterwards.
	TaskLeaseLost struct {
		Header
		State    task.State    `json:"state,omitempty"`
		Crash    bool          `json:"crash,omitempty"` // it counts against the crash budget
		Duration time.Duration `json:"duration_ns,omitempty"`
	}
)

// The events inside an attempt.
type (
	// StepStarted comes just before the step's function runs.
	StepStarted struct {
		Header
		Step  string `json:"step"`
		Index int    `json:"index"`
		Try   int    `json:"try"`
		Undo  bool   `json:"undo,omitempty"` // it is the undo of the step
	}
	// StepCompleted follows the commit of the step's value.
	StepCompleted struct {
		Header
		Step     string          `json:"step"`
		Index    int             `json:"index"`
		Output   json.RawMessage `json:"output,omitempty"`
		Duration time.Duration   `json:"duration_ns"`
		Undo     bool            `json:"undo,omitempty"` // it is the undo of the step
	}
	// StepFailed follows the commit of the failed try.
	StepFailed struct {
		Header
		Step     string        `json:"step"`
		Index    int           `json:"index"`
		Try      int           `json:"try"`
		Error    task.Error    `json:"error"`
		Duration time.Duration `json:"duration_ns"`
		Undo     bool          `json:"undo,omitempty"` // it is the undo of the step
	}
	// Progress follows the commit of a report of the handler. Of several reports
	// within 200 ms the latest is written and has an event.
	Progress struct {
		Header
		task.Progress
	}
	// StreamChunk is a piece of the handler's live output (weaver.Emit). It is
	// emitted, and stored if the engine keeps events (weaver.PersistEvents).
	StreamChunk struct {
		Header
		Stream string `json:"stream"` // which of the handler's streams, for example "stdout"
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
