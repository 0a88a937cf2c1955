package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/store"
)

// operation evaluates the options of a verb.
func operation(what string, verb store.Command, opts []weaver.OperateOption) (weaver.Operation, error) {
	o, err := weaver.ReadOperateOptions(verb, opts...)
	if err == nil && o.By != "" {
		err = fmt.Errorf("%w: By(%q): over HTTP the actor is the one whose credentials are sent: leave it out, or name it in the Reason", weaver.ErrInvalidOption, o.By)
	}
	if err != nil {
		return o, fmt.Errorf("%s: %w", what, err)
	}
	return o, nil
}

// etagSeen returns the If-Match header for the seen version of a task.
func etagSeen(o *weaver.Operation) string {
	switch {
	case o.SeenEpoch == 0 && o.SeenUpdatedAt.IsZero():
		return ""
	case o.SeenUpdatedAt.IsZero():
		return fmt.Sprintf(`"%d"`, o.SeenEpoch)
	}
	return wire.ETag(o.SeenEpoch, o.SeenUpdatedAt)
}

// operate sends a verb of one task.
func (c *Client) operate(ctx context.Context, id weaver.TaskID, name string, verb store.Command, opts []weaver.OperateOption, body func(weaver.Operation) any) error {
	o, err := operation(name+" task "+id.String(), verb, opts)
	if err != nil {
		return err
	}
	_, signal := verb.(store.SendSignal)
	return c.send(ctx, request{method: http.MethodPost, path: taskPath(id, name), ifMatch: etagSeen(&o), body: body(o), safe: signal}, nil)
}

func why(o weaver.Operation) any { return reason(o) }

func reason(o weaver.Operation) wire.VerbRequest { return wire.VerbRequest{Reason: o.Reason} }

// Cancel is weaver.Client.Cancel over HTTP.
func (c *Client) Cancel(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error {
	return c.operate(ctx, id, "cancel", store.CancelTask{}, opts, func(o weaver.Operation) any {
		return wire.CancelRequest{VerbRequest: reason(o), Force: o.Force, AbandonUndo: o.AbandonUndo}
	})
}

// Retry is weaver.Client.Retry over HTTP.
func (c *Client) Retry(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error {
	return c.operate(ctx, id, "retry", store.RetryTask{}, opts, func(o weaver.Operation) any {
		return wire.TaskRetryRequest{RetryRequest: retryBody(&o), Cleanup: o.Cleanups, SkipUndo: o.SkipUndo}
	})
}

// retryBody returns the body of the retry of a task or job.
func retryBody(o *weaver.Operation) wire.RetryRequest {
	return wire.RetryRequest{VerbRequest: reason(*o), AddAttempts: o.AddAttempts, AddCost: o.AddCost, KeepSteps: o.KeepSteps}
}

// Unblock is weaver.Client.Unblock over HTTP.
func (c *Client) Unblock(ctx context.Context, id weaver.TaskID, input any, opts ...weaver.OperateOption) error {
	var raw json.RawMessage
	if input != nil {
		var err error
		if raw, err = encodeValue(input); err != nil {
			return fmt.Errorf("unblock task %s: %w", id, err)
		}
	}
	return c.operate(ctx, id, "unblock", store.UnblockTask{}, opts, func(o weaver.Operation) any {
		return wire.UnblockRequest{VerbRequest: reason(o), Input: raw, Ask: o.Ask}
	})
}

// encodeValue encodes a value, or returns JSON unchanged.
func encodeValue(v any) (json.RawMessage, error) {
	raw, given := v.(json.RawMessage)
	if !given {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("%w: %w", weaver.ErrInvalidInput, err)
		}
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%w: it is not JSON", weaver.ErrInvalidInput)
	}
	return raw, nil
}

// SendSignal implements weaver.Caller; see weaver.Signal.Send.
func (c *Client) SendSignal(ctx context.Context, id weaver.TaskID, name, key string, payload json.RawMessage, opts ...weaver.OperateOption) error {
	if key == "" { // the server would create a key, and a retry would be another signal
		return fmt.Errorf("send the signal %q to task %s: %w: the key is empty", name, id, weaver.ErrInvalidOption)
	}
	raw, err := encodeValue(payload)
	if err != nil {
		return fmt.Errorf("send the signal %q to task %s: %w", name, id, err)
	}
	return c.operate(ctx, id, "signal", store.SendSignal{}, opts, func(o weaver.Operation) any {
		return wire.SignalRequest{VerbRequest: reason(o), Name: name, Key: key, Payload: raw}
	})
}

// RepairInput is weaver.Client.RepairInput over HTTP.
func (c *Client) RepairInput(ctx context.Context, id weaver.TaskID, input any, opts ...weaver.OperateOption) error {
	raw, err := encodeValue(input)
	if err != nil {
		return fmt.Errorf("repair task %s: %w", id, err)
	}
	return c.operate(ctx, id, "repair", store.ReplaceInput{}, opts, func(o weaver.Operation) any {
		return wire.RepairRequest{VerbRequest: reason(o), Input: raw}
	})
}

// Reschedule is weaver.Client.Reschedule over HTTP.
func (c *Client) Reschedule(ctx context.Context, id weaver.TaskID, when time.Time, opts ...weaver.OperateOption) error {
	if y := when.UTC().Year(); when.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("reschedule task %s: %w: to %s: want an instant from the year 1 to 9999, or RunNow", id, weaver.ErrInvalidOption, when)
	}
	return c.reschedule(ctx, id, when, opts)
}

