package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// rerunSettings holds the options of a rerun.
type rerunSettings struct {
	input   json.RawMessage // nil: the input of the repeated task
	err     error
	enqueue []EnqueueOption
}

func rerunOption(set func(*rerunSettings)) OperateOption {
	return operateOption(func(s *operateSettings) {
		if s.rerun == nil {
			s.rerun = new(rerunSettings)
		}
		set(s.rerun)
	})
}

// RerunInput replaces the input of the new task of a Rerun by an encoded value. A client that knows
// the type (an Engine with a handler of it, ClientConfig.Handlers) checks it as an enqueue does
// (ErrInvalidInput) and sets the handler's schema version. Another client does not check it and keeps
// the schema version of the repeated task.
func RerunInput(in any) OperateOption {
	raw, err := encode(&in)
	return rerunOption(func(s *rerunSettings) { s.input, s.err = raw, err })
}

// RerunWith changes options of the new task of a Rerun; the others are copied from the repeated task.
func RerunWith(opts ...EnqueueOption) OperateOption {
	return rerunOption(func(s *rerunSettings) { s.enqueue = append(s.enqueue, opts...) })
}

// Rerun enqueues a new task that repeats another one, in any state: with the same type, input and
// options unless RerunInput and RerunWith change them, due at once. It links to the repeated task
// (TaskInfo.RerunOf), which is unchanged and keeps its idempotency key. The new task has a key only
// from RerunWith(IdempotencyKey(…)); an existing task with that key is returned
// (store.DispositionExisting). A task of a job is repeated outside the job. Its steps run again; see
// RerunFrom.
//
// Errors: ErrNotFound; ErrState if the task has needs, whose outputs the new task could not read, or
// undoes a child (UndoChildren).
func (c *Client) Rerun(ctx context.Context, id TaskID, opts ...OperateOption) (Enqueued, error) {
	var s operateSettings
	if err := s.apply(opts); err != nil {
		return Enqueued{}, fmt.Errorf("rerun: %w", err)
	}
	if s.keepSteps {
		return Enqueued{}, fmt.Errorf("rerun: %w: %s: leave it out here", ErrInvalidOption, onlyKeepSteps)
	}
	return c.rerun(ctx, id, 0, opts)
}

// RerunFrom is Rerun with a task that continues at a step. It copies the values of all steps before
// that step (in the order in which they were first reached), including sleeps, answers and started
// tasks, and runs that step and the later ones again. From a Race it waits for all cases again.
// Cleanups are not copied. ErrNoSuchStep: the task has not recorded a step of that name. ErrState: an
// earlier step called tasks, or there are more than 1,000 earlier steps, or a cleanup of the task ran,
// which may have undone them: KeepSteps copies them nevertheless.
func (c *Client) RerunFrom(ctx context.Context, id TaskID, step string, opts ...OperateOption) (Enqueued, error) {
	h, err := c.History(ctx, id)
	if err != nil {
		return Enqueued{}, fmt.Errorf("rerun: %w", err)
	}
	if below, found := preview.FirstOf(h.Steps, step); found {
		return c.rerun(ctx, id, below, opts)
	}
	return Enqueued{}, fmt.Errorf("rerun task %s: %w: %q", id, ErrNoSuchStep, step)
}

func (c *Client) rerun(ctx context.Context, id TaskID, below int, opts []OperateOption) (Enqueued, error) {
	old, err := c.get(ctx, id)
	if err != nil {
		return Enqueued{}, fmt.Errorf("rerun: %w", err)
	}
	if !old.UndoOf.IsZero() {
		return Enqueued{}, fmt.Errorf("rerun task %s: %w: it undoes task %s, which happens once: to try that again, use `weaver task retry %s --cleanup` (Cleanups)", id, ErrState, old.UndoOf, id)
	}
	var s operateSettings
	if err := s.apply(opts); err != nil {
		return Enqueued{}, fmt.Errorf("rerun: %w", err)
	}
	n, err := c.repeated(&old, s.rerun)
	if err != nil {
		return Enqueued{}, fmt.Errorf("rerun task %s: %w", id, err)
	}
	kept, err := c.values.KeepInputs(ctx, []task.New{n})
	if err != nil {
		return Enqueued{}, fmt.Errorf("rerun task %s: %w", id, err)
	}
	n = kept[0]
	res, err := c.operate(ctx, "rerun task "+id.String(), opts, func(s operateSettings) store.Command {
		return store.RerunTask{Audit: s.audit, Seen: s.seen, Task: id, New: n, StepsBelow: below, KeepSteps: s.keepSteps}
	})
	if err != nil {
		return Enqueued{}, err
	}
	e := Enqueued{ID: res.ID, Type: n.Type, Disposition: store.DispositionCreated}
	if res.Existing {
		e.Disposition = store.DispositionExisting
	}
	return e, nil
}

// repeated builds the new task of a rerun.
func (c *Client) repeated(old *TaskInfo, changes *rerunSettings) (task.New, error) {
	s := option.Settings{Task: old.Again()}
	if !old.DeadlineAt.IsZero() && old.JobID.IsZero() {
		s.Task.ExpireAfter = max(0, old.DeadlineAt.Sub(old.CreatedAt))
	}
	if changes != nil {
		if changes.err != nil {
			return task.New{}, fmt.Errorf("%w: %w", ErrInvalidInput, changes.err)
		}
		if changes.input != nil {
			s.Task.Input = changes.input
			if h, ok := c.known[old.Type]; ok {
				if err := h.Draft(s.Task.Input).Err(); err != nil {
					return task.New{}, err
				}
				s.Task.SchemaVersion = h.schema
			}
		}
		for _, o := range changes.enqueue {
			if o == nil {
				s.Problem("an option is nil")
				continue
			}
			o.ApplyEnqueue(&s)
		}
	}
	if task.HasExpired(s.Task.Input) {
		return task.New{}, fmt.Errorf("%w: fields of its input have expired: give the new task another one with RerunInput (weaver task rerun --input)", ErrState)
	}
	if s.Task.Coalesce {
		s.Problem("Coalesce: a rerun is a task of its own")
	}
	if s.Task.RequireSameInput {
		s.Problem("RequireSameInput is for an enqueue")
	}
	if err := errors.Join(s.Errs...); err != nil {
		return task.New{}, fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	if err := c.checkInput(old.Type, len(s.Task.Input)); err != nil {
		return task.New{}, err
	}
	s.Task.ID = c.ids.New()
	return s.Task, nil
}
