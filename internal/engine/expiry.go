package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ErrExpired: fields of an input have expired.
var ErrExpired = errors.New("fields of it have expired")

// expired prevents a handler from running with an input that lacks fields: the task waits for another input.
func expired(input json.RawMessage) error {
	if !task.HasExpired(input) {
		return nil
	}
	err := fmt.Errorf("the input cannot be used: %w: give the task another one with RepairInput (weaver task repair ID --input FILE)", ErrExpired)
	return &Verdict{Kind: Blocked, Err: &KindError{Kind: task.KindDecode, Err: err}}
}

// Expire erases fields of inputs of ended tasks whose retention time has passed, and returns the number of tasks. It
// retries an input that cannot be read later.
func (v *Values) Expire(ctx context.Context) (done int, err error) {
	for {
		got, err := v.Store.Collect(ctx, v.Namespace, store.CollectRequest{Expiries: true})
		if err != nil {
			return done, fmt.Errorf("expire fields of inputs: %w", err)
		}
		var problem error
		for i := range got.Expired {
			n, err := v.expire(ctx, &got.Expired[i])
			done += n
			if problem == nil && err != nil {
				problem = fmt.Errorf("expire fields of the input of task %v: %w", got.Expired[i].Task, err)
			}
		}
		if problem != nil || len(got.Expired) == 0 || ctx.Err() != nil {
			return done, problem
		}
	}
}

// expire erases the fields of one input. Crash here: the uploaded bytes are unused, and the task is listed again.
func (v *Values) expire(ctx context.Context, due *store.DueExpiry) (done int, err error) {
	tasks, err := v.Store.Tasks(ctx, v.Namespace, due.Task)
	if err != nil || len(tasks) == 0 {
		return 0, err
	}
	t := &tasks[0]
	cmd := store.ExpireInput{
		Audit: store.Audit{By: "weaver", Reason: "fields of the input whose time has passed"},
		Task:  t.ID, OldHash: task.PayloadHash(t.Input), Next: task.NextExpiry(t.Expire, due.Elapsed),
	}
	var paths []string
	for _, e := range t.Expire {
		if e.After <= due.Elapsed {
			paths = append(paths, e.Path)
		}
	}
	if len(t.Input) > 0 && len(paths) > 0 {
		whole, err := v.Load(ctx, t.Input)
		if err != nil {
			return 0, err
		}
		input, changed, err := redact.New(redact.In(redact.Input, paths)).Expire(redact.Input, whole, task.Expired(time.Now()))
		if err != nil {
			return 0, err
		}
		if changed {
			if cmd.Input, err = v.Keep(ctx, t.ID, input); err != nil {
				return 0, err
			}
			done = 1
		}
	}
	got, err := v.Store.Operate(ctx, v.Namespace, cmd)
	switch {
	case err != nil:
		return 0, err
	case errors.Is(got[0].Err, store.ErrState), errors.Is(got[0].Err, store.ErrChanged), errors.Is(got[0].Err, store.ErrNotFound):
		return 0, nil // the task runs again or has another input: check it again later
	}
	return done, got[0].Err
}
