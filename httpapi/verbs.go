package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// another reports whether the new task is to be another one than the one that is
// repeated. A key makes it none.
func another(r *rerunRequest) bool {
	if r.Input != nil || r.With == nil {
		return r.Input != nil
	}
	with := *r.With
	with.IdempotencyKey = ""
	return len(givenOptions(&with)) > 0
}

// seen converts If-Match to an option.
func (c *call) seen(ctx context.Context, id task.ID, opts []weaver.OperateOption) ([]weaver.OperateOption, error) {
	all := c.r.Header.Values("If-Match")
	switch {
	case len(all) == 0:
		return opts, nil
	case len(all) > 1:
		return nil, badParam("If-Match", "it is given %d times", len(all))
	case all[0] == "":
		return nil, badParam("If-Match", "it is empty: want the ETag with which the task was read. Leave it out to do this whatever has changed")
	case all[0] == "*":
		return opts, nil
	}
	text := all[0]
	c.conditional = true
	wrong := preconditionBad.of("If-Match is %.80q: want the ETag with which the task was read.", text)
	epoch, at, found := strings.Cut(strings.Trim(text, `"`), "-")
	n, err := strconv.ParseInt(epoch, 10, 64)
	if !found && err == nil && n > 0 {
		return append(opts, weaver.SeenEpoch(n)), nil
	}
	micro, err2 := strconv.ParseInt(at, 10, 64)
	if !found || err != nil || err2 != nil {
		return nil, wrong
	}
	return append(opts, weaver.SeenEpoch(n, time.UnixMicro(micro))), nil
}

// verb returns the handler of a verb of one task. The response is the task after it.
func verb[B any](reason func(*B) string, do func(ctx context.Context, c *call, id task.ID, b *B, opts []weaver.OperateOption) error) func(*call) error {
	return func(c *call) error {
		id, err := c.id()
		if err != nil {
			return err
		}
		var body B
		if err := c.decodeOptional(&body); err != nil {
			return err
		}
		ctx, cancel := c.context()
		defer cancel()
		opts, err := c.seen(ctx, id, c.operator(reason(&body)))
		if err != nil {
			return err
		}
		if err := do(ctx, c, id, &body, opts); err != nil {
			return err
		}
		t, err := c.task(ctx, id)
		if err != nil {
			return err
		}
		c.w.Header().Set("ETag", etagOf(&t))
		return c.write(http.StatusOK, c.showTask(t))
	}
}

func cancelTask(ctx context.Context, c *call, id task.ID, b *cancelRequest, opts []weaver.OperateOption) error {
	if b.Force {
		opts = append(opts, weaver.Force())
	}
	if b.AbandonUndo {
		opts = append(opts, weaver.AbandonUndo())
	}
	return c.api.client.Cancel(ctx, id, opts...)
}

func retryTask(ctx context.Context, c *call, id task.ID, b *taskRetryRequest, opts []weaver.OperateOption) error {
	if b.AddAttempts != 0 {
		opts = append(opts, weaver.AddAttempts(b.AddAttempts))
	}
	if b.AddCost != 0 {
		opts = append(opts, weaver.AddCost(b.AddCost))
	}
	if b.KeepSteps {
		opts = append(opts, weaver.KeepSteps())
	}
	switch {
	case len(b.SkipUndo) > 0 && !b.Cleanup:
		return bodyProblem(invalidBody, "/skip", "only for a retry with cleanup: leave it out")
	case len(b.SkipUndo) > 0:
		opts = append(opts, weaver.SkipUndo(b.SkipUndo...))
	case b.Cleanup:
		opts = append(opts, weaver.Cleanups())
	}
	return c.api.client.Retry(ctx, id, opts...)
}

func unblockTask(ctx context.Context, c *call, id task.ID, b *unblockRequest, opts []weaver.OperateOption) error {
	if b.Ask != "" {
		opts = append(opts, weaver.ForAsk(b.Ask))
	}
	var input any
	if b.Input != nil {
		input = b.Input
	}
	return c.api.client.Unblock(ctx, id, input, opts...)
}

