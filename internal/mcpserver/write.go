package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// writes lists the tools that change tasks.
var writes = []string{
	"enqueue", "retry", "cancel", "unblock", "requeue_order", "hold_orders", "release_orders", "unlock_orders", "prune_orders",
	"pause_schedule", "resume_schedule", "trigger_schedule", "backfill_schedule", "set_limit", "delete_limit",
}

func (t tools) addWrites(s *mcp.Server) {
	safe := false
	add(t, s, "enqueue", "Stores a task of a type, for a worker to run. With an idempotency key it is stored only once, even if this is called again.", &mcp.ToolAnnotations{DestructiveHint: &safe}, t.enqueue)
	add(t, s, "retry", "Starts a failed or cancelled task again, with all its attempts; its recorded steps stay and do not run again. It is refused after a cleanup of the task ran, which may have undone them, unless keep_steps is set. With cleanup only an undo that failed, is blocked or waits is tried again.", &mcp.ToolAnnotations{DestructiveHint: &safe}, t.retry)
	add(t, s, "cancel", "Cancels a task that has not ended. A running task is asked to end, and its undo runs first. With abandon_undo the undo is abandoned; for a task whose undo failed, this records that an operator has dealt with it.", nil, t.cancel)
	add(t, s, "unblock", "Lets a blocked task go on, with an answer for its handler if it asked for one.", nil, t.unblock)
}

type enqueueInput struct {
	Type           string `json:"type" jsonschema:"the task type; list_types lists them"`
	Input          any    `json:"input,omitempty" jsonschema:"the input, any JSON value; default null"`
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"store it once per key"`
}

func (t tools) enqueue(ctx context.Context, in enqueueInput) (string, error) {
	raw, err := json.Marshal(in.Input)
	if err != nil {
		return "", err
	}
	var opts []weaver.EnqueueOption
	if in.IdempotencyKey != "" {
		opts = append(opts, weaver.IdempotencyKey(in.IdempotencyKey))
	}
	draft, err := t.Draft(ctx, in.Type, raw, opts...)
	if err != nil {
		return "", err
	}
	got, err := t.Client.EnqueueTasks(ctx, draft)
	if err != nil {
		return "", err
	}
	return text(map[string]string{"id": got[0].ID.String(), "disposition": string(got[0].Disposition)})
}

type operateInput struct {
	ID     string `json:"id" jsonschema:"the task: its id, the beginning of it (4 characters or more), or JOB/TASK"`
	Reason string `json:"reason" jsonschema:"why; kept in the audit"`
}

// operate applies a verb and returns the task afterwards.
func (t tools) operate(ctx context.Context, in operateInput, do func(task.ID, ...weaver.OperateOption) error) (string, error) {
	id, err := t.find(ctx, Task, in.ID)
	if err != nil {
		return "", err
	}
	if in.Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	if err := do(id, weaver.By(t.Actor), weaver.Reason(in.Reason)); err != nil {
		return "", err
	}
	return t.show(ctx, idInput{id.String()})
}

type retryInput struct {
	operateInput
	KeepSteps bool `json:"keep_steps,omitempty" jsonschema:"retry although a cleanup ran: only if the completed steps still stand"`
	Cleanup   bool `json:"cleanup,omitempty" jsonschema:"try the undo of the task again, alone"`

	Skip []string `json:"skip,omitempty" jsonschema:"with a reason: steps whose undo is given up; what they did stays, the others are undone"`
}

func (t tools) retry(ctx context.Context, in retryInput) (string, error) {
	return t.operate(ctx, in.operateInput, func(id task.ID, opts ...weaver.OperateOption) error {
		if in.KeepSteps {
			opts = append(opts, weaver.KeepSteps())
		}
		if len(in.Skip) > 0 {
			opts = append(opts, weaver.SkipUndo(in.Skip...))
		} else if in.Cleanup {
			opts = append(opts, weaver.Cleanups())
		}
		return t.Client.Retry(ctx, id, opts...)
	})
}

type cancelInput struct {
	operateInput
	AbandonUndo bool `json:"abandon_undo,omitempty" jsonschema:"give the undo of the task up: what was not undone stays"`
}

func (t tools) cancel(ctx context.Context, in cancelInput) (string, error) {
	return t.operate(ctx, in.operateInput, func(id task.ID, opts ...weaver.OperateOption) error {
		if in.AbandonUndo {
			opts = append(opts, weaver.AbandonUndo())
		}
		return t.Client.Cancel(ctx, id, opts...)
	})
}

type unblockInput struct {
	operateInput
	Input any `json:"input,omitempty" jsonschema:"the answer, any JSON value; default none"`
}

func (t tools) unblock(ctx context.Context, in unblockInput) (string, error) {
	return t.operate(ctx, in.operateInput, func(id task.ID, opts ...weaver.OperateOption) error {
		return t.Client.Unblock(ctx, id, in.Input, opts...)
	})
}
