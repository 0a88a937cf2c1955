package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

type againKey struct{}

// callerStore returns the store as a persistent caller uses it. The caller repeats a request without an answer, or of
// a dead process, with the same IDs on a living process. It returns any other answer unchanged. Notices come from the
// store itself, even while no process lives.
func (fx *fixture) callerStore() store.Store {
	return storehook.New(fx.backend.observer, &storehook.Hooks{
		Hide: store.CanStepTx | store.CanWait,
		Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			for again := false; ; again = true {
				p, err := fx.living(ctx)
				if err != nil {
					return err
				}
				c.Store = p.fault.Store()
				err = next(context.WithValue(ctx, againKey{}, again))
				if !injected(err) || ctx.Err() != nil {
					return err
				}
				sleep(ctx, 50*time.Millisecond)
			}
		},
		Enqueue: func(_ context.Context, _ storehook.Submission, next func() ([]store.Enqueued, error)) ([]store.Enqueued, error) {
			got, err := next()
			if err == nil {
				fx.checker.ack(got)
			}
			return got, err
		},
		// A repeated command may find its work already done: the state no longer allows it, or the task is deleted.
		Operate: func(ctx context.Context, _ []store.Command, next func() ([]store.CommandResult, error)) ([]store.CommandResult, error) {
			got, err := next()
			for i := range got {
				if again := ctx.Value(againKey{}).(bool); again && (errors.Is(got[i].Err, store.ErrState) || errors.Is(got[i].Err, store.ErrChanged) || errors.Is(got[i].Err, store.ErrNotFound)) {
					got[i].Err = nil
				}
			}
			return got, err
		},
	})
}

// enqueue stores one task.
func enqueue[In, Out any](fx *fixture, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) *weaver.Handle[Out] {
	fx.Helper()
	h, err := typ.Enqueue(fx.ctx, fx.client, in, opts...)
	fx.must(err)
	return h
}

// succeeds waits for a task, which must succeed with this output.
func succeeds[Out comparable](fx *fixture, h *weaver.Handle[Out], want Out) {
	fx.Helper()
	got, err := h.Wait(fx.ctx)
	if err != nil {
		fx.fatal("task %s must succeed: %v%s", h.ID(), err, fx.dump(h.ID()))
	}
	if got != want {
		fx.errorf("task %s gave %v, want %v", h.ID(), got, want)
	}
}

// ends waits for a task, which must fail or be cancelled.
func ends(fx *fixture, id weaver.TaskID, state weaver.State, kind task.ErrorKind) {
	fx.Helper()
	_, err := fx.client.Wait(fx.ctx, id)
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok {
		fx.fatal("task %s must end %s: Wait says %v%s", id, state, err, fx.dump(id))
	}
	if te.State != state || te.Kind != kind {
		fx.errorf("task %s ended %s (%s), want %s (%s): %s%s", id, te.State, te.Kind, state, kind, te.Message, fx.dump(id))
	}
}

// blocks waits for a task, which must block.
func blocks(fx *fixture, id weaver.TaskID) {
	fx.Helper()
	if _, err := fx.client.Wait(fx.ctx, id); !errors.Is(err, weaver.ErrBlocked) {
		fx.fatal("task %s must block: Wait says %v%s", id, err, fx.dump(id))
	}
}

// jobEnds waits for a job, which must end in this state.
func jobEnds(fx *fixture, h *weaver.JobHandle, state task.JobState) {
	fx.Helper()
	res, err := h.Wait(fx.ctx)
	if err != nil {
		fx.fatal("job %q must end %s: Wait says %v%s", res.Name, state, err, fx.dump(weaver.TaskID{}))
	}
	if res.State != state {
		fx.errorf("job %q ended %s, want %s: %+v", res.Name, res.State, state, res)
	}
}

// dump returns the stored tasks and attempts, for messages.
func (fx *fixture) dump(id weaver.TaskID) string {
	snap, err := fx.backend.observer.Snapshot(context.WithoutCancel(fx.ctx), weaver.DefaultNamespace)
	if err != nil {
		return "\n\t" + err.Error()
	}
	text := ""
	for _, t := range snap.Tasks {
		if id.IsZero() || t.ID == id {
			raw, err := json.Marshal(t)
			if err != nil {
				raw = []byte(err.Error())
			}
			text += "\n\t" + string(raw)
		}
	}
	for _, a := range snap.Attempts {
		if a.TaskID == id {
			raw, err := json.Marshal(a)
			if err != nil {
				raw = []byte(err.Error())
			}
			text += "\n\t" + string(raw)
		}
	}
	return text
}
