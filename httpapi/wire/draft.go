package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Span is a duration as JSON: a string as time.ParseDuration reads it, "1h30m".
type Span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Span) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Span) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration: want one like 90s or 1h30m", text)
	}
	*d = Span(v)
	return nil
}

// Draft is a task that is to be enqueued. What is left out is as its type says.
type Draft struct {
	Type          string          `json:"task_type"`
	Input         json.RawMessage `json:"input"`
	SchemaVersion int             `json:"schema_version,omitempty"` // of the input; 0: the one that was announced

	DraftOptions

	Exact  bool          `json:"exact,omitempty"`            // what is left out is 0 or none, whatever the type says
	Redact []string      `json:"redact,omitempty" max:"100"` // what is not shown of its values, beside what the type says: input/card/number
	Expire []ExpiryDraft `json:"expire,omitempty" max:"100"` // fields of the input that are stored for a time, beside those of the type
}

// DraftOptions are the options of a task.
type DraftOptions struct {
	IdempotencyKey   string            `json:"idempotency_key,omitempty"`    // while a task of the type has this key, that one is the answer, and none is stored
	Coalesce         bool              `json:"coalesce,omitempty"`           // a task with its key that has not started takes the input, instead of a second one
	RequireSameInput bool              `json:"require_same_input,omitempty"` // of one task: while a task has this key and another input, it is a conflict
	ConcurrencyKey   string            `json:"concurrency_key,omitempty"`    // of the tasks with this key only some run at a time
	ConcurrencyLimit int               `json:"concurrency_limit,omitempty"`  // how many of them; 0: 1
	Queue            string            `json:"queue,omitempty"`              // left out: the type's, or default
	Priority         int               `json:"priority,omitempty"`           // 1 first to 9 last
	Delay            Span              `json:"delay,omitempty"`              // it starts this much later
	At               time.Time         `json:"at,omitzero"`                  // it starts then or later
	ExpireAfter      Span              `json:"expire_after,omitempty"`       // one that has not ended this long after its enqueue is cancelled
	MaxAttempts      int               `json:"max_attempts,omitempty"`       // how often it may fail; 5 unless the type says else
	MaxCost          int64             `json:"max_cost,omitempty"`           // micro-units
	MaxRepairs       int               `json:"max_repairs,omitempty"`        // how often its input may be repaired; 2 unless the type says else
	MaxNoProgress    int               `json:"max_no_progress,omitempty"`    // attempts in a row that record nothing new
	Backoff          Span              `json:"backoff,omitempty"`            // the pause before the second attempt, which doubles for each further one
	BackoffMax       Span              `json:"backoff_max,omitempty"`        // the longest pause between attempts
	Timeout          Span              `json:"timeout,omitempty"`            // of one attempt
	Labels           map[string]string `json:"labels,omitempty"`             // by which it is found
	Metadata         map[string]string `json:"metadata,omitempty"`           // what its handler can read

	task.Options
}

// ExpiryDraft says for how long a field of an input is stored after the task has ended.
type ExpiryDraft struct {
	Path  string `json:"path"` // below the input: card/number
	After Span   `json:"after"`
}

// Enqueued answers one draft.
type Enqueued struct {
	ID          weaver.TaskID     `json:"id"`
	Type        string            `json:"task_type"`
	Disposition store.Disposition `json:"disposition"` // created, existing or coalesced

	InputDiffers bool `json:"input_differs,omitempty"` // existing: the task has another input, and this one was not taken
}

// BatchRequest is several tasks, which are stored together or not at all.
type BatchRequest struct {
	Tasks []Draft `json:"tasks" max:"1000"`
}

// MaxBatch is the most tasks of a BatchRequest, as its tag says.
const MaxBatch = 1000
