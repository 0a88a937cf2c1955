package weaver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// RepairRequest describes an input that a task cannot use.
type RepairRequest struct {
	TaskID TaskID
	Type   string
	Raw    json.RawMessage // the stored input
	Error  string          // the reason why it cannot be used
	Hint   string          // from Config.RepairHinter
	Schema json.RawMessage // JSON Schema of the expected input

	No, Most int // number of this repair, and the maximum (MaxRepairs)
}

type repairFunc func(context.Context, RepairRequest) (json.RawMessage, error)

// repairer repairs inputs of one task type.
type repairer struct {
	fn      repairFunc
	check   func(json.RawMessage) error
	schema  json.RawMessage
	version int // schema version of its results
}

// Repair replaces an input that does not decode, or that its Validate or an Upcast refuses, for
// example by asking a language model with the hint. Without it such a task is blocked. A Decider may
// choose a repair after any other failure.
//
// The function runs in a separate task, a child of the type weaver.internal.repair_payload.v1, in its
// step "repair": it may Spend, and its result is recorded. Its error is retried like that of a
// handler. The returned input has the schema version of the task type and is checked like the input of
// Type.WithJSON; an invalid input fails the repair. The repair has the labels of the task. The task
// then runs again with its new input, or is judged again after a failed repair, up to MaxRepairs
// times.
//
// A task type has one Repair, in the options of one of its handlers. Only workers with it run its
// repairs, whatever Config.Queues says.
func Repair(fn func(ctx context.Context, r RepairRequest) (json.RawMessage, error)) HandlerOption {
	return handlerOption(func(s *handlerSettings) {
		switch {
		case fn == nil:
			s.problems = append(s.problems, errors.New("Repair: the function is nil"))
		case s.repair != nil:
			s.problems = append(s.problems, errors.New("two Repairs: one is enough"))
		}
		s.repair = fn
	})
}

func (t *contract) repairer(fn repairFunc) *repairer {
	return &repairer{fn: fn, check: t.checkInput, schema: schemaOf(t.in), version: t.set.Task.SchemaVersion}
}

// repaired is the result of a repair.
type repaired struct {
	InputHash  string `json:"input_sha256"` // hash of the task's current input
	Schema     int    `json:"schema_version"`
	Superseded bool   `json:"superseded,omitempty"` // another repair was faster
}

var repairType = Define[task.Repair, repaired](task.RepairType)

// repairHandler returns the handler of repairs, or an empty one if no handler can repair an input.
func (c *Client) repairHandler(handlers []Handler) Handler {
	by := make(map[string]*repairer)
	for i := range handlers {
		if r := handlers[i].repair; r != nil {
			by[handlers[i].name] = r
		}
	}
	if len(by) == 0 {
		return Handler{}
	}
	return repairType.Handler(func(ctx context.Context, in task.Repair) (repaired, error) {
		a, err := engine.From(ctx)
		if err != nil {
			return repaired{}, err
		}
		r := by[in.Type]
		if r == nil || a.Task().ParentID.IsZero() {
			return repaired{}, Permanent(fmt.Errorf("no input of %s can be repaired here: repairs are tasks that the engine makes, as children of the one whose input its handler cannot use", in.Type))
		}
		return c.repair(ctx, a, r, &toRepair{Repair: in, task: a.Task().ParentID})
	})
}

// toRepair is a repair and the task whose input it replaces.
type toRepair struct {
	task.Repair
	task task.ID
}

// repair replaces the input of a task.
func (c *Client) repair(ctx context.Context, a *engine.Attempt, r *repairer, in *toRepair) (repaired, error) {
	old, done, err := c.unrepaired(ctx, in)
	if err != nil || done.InputHash != "" && a.Task().StepCount == 0 { // otherwise it may be the new input of this repair
		return done, err
	}
	input, err := Step(ctx, "repair", func(ctx context.Context) (json.RawMessage, error) {
		raw, err := a.Load(ctx, "input of task "+in.task.String(), old.Input)
		if err != nil {
			return nil, err
		}
		return r.run(ctx, a, raw, in)
	})
	if err != nil {
		if context.Cause(ctx) != nil && !Suspended(err) {
			// The repair may have been asked to end because the task has another input.
			if _, done, readErr := c.unrepaired(context.WithoutCancel(ctx), in); readErr == nil && done.InputHash != "" {
				return done, nil
			}
		}
		return repaired{}, err
	}
	return c.replace(ctx, a, r, in, input)
}

// unrepaired returns the task to repair, or the result of an earlier repair.
func (c *Client) unrepaired(ctx context.Context, in *toRepair) (old TaskInfo, done repaired, err error) {
	old, err = c.get(ctx, in.task)
	if errors.Is(err, ErrNotFound) {
		return old, done, Permanent(err)
	} else if err != nil {
		return old, done, err
	}
	if hash := task.PayloadHash(old.Input); hash != in.InputHash || old.SchemaVersion != in.Schema {
		done = repaired{InputHash: hash, Schema: old.SchemaVersion, Superseded: true}
	}
	return old, done, nil
}

