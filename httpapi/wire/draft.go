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
		return fmt.Errorf("%q: not a duration; use one like 90s or 1h30m", text)
	}
	*d = Span(v)
	return nil
}

// Draft is a task to enqueue. The type's values apply to omitted fields.
type Draft struct {
	Type          string          `json:"task_type"`
	Input         json.RawMessage `json:"input"`
	SchemaVersion int             `json:"schema_version,omitempty"` // of the input; 0: the announced one

	DraftOptions

	Exact  bool          `json:"exact,omitempty"`            // do not apply the type's defaults to omitted fields
	Redact []string      `json:"redact,omitempty" max:"100"` // paths of hidden values in addition to the type's: input/card/number
	Expire []ExpiryDraft `json:"expire,omitempty" max:"100"` // fields of the input with limited retention, in addition to the type's
}

// DraftOptions are the options of a task.
type DraftOptions struct {
	IdempotencyKey   string            `json:"idempotency_key,omitempty"`    // while a task of the type has this key, it is returned and no task is stored
	Coalesce         bool              `json:"coalesce,omitempty"`           // an unstarted task with the key takes the input instead of a second task
	RequireSameInput bool              `json:"require_same_input,omitempty"` // for one task: report a conflict if a task with this key has another input
	ConcurrencyKey   string            `json:"concurrency_key,omitempty"`    // limits the concurrently running tasks with this key
	ConcurrencyLimit int               `json:"concurrency_limit,omitempty"`  // maximum of running tasks with the key; 0: 1
	Queue            string            `json:"queue,omitempty"`              // omitted: the type's, or default
	Priority         int               `json:"priority,omitempty"`           // 1 first to 9 last
	Delay            Span              `json:"delay,omitempty"`              // start this much later
	At               time.Time         `json:"at,omitzero"`                  // earliest start
	ExpireAfter      Span              `json:"expire_after,omitempty"`       // cancel the task if it has not ended this long after its enqueue
	MaxAttempts      int               `json:"max_attempts,omitempty"`       // maximum of failed attempts; 5 unless the type says otherwise
	MaxCost          int64             `json:"max_cost,omitempty"`           // micro-units
	MaxRepairs       int               `json:"max_repairs,omitempty"`        // maximum of repairs of its input; 2 unless the type says otherwise
	MaxNoProgress    int               `json:"max_no_progress,omitempty"`    // maximum of consecutive attempts without a new record
	Backoff          Span              `json:"backoff,omitempty"`            // delay before the second attempt; it doubles with each further one
	BackoffMax       Span              `json:"backoff_max,omitempty"`        // maximum delay between attempts
	Timeout          Span              `json:"timeout,omitempty"`            // limit of one attempt
	Labels           map[string]string `json:"labels,omitempty"`             // for searches
	Metadata         map[string]string `json:"metadata,omitempty"`           // for its handler

	task.Options
}

// ExpiryDraft sets the retention of an input field after the task has ended.
type ExpiryDraft struct {
	Path  string `json:"path"` // below the input: card/number
	After Span   `json:"after"`
}

// Enqueued is the result for one draft.
type Enqueued struct {
	ID          weaver.TaskID     `json:"id"`
	Type        string            `json:"task_type"`
	Disposition store.Disposition `json:"disposition"` // created, existing or coalesced

	InputDiffers bool `json:"input_differs,omitempty"` // existing: the task has another input, and this one was ignored
}

// BatchRequest is several tasks, which are stored together or not at all.
type BatchRequest struct {
	Tasks []Draft `json:"tasks" max:"1000"`
}

// MaxBatch is the most tasks of a BatchRequest, as its tag says.
const MaxBatch = 1000