// RunNow is weaver.Client.RunNow over HTTP.
func (c *Client) RunNow(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error {
	return c.reschedule(ctx, id, time.Time{}, opts)
}

func (c *Client) reschedule(ctx context.Context, id weaver.TaskID, when time.Time, opts []weaver.OperateOption) error {
	return c.operate(ctx, id, "reschedule", store.RescheduleTask{}, opts, func(o weaver.Operation) any {
		return wire.RescheduleRequest{VerbRequest: reason(o), At: when.UTC()}
	})
}

// PauseTask is weaver.Client.PauseTask over HTTP.
func (c *Client) PauseTask(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error {
	return c.operate(ctx, id, "pause", store.PauseTask{}, opts, why)
}

// ResumeTask is weaver.Client.ResumeTask over HTTP.
func (c *Client) ResumeTask(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error {
	return c.operate(ctx, id, "resume", store.ResumeTask{}, opts, why)
}

// Delete is weaver.Client.Delete over HTTP.
func (c *Client) Delete(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error {
	o, err := operation("delete task "+id.String(), store.DeleteTask{}, opts)
	if err != nil {
		return err
	}
	q := make(url.Values)
	if o.Reason != "" {
		q.Set("reason", o.Reason)
	}
	return c.send(ctx, request{method: http.MethodDelete, path: taskPath(id), query: q, ifMatch: etagSeen(&o)}, nil)
}

// Rerun is weaver.Client.Rerun over HTTP.
func (c *Client) Rerun(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) (weaver.Enqueued, error) {
	return c.rerun(ctx, id, "", opts)
}

// RerunFrom is weaver.Client.RerunFrom over HTTP.
func (c *Client) RerunFrom(ctx context.Context, id weaver.TaskID, step string, opts ...weaver.OperateOption) (weaver.Enqueued, error) {
	if step == "" {
		return weaver.Enqueued{}, fmt.Errorf("rerun task %s: %w: %q", id, weaver.ErrNoSuchStep, step)
	}
	return c.rerun(ctx, id, step, opts)
}

func (c *Client) rerun(ctx context.Context, id weaver.TaskID, step string, opts []weaver.OperateOption) (weaver.Enqueued, error) {
	what := "rerun task " + id.String()
	o, err := operation(what, store.RerunTask{}, opts)
	if err != nil {
		return weaver.Enqueued{}, err
	}
	with, err := optionsOf(o.RerunWith)
	if err != nil {
		return weaver.Enqueued{}, fmt.Errorf("%s: %w", what, err)
	}
	body := wire.RerunRequest{VerbRequest: reason(o), From: step, KeepSteps: o.KeepSteps, Input: o.RerunInput, With: with}
	var got wire.Enqueued
	if err := c.send(ctx, request{method: http.MethodPost, path: taskPath(id, "rerun"), ifMatch: etagSeen(&o), body: body, safe: with != nil && with.IdempotencyKey != ""}, &got); err != nil {
		return weaver.Enqueued{}, err
	}
	return weaver.Enqueued{ID: got.ID, Type: got.Type, Disposition: got.Disposition}, nil
}

// PauseQueue is weaver.Client.PauseQueue over HTTP.
func (c *Client) PauseQueue(ctx context.Context, queue string, opts ...weaver.OperateOption) error {
	return c.operateNamed(ctx, "queues", queue, "pause", store.PauseQueue{}, opts)
}

// ResumeQueue is weaver.Client.ResumeQueue over HTTP.
func (c *Client) ResumeQueue(ctx context.Context, queue string, opts ...weaver.OperateOption) error {
	return c.operateNamed(ctx, "queues", queue, "resume", store.ResumeQueue{}, opts)
}

// operateNamed sends a verb of a queue or task type. Repeating it has no further effect.
func (c *Client) operateNamed(ctx context.Context, of, name, verb string, cmd store.Command, opts []weaver.OperateOption) error {
	o, err := operation(verb+" "+name, cmd, opts)
	if err != nil {
		return err
	}
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%s: %w: the name %q cannot be part of a path", verb, weaver.ErrInvalidOption, name)
	}
	body := why(o)
	if verb == "pause" {
		body = wire.PauseRequest{VerbRequest: reason(o), Force: true} // as weaver.Client does
	}
	return c.send(ctx, request{method: http.MethodPost, path: "/v1/" + of + "/" + url.PathEscape(name) + "/" + verb, body: body, safe: true}, nil)
}