// run calls the function and checks its result.
func (r *repairer) run(ctx context.Context, a *engine.Attempt, raw json.RawMessage, in *toRepair) (json.RawMessage, error) {
	a.HideIn(raw) // in errors of the function and of the check
	input, err := r.fn(ctx, RepairRequest{
		TaskID: in.task, Type: in.Type, Raw: raw, Error: in.Error, Hint: in.Hint, Schema: r.schema, No: in.No, Most: in.MaxRepairs,
	})
	if err != nil {
		return nil, err
	}
	wrong := func(err error) error {
		return Permanent(&engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the repaired input of task %s does not fit %s: %w", in.task, in.Type, err)})
	}
	a.HideIn(input)
	if err := r.check(input); err != nil {
		return nil, wrong(err)
	}
	if bytes.Equal(input, raw) && r.version == in.Schema {
		return nil, wrong(errors.New("it is the input that was to be repaired"))
	}
	return input, nil
}

// replace stores the new input.
// Crash here: the next attempt reads it from the step and sends the same command.
func (c *Client) replace(ctx context.Context, a *engine.Attempt, r *repairer, in *toRepair, input json.RawMessage) (repaired, error) {
	id := a.Task().ID
	err := c.replaceInput(ctx, in.task, input, func(kept json.RawMessage) error {
		res, err := c.store.Operate(ctx, c.ns, store.ReplaceInput{
			Audit: store.Audit{By: "repair " + id.String(), Reason: fmt.Sprintf("repair %d of %d", in.No, in.MaxRepairs)},
			Task:  in.task, Input: kept, SchemaVersion: r.version, OldHash: in.InputHash, OldSchema: in.Schema, Repair: id,
		})
		if err != nil {
			return err
		}
		return res[0].Err
	})
	switch {
	case errors.Is(err, store.ErrChanged), errors.Is(err, ErrState):
		if _, done, readErr := c.unrepaired(ctx, in); readErr == nil && done.InputHash != "" {
			return done, nil // another input was faster
		}
		return repaired{}, Permanent(err) // the task no longer waits for it
	case err != nil && ctx.Err() == nil:
		return repaired{}, &engine.KindError{Kind: task.KindInternal, Err: fmt.Errorf("replace the input of task %s: %w", in.task, err)}
	}
	return repaired{InputHash: task.PayloadHash(input), Schema: r.version}, err
}

// replaceInput sends a command for an input that may go to the bucket.
func (c *Client) replaceInput(ctx context.Context, id TaskID, input json.RawMessage, send func(kept json.RawMessage) error) error {
	for try := 1; ; try++ {
		kept, err := c.values.Keep(ctx, id, input)
		if err != nil {
			return fmt.Errorf("keep the input in the bucket: %w", err)
		}
		err = send(kept)
		if try == 3 || !errors.Is(err, store.ErrBlobGone) { // a collector may be faster
			return err
		}
	}
}

// RepairInput replaces the input of a task that is blocked, for example because its input does not
// decode and no repair helped, and resumes it; or of a task that waits for a repair, which is then
// cancelled. The input is a value, or a json.RawMessage, stored without white space. A client that
// knows the type (an Engine with a handler of it, ClientConfig.Handlers) checks it as an enqueue does,
// and sets the handler's schema version. Another client does not check it and keeps the schema
// version. Recorded steps stay.
//
// The audit keeps the actor, the reason and the SHA-256 of both inputs. Errors: ErrNotFound;
// ErrInvalidInput; ErrTooLarge; ErrState if the task neither is blocked nor waits for a repair, or is
// blocked and already has this input; ErrChanged if its input changed concurrently or SeenEpoch
// differs.
func (c *Client) RepairInput(ctx context.Context, id TaskID, input any, opts ...OperateOption) error {
	what := "repair task " + id.String()
	raw, given := input.(json.RawMessage)
	var err error
	if !given {
		raw, err = json.Marshal(input)
	}
	if err == nil {
		err = checkJSON(raw)
	}
	if err == nil {
		var b bytes.Buffer
		err = json.Compact(&b, raw)
		raw = b.Bytes()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalidInput, err)
	}
	old, err := c.get(ctx, id)
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	version := old.SchemaVersion
	if h, ok := c.known[old.Type]; ok {
		if err := h.Draft(raw).Err(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		version = h.schema
	}
	if err := c.checkInput(old.Type, len(raw)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return c.replaceInput(ctx, id, raw, func(input json.RawMessage) error {
		_, err := c.operate(ctx, what, opts, func(s operateSettings) store.Command {
			return store.ReplaceInput{
				Audit: s.audit, Seen: s.seen, Task: id, Input: input, SchemaVersion: version,
				OldHash: task.PayloadHash(old.Input), OldSchema: old.SchemaVersion,
			}
		})
		return err
	})
}
