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

// RepairRequest is an input that a task cannot use, and what is known of that.
type RepairRequest struct {
	TaskID TaskID
	Type   string
	Raw    json.RawMessage // the input as it was stored
	Error  string          // why it cannot be used
	Hint   string          // by Config.RepairHinter
	Schema json.RawMessage // JSON Schema of what is expected

	No, Most int // which repair of the task it is, of how many (MaxRepairs)
}

type repairFunc func(context.Context, RepairRequest) (json.RawMessage, error)

// repairer repairs inputs of one task type.
type repairer struct {
	fn      repairFunc
	check   func(json.RawMessage) error
	schema  json.RawMessage
	version int // of the inputs that it makes
}

// Repair makes another input of one that does not decode, or that its Validate or an
// Upcast refuses: say by asking a language model, with the hint. Without it such a task
// is blocked. A Decider may choose a repair after any other failure.
//
// The function runs in a task of its own, a child of the type
// weaver.internal.repair_payload.v1, in the step "repair" of that: it may Spend, and
// its result is recorded. Its error is tried again like that of a handler. The input
// that it returns has the schema version of the task type and is checked as
// Type.WithJSON checks one, before anything uses it; if it does not fit, the repair has
// failed. The repair has the labels of the task. The task then runs again, with its new input or, after a repair that failed,
// to be judged once more: so many repairs as MaxRepairs allows.
//
// A task type has one Repair, in the options of one of its handlers. Only workers with
// it run its repairs, whatever Config.Queues says.
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

// Repaired is what a repair did.
type repaired struct {
	InputHash  string `json:"input_sha256"` // of the input that the task has now
	Schema     int    `json:"schema_version"`
	Superseded bool   `json:"superseded,omitempty"` // by another one, which came first
}

var repairType = Define[task.Repair, repaired](task.RepairType)

// repairHandler returns the handler of repairs; one that is empty if there is nothing
// that could repair an input.
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

// toRepair is a repair, and the task whose input it repairs.
type toRepair struct {
	task.Repair
	task task.ID
}

// repair replaces the input of a task.
func (c *Client) repair(ctx context.Context, a *engine.Attempt, r *repairer, in *toRepair) (repaired, error) {
	old, done, err := c.unrepaired(ctx, in)
	if err != nil || done.InputHash != "" && a.Task().StepCount == 0 { // else it may be the new input of this repair
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
			// It may have been asked to end because the task has another input.
			if _, done, readErr := c.unrepaired(context.WithoutCancel(ctx), in); readErr == nil && done.InputHash != "" {
				return done, nil
			}
		}
		return repaired{}, err
	}
	return c.replace(ctx, a, r, in, input)
}

// unrepaired returns the task whose input is to be repaired, or what was done already.
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

// run calls the function and checks what it returns.
func (r *repairer) run(ctx context.Context, a *engine.Attempt, raw json.RawMessage, in *toRepair) (json.RawMessage, error) {
	a.HideIn(raw) // from the errors of the function, and of the check
	input, err := r.fn(ctx, RepairRequest{
		TaskID: in.task, Type: in.Type, Raw: raw, Error: in.Error, Hint: in.Hint, Schema: r.schema, No: in.No, Most: in.MaxRepairs,
	})
	if err != nil {
		return nil, err
	}
	wrong := func(err error) error {
		return Permanent(&engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the repaired input of task %s is no %s: %w", in.task, in.Type, err)})
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
// Crash here: the next attempt has it from the step, and sends the same command.
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
			return done, nil // another input came first
		}
		return repaired{}, Permanent(err) // the task does not wait for it any more
	case err != nil && ctx.Err() == nil:
		return repaired{}, &engine.KindError{Kind: task.KindInternal, Err: fmt.Errorf("replace the input of task %s: %w", in.task, err)}
	}
	return repaired{InputHash: task.PayloadHash(input), Schema: r.version}, err
}

// replaceInput has a command sent for an input that may go to the bucket.
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

// RepairInput gives a task another input: one that is blocked, say because its input
// does not decode and no repair helped, which runs again with it, or one that waits for
// a repair, which is not needed any more. The input is a value, or a json.RawMessage
// that is stored without its white space. A client that knows the type (an Engine with a
// handler of it, ClientConfig.Handlers) checks it as an enqueue does, and the input has the
// handler's schema version then; another one does not check it, and the schema version
// stays. The steps that the task recorded stay.
//
// The audit keeps who did it and why, and the SHA-256 of both inputs. ErrNotFound;
// ErrInvalidInput; ErrTooLarge; ErrState: the task neither is blocked nor waits for a
// repair, or is blocked and has this input already; store.ErrChanged: it got another input
// at the same time, or SeenEpoch says so.
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