func signalTask(ctx context.Context, c *call, id task.ID, b *signalRequest, opts []weaver.OperateOption) error {
	if b.Payload == nil {
		return bodyProblem(invalidBody, "/payload", "it is left out: want JSON, null if the signal says nothing")
	}
	if err := c.keyOf(&b.Key, "/key"); err != nil {
		return err
	}
	if b.Key == "" {
		b.Key = task.NewIDs(nil).New().String()
	}
	return c.api.client.SendSignal(ctx, id, b.Name, b.Key, b.Payload, opts...)
}

func repairTask(ctx context.Context, c *call, id task.ID, b *repairRequest, opts []weaver.OperateOption) error {
	if b.Input == nil {
		return bodyProblem(invalidBody, "/input", "it is left out: want the new input")
	}
	if err := c.api.types.newInput(ctx, id, b.Input); err != nil {
		return err
	}
	return c.api.client.RepairInput(ctx, id, b.Input, opts...)
}

func rescheduleTask(ctx context.Context, c *call, id task.ID, b *rescheduleRequest, opts []weaver.OperateOption) error {
	if b.At.IsZero() {
		return c.api.client.RunNow(ctx, id, opts...)
	}
	return c.api.client.Reschedule(ctx, id, b.At, opts...)
}

func pauseTask(ctx context.Context, c *call, id task.ID, _ *verbRequest, opts []weaver.OperateOption) error {
	return c.api.client.PauseTask(ctx, id, opts...)
}

func resumeTask(ctx context.Context, c *call, id task.ID, _ *verbRequest, opts []weaver.OperateOption) error {
	return c.api.client.ResumeTask(ctx, id, opts...)
}

// rerunKey reads the key of the new task, which has three possible places.
func (c *call) rerunKey(b *rerunRequest) error {
	if err := c.keyOf(&b.IdempotencyKey, "/idempotency_key"); err != nil {
		return err
	}
	if b.With == nil || b.With.IdempotencyKey == "" {
		return nil
	}
	if b.IdempotencyKey != "" && b.IdempotencyKey != b.With.IdempotencyKey {
		return bodyProblem(invalidBody, "/with/idempotency_key", "differs from the request's other key: leave one of them out")
	}
	b.IdempotencyKey = b.With.IdempotencyKey
	return nil
}

// rerunTask writes the new task.
func (c *call) rerunTask() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	var body rerunRequest
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	if another(&body) && !c.who.Access.Has(Submit) {
		return forbidden.of("A rerun with another input or other options needs the access %s, too, and %q has %s: leave out input and with.", Submit, c.who.Name, c.who.Access)
	}
	if err := c.rerunKey(&body); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	opts, err := c.seen(ctx, id, c.operator(body.Reason))
	if err != nil {
		return err
	}
	if body.Input != nil {
		if err := c.api.types.newInput(ctx, id, body.Input); err != nil {
			return err
		}
		opts = append(opts, weaver.RerunInput(body.Input))
	}
	if body.With != nil {
		if err := checkOptions(body.With, "/with"); err != nil {
			return err
		}
		opts = append(opts, weaver.RerunWith(givenOptions(body.With)...))
	}
	if body.IdempotencyKey != "" {
		opts = append(opts, weaver.RerunWith(weaver.IdempotencyKey(body.IdempotencyKey)))
	}
	if body.KeepSteps {
		opts = append(opts, weaver.KeepSteps())
	}
	var got weaver.Enqueued
	if body.From == "" {
		got, err = c.api.client.Rerun(ctx, id, opts...)
	} else {
		got, err = c.api.client.RerunFrom(ctx, id, body.From, opts...)
	}
	if err != nil {
		return err
	}
	return c.enqueued("../"+got.ID.String(), got, false)
}

func (c *call) deleteTask() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	opts, err := c.seen(ctx, id, c.operator(c.get("reason")))
	if err != nil {
		return err
	}
	if err := c.api.client.Delete(ctx, id, opts...); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// load replaces the reference to a value in the bucket with the value.
func (c *call) load(ctx context.Context, v *json.RawMessage) error {
	b, large := task.BlobOf(*v)
	if !large {
		return nil
	}
	r, err := c.api.client.OpenArtifact(ctx, weaver.ArtifactRef{ID: b.ID, Name: "blob " + b.ID.String(), Blob: b})
	if err != nil {
		return err
	}
	whole, err := io.ReadAll(r)
	if err2 := r.Close(); err == nil {
		err = err2
	}
	*v = whole
	return err
}
