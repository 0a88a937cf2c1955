package store

import (
	"encoding/json"

	"github.com/goweaver/weaver/task"
)

// ValueKind is the kind of a stored value.
type ValueKind string

// The kinds of stored values, in walk order.
const (
	ValueDraft      ValueKind = "draft" // input of a child that is not stored yet
	ValueInput      ValueKind = "input"
	ValueOutput     ValueKind = "output"
	ValueJoinOutput ValueKind = "join_output" // output of the task when its children have succeeded
	ValueProgress   ValueKind = "progress"    // a task.Progress
	ValueUnblock    ValueKind = "unblock_input"
	ValueStep       ValueKind = "step"
	ValueSignal     ValueKind = "signal"
	ValueCheckpoint ValueKind = "checkpoint"
	ValueEvent      ValueKind = "event"
	ValueLog        ValueKind = "log"
	ValueLink       ValueKind = "link" // of an artifact
	ValueBlob       ValueKind = "blob" // a referenced task.Blob (task.Blob.Value); it cannot be swapped

	ValueOrderRequest ValueKind = "order_request" // of package order
	ValueOrderResult  ValueKind = "order_result"
	ValueSchedule     ValueKind = "schedule" // what it enqueues; Name is its name
)

// ValueAt is the place of a stored value.
type ValueAt struct {
	Kind ValueKind
	Task task.ID // of a blob: its own ID
	Name string  // of the step or the checkpoint; the artifact's ID of a link; the parent's ID of a draft; the key of an order
	No   int64   // of the attempt that recorded the step; of the signal, the event or the line
	Try  int64   // of the step
}

// StoredValue is a value in its stored form.
type StoredValue struct {
	ValueAt
	Of       string        // task type of an input or output; name of a signal or link; type of an event
	StepKind task.StepKind // of a step
	Value    json.RawMessage
}

// ValueSwap replaces one value.
type ValueSwap struct {
	ValueAt
	Old, New json.RawMessage
}

// RewriteFunc receives a page of stored values and returns the replacements.
type RewriteFunc func(values []StoredValue) ([]ValueSwap, error)
