package store

import (
	"encoding/json"

	"github.com/goweaver/weaver/task"
)

// ValueKind is what a stored value is.
type ValueKind string

// The kinds of stored values, in the order in which they are walked.
const (
	ValueDraft      ValueKind = "draft" // the input of a child that is about to be stored
	ValueInput      ValueKind = "input"
	ValueOutput     ValueKind = "output"
	ValueJoinOutput ValueKind = "join_output" // with which the task ends when its children have succeeded
	ValueProgress   ValueKind = "progress"    // a task.Progress
	ValueUnblock    ValueKind = "unblock_input"
	ValueStep       ValueKind = "step"
	ValueSignal     ValueKind = "signal"
	ValueCheckpoint ValueKind = "checkpoint"
	ValueEvent      ValueKind = "event"
	ValueLog        ValueKind = "log"
	ValueLink       ValueKind = "link" // of an artifact
	ValueBlob       ValueKind = "blob" // a task.Blob that something refers to (task.Blob.Value); it cannot be swapped
)

// ValueAt is the place of a stored value.
type ValueAt struct {
	Kind ValueKind
	Task task.ID // of a blob: its own ID
	Name string  // of the step or the checkpoint; of a link the artifact's ID; of a draft the parent's
	No   int64   // of the attempt that recorded the step; of the signal, the event or the line
	Try  int64   // of the step
}

// StoredValue is a value as it is stored.
type StoredValue struct {
	ValueAt
	Of       string        // the type of the task, of an input and an output; the name of the signal or of the link; the type of the event
	StepKind task.StepKind // of a step
	Value    json.RawMessage
}

// ValueSwap replaces one value.
type ValueSwap struct {
	ValueAt
	Old, New json.RawMessage
}

// RewriteFunc is given a page of stored values, and returns those that are to be replaced.
type RewriteFunc func(values []StoredValue) ([]ValueSwap, error)
