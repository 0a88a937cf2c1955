package httpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// The functions of this file prepare tasks for responses: they mask values as the tasks say
// (docs/privacy.md), and omit values for principals without the access [Payloads].

// ETag names the version of a task, for If-Match.
func etagOf(t *task.Task) string {
	return wire.ETag(t.Epoch, t.UpdatedAt)
}

// taskRow reads a task without its values in the bucket.
func taskRow(ctx context.Context, from *weaver.Client, id task.ID) (task.Task, error) {
	list, err := from.GetMany(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	if len(list) == 0 {
		return task.Task{}, fmt.Errorf("task %s in namespace %q: %w", id, from.Namespace(), weaver.ErrNotFound)
	}
	return list[0], nil
}

// task reads a task for showTask. It loads the values in the bucket only if the principal may read
// them, or if their masked parts may occur in other texts.
func (c *call) task(ctx context.Context, id task.ID) (task.Task, error) {
	if !c.who.Access.Has(Payloads) {
		t, err := taskRow(ctx, c.api.client, id)
		if err != nil || len(t.Redact) == 0 || t.Error == nil && t.Progress == nil {
			return t, err
		}
	}
	return c.api.client.Get(ctx, id)
}

// showTask returns a task as the principal of the call may see it.
func (c *call) showTask(t task.Task) Task { return showTask(t, c.who.Access) }

// showTask returns a task as principals with the access may see it.
func showTask(t task.Task, to Access) Task {
	redact.Task(&t)
	v := Task{Task: t}
	if !to.Has(Payloads) {
		v.PayloadsHidden = t.Input != nil || t.Output != nil || t.UnblockInput != nil
		v.Input, v.Output, v.UnblockInput = nil, nil, nil
	}
	return v
}

// showRows returns the tasks of a list, which have no values.
func showRows(list []task.Task) []Task {
	redact.Tasks(list)
	rows := make([]Task, len(list))
	for i := range list {
		list[i].Input, list[i].Output, list[i].UnblockInput = nil, nil, nil
		rows[i].Task = list[i]
	}
	return rows
}

// showHistory masks the records of a task and hides values.
func (c *call) showHistory(h *store.History) {
	redact.History(h)
	if c.who.Access.Has(Payloads) {
		return
	}
	h.Task.Input, h.Task.Output, h.Task.UnblockInput = nil, nil, nil
	for i := range h.Steps {
		h.Steps[i].Value = nil
	}
	for i := range h.Signals {
		h.Signals[i].Payload = nil
	}
	for i := range h.Checkpoints {
		h.Checkpoints[i].Value = nil
	}
}

func listOf[T any](items []T) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{Items: items}
}

// Value is a value of a task.
type Value struct {
	Value json.RawMessage `json:"value"`
}

// showEvent hides the handlers' data in an event: values, log lines, chunks of output. Texts for
// people remain: errors, progress.
func (c *call) showEvent(ev event.Event) (shown event.Event, hidden bool) {
	if c.who.Access.Has(Payloads) {
		return ev, false
	}
	switch ev := ev.(type) {
	case event.TaskEnqueued:
		hidden, ev.Input = ev.Input != nil, nil
		return ev, hidden
	case event.TaskStarted:
		hidden, ev.Input = ev.Input != nil, nil
		return ev, hidden
	case event.TaskSucceeded:
		hidden, ev.Output = ev.Output != nil, nil
		return ev, hidden
	case event.StepCompleted:
		hidden, ev.Output = ev.Output != nil, nil
		return ev, hidden
	case event.LogWritten:
		ev.Message, ev.Data = "", nil
		return ev, true
	case event.StreamChunk:
		hidden, ev.Data = ev.Data != nil, nil
		return ev, hidden
	}
	return ev, false
}
