package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// givenOptions returns the options that a draft sets.
func givenOptions(d *DraftOptions) []weaver.EnqueueOption {
	return option.Given[weaver.EnqueueOption](d)
}

// checkOptions refuses options that exclude each other; pointer is where in the body they stand.
func checkOptions(d *DraftOptions, pointer string) error {
	if d.Delay != 0 && !d.At.IsZero() {
		return bodyProblem(invalidBody, pointer+"/at", "there is a delay, too: want one of them")
	}
	return nil
}

// draft converts a Draft for the client; pointer is its place in the body.
func (c *call) draft(ctx context.Context, d *Draft, pointer string) (weaver.Draft, error) {
	if err := task.CheckTypeName(d.Type); err != nil {
		return weaver.Draft{}, bodyProblem(invalidBody, pointer+"/task_type", err.Error())
	}
	if err := checkOptions(&d.DraftOptions, pointer); err != nil {
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

// enqueued answers with a task that was made, or existed.
func (c *call) enqueued(location string, got weaver.Enqueued, differs bool) error {
	c.w.Header().Set("Location", location)
	status := http.StatusOK
	if got.Disposition == store.DispositionCreated {
		status = http.StatusCreated
	}
	return c.write(status, Enqueued{ID: got.ID, Type: got.Type, Disposition: got.Disposition, InputDiffers: differs})
}

// inputDiffers reports whether an existing task has another input than the draft. It logs that,
// because the sender may not notice it.
func (c *call) inputDiffers(ctx context.Context, got weaver.Enqueued, input json.RawMessage) bool {
	if got.Disposition != store.DispositionExisting {
		return false
	}
	same, err := c.api.client.HasInput(ctx, got.ID, input)
	if err != nil || same { // inputs that cannot be compared count as equal
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

// batchRequest is several tasks that are stored together or not at all.
func (c *call) enqueueBatch() error {
	var body batchRequest
	if err := c.decode(&body); err != nil {
		return err
	}
	if n := len(body.Tasks); n == 0 || n > wire.MaxBatch {
		return bodyProblem(invalidBody, "/tasks", fmt.Sprintf("it has %d tasks: want 1 to %d", n, wire.MaxBatch))
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
	return c.write(http.StatusCreated, List[Enqueued]{Items: list})
}

// within adds the place in the body to an error without one.
func within(err error, pointer string) error {
	p, known := problemOf(err)
	if !known || len(p.Errors) > 0 {
		return err
	}
	p.Errors = []ProblemError{{Pointer: "#" + pointer, Detail: p.Detail}}
	return p
}
