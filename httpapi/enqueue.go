package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/option"
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

// options are what is said.
func (d *DraftOptions) options() []weaver.EnqueueOption {
	return option.Given[weaver.EnqueueOption](d)
}

// check refuses options that exclude each other; pointer is where in the body they stand.
func (d *DraftOptions) check(pointer string) error {
	if d.Delay != 0 && !d.At.IsZero() {
		return bodyProblem(invalidBody, pointer+"/at", "there is a delay, too: want one of them")
	}
	return nil
}

// draft makes the draft that is enqueued; pointer is where in the body it stands.
func (c *call) draft(ctx context.Context, d *Draft, pointer string) (weaver.Draft, error) {
	if err := task.CheckTypeName(d.Type); err != nil {
		return weaver.Draft{}, bodyProblem(invalidBody, pointer+"/task_type", err.Error())
	}
	if err := d.check(pointer); err != nil {
		return weaver.Draft{}, err
	}
	if d.Input == nil {
		d.Input = json.RawMessage("null")
	}
	made, err := c.api.types.draft(ctx, d, pointer)
	if err != nil {
		return made, err
	}
	return made, made.Err()
}

// Enqueued answers one draft.
type Enqueued struct {
	ID          weaver.TaskID     `json:"id"`
	Type        string            `json:"task_type"`
	Disposition store.Disposition `json:"disposition"` // created, existing or coalesced

	InputDiffers bool `json:"input_differs,omitempty"` // existing: the task has another input, and this one was not taken
}

// enqueued answers with a task that was made, or existed.
func (c *call) enqueued(location string, got weaver.Enqueued, differs bool) error {
	c.w.Header().Set("Location", location)
	status := http.StatusOK
	if got.Disposition == store.DispositionCreated {
		status = http.StatusCreated
	}
	return c.write(status, Enqueued{ID: got.ID, Type: got.Type, Disposition: got.Disposition, InputDiffers: differs})
}

// inputDiffers reports whether a task that existed has another input than the draft, which it
// also logs: whoever sent it may take the answer for that of their own.
func (c *call) inputDiffers(ctx context.Context, got weaver.Enqueued, input json.RawMessage) bool {
	if got.Disposition != store.DispositionExisting {
		return false
	}
	same, err := c.api.client.HasInput(ctx, got.ID, input)
	if err != nil || same { // what cannot be compared is not told apart
		return false
	}
	c.api.log.WarnContext(ctx, "an idempotency key came again with another input, which was not taken", "task_id", got.ID, "task_type", got.Type, "principal", c.who.Name)
	return true
}

// enqueueTask stores one task. The header Idempotency-Key is its key.
func (c *call) enqueueTask() error {
	var body Draft
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := c.keyOf(&body.IdempotencyKey, "/idempotency_key"); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	d, err := c.draft(ctx, &body, "")
	if err != nil {
		return err
	}
	got, err := c.api.client.EnqueueTasks(ctx, d)
	if err != nil {
		return err
	}
	return c.enqueued("tasks/"+got[0].ID.String(), got[0], c.inputDiffers(ctx, got[0], body.Input))
}

// batchRequest is several tasks, which are stored together or not at all.
type batchRequest struct {
	Tasks []Draft `json:"tasks" max:"1000"`
}

const maxBatch = 1000 // as the tag says

func (c *call) enqueueBatch() error {
	var body batchRequest
	if err := c.decode(&body); err != nil {
		return err
	}
	if n := len(body.Tasks); n == 0 || n > maxBatch {
		return bodyProblem(invalidBody, "/tasks", fmt.Sprintf("it has %d tasks: want 1 to %d", n, maxBatch))
	}
	ctx, cancel := c.context()
	defer cancel()
	drafts := make([]weaver.Draft, len(body.Tasks))
	for i := range body.Tasks {
		at := fmt.Sprintf("/tasks/%d", i)
		d, err := c.draft(ctx, &body.Tasks[i], at)
		if err != nil {
			return within(err, at)
		}
		drafts[i] = d
	}
	got, err := c.api.client.EnqueueTasks(ctx, drafts...)
	if err != nil {
		return err
	}
	list := make([]Enqueued, len(got))
	for i, e := range got {
		list[i] = Enqueued{ID: e.ID, Type: e.Type, Disposition: e.Disposition, InputDiffers: c.inputDiffers(ctx, e, body.Tasks[i].Input)}
	}
	return c.write(http.StatusCreated, List[Enqueued]{list})
}

// within names the part of the body that an error is about, if it does not itself.
func within(err error, pointer string) error {
	p, known := problemOf(err)
	if !known || len(p.Errors) > 0 {
		return err
	}
	p.Errors = []ProblemError{{Pointer: "#" + pointer, Detail: p.Detail}}
	return p
}
