package weaver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// None is the input or output type of a task type without one.
type None = struct{}

// Type is a task type: a named contract between the code that enqueues tasks and the code that handles
// them. Producers and workers share its definition; In and Out travel as JSON.
type Type[In, Out any] struct{ contract }

// AnyType is a Type of any input and output.
type AnyType interface {
	// Name returns the task type's name.
	Name() string
	// Info returns the definition of the task type.
	Info() store.AnnouncedType
	// Payloads returns the Go types of its input and output.
	Payloads() (in, out reflect.Type)
	anyType()
}

// Define defines a task type. Name has the form owner.domain.action.vN, for example
// "acme.billing.charge.v1"; raise the version when the input changes incompatibly. Define panics on a
// bad name or option: it is meant for package variables, and a program with such a mistake must not
// start.
func Define[In, Out any](name string, opts ...TypeOption) *Type[In, Out] {
	return &Type[In, Out]{newContract(name, reflect.TypeFor[In](), reflect.TypeFor[Out](), opts)}
}

// Draft is a task that is not enqueued yet. The call that receives it reports its mistakes.
type Draft struct {
	typeName string
	input    json.RawMessage
	set      *option.Settings // shared with the type or with other drafts; nil: the draft is empty
	err      error
}

// options returns the draft's options, read-only: they are shared (own).
func (d *Draft) options() *task.New {
	if d.set == nil {
		return new(task.New)
	}
	return &d.set.Task
}

// own gives the draft its own copy of its settings and returns it.
func (d *Draft) own() *option.Settings {
	var set option.Settings
	if d.set != nil {
		set = d.set.Clone()
	}
	d.set = &set
	return &set
}

// With makes a draft for EnqueueTasks or a Job's Add. The input is validated (Validate() error, if it
// has one) and encoded at once.
func (t *Type[In, Out]) With(in In, opts ...EnqueueOption) Draft {
	return t.draftOf(&in, opts)
}

// decodeStrict decodes input of a person or another program and refuses fields that v lacks.
func decodeStrict(raw json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return jsonfields.Mistake(dec.Decode(v), reflect.TypeOf(v).Elem())
}

// NewDraft makes a draft of a task type known only by name, with encoded input, which is not checked.
// Programs that have the Type use its With or WithJSON.
func NewDraft(typeName string, input json.RawMessage, opts ...EnqueueOption) Draft {
	set := option.Defaults()
	d := Draft{typeName: typeName, input: input, set: &set}
	if err := task.CheckTypeName(typeName); err != nil {
		d.err = fmt.Errorf("%w: %w", ErrInvalidInput, err)
		return d
	}
	if err := checkJSON(input); err != nil {
		d.err = fmt.Errorf("%w of %s: %w", ErrInvalidInput, typeName, err)
		return d
	}
	d.apply(opts)
	return d
}

// Err returns the draft's error, or nil: the error that enqueueing it would return, except errors of
// the store and ErrTooLarge.
func (d Draft) Err() error { return d.err }

// Type returns the name of the draft's task type, "" for an empty draft.
func (d Draft) Type() string { return d.typeName }

// Queue returns the queue in which the draft's task will wait.
func (d Draft) Queue() string { return d.options().Queue }

// And returns the draft with more options, applied after its own.
func (d Draft) And(opts ...EnqueueOption) Draft {
	if d.err == nil {
		d.apply(opts)
	}
	return d
}

func (d *Draft) apply(opts []EnqueueOption) {
	if len(opts) == 0 {
		return
	}
	set := d.own()
	for _, o := range opts {
		if o == nil {
			set.Problem("an option is nil")
			continue
		}
		o.ApplyEnqueue(set)
	}
	if n := &set.Task; n.Coalesce && n.IdempotencyKey == "" && n.ConcurrencyKey == "" {
		set.Problem("Coalesce needs an IdempotencyKey or a ConcurrencyKey, by which it finds the task that waits")
	}
	if n := &set.Task; n.RequireSameInput && n.IdempotencyKey == "" {
		set.Problem("RequireSameInput needs an IdempotencyKey, by which it finds the task that exists")
	}
	if err := errors.Join(set.Errs...); err != nil {
		d.err = fmt.Errorf("%w of %s: %w", ErrInvalidOption, d.typeName, err)
	}
}

// Enqueue stores a task durably and returns a handle without waiting for it.
func (t *Type[In, Out]) Enqueue(ctx context.Context, e Enqueuer, in In, opts ...EnqueueOption) (*Handle[Out], error) {
	got, err := t.enqueue(ctx, e, &in, opts)
	if err != nil {
		return nil, err
	}
	return newHandle[Out](e, got), nil
}

// EnqueueAndWait enqueues a task and waits for its output.
func (t *Type[In, Out]) EnqueueAndWait(ctx context.Context, e Enqueuer, in In, opts ...EnqueueOption) (Out, error) {
	h, err := t.Enqueue(ctx, e, in, opts...)
	if err != nil {
		var none Out
		return none, err
	}
	return h.Wait(ctx)
}

// EnqueueMany stores one task per input in one transaction, all or nothing. The options apply to every
// task; [PerItem] sets individual ones.
func (t *Type[In, Out]) EnqueueMany(ctx context.Context, e Enqueuer, ins []In, opts ...EnqueueOption) ([]*Handle[Out], error) {
	got, err := t.enqueueMany(ctx, e, len(ins), func(i int) any { return &ins[i] }, opts)
	if err != nil {
		return nil, err
	}
	handles := make([]*Handle[Out], len(got))
	for i, g := range got {
		handles[i] = newHandle[Out](e, g)
	}
	return handles, nil
}

// TypedTask is a task with its input and output decoded. Output is the zero
// value until the task succeeded.
type TypedTask[In, Out any] struct {
	TaskInfo
	Input       In
	Output      Out
	DecodeError error // why Input or Output no longer fits the type
}

// Get reads one task of this type. Errors: ErrNotFound, ErrWrongType, and a payload that no longer
// fits the type; the readable part is returned with the error.
func (t *Type[In, Out]) Get(ctx context.Context, c Caller, id TaskID) (TypedTask[In, Out], error) {
	info, err := t.get(ctx, c, id)
	if err != nil {
		return TypedTask[In, Out]{}, err
	}
	typed := t.typed(info)
	return typed, typed.DecodeError
}

// List reads tasks of this type, newest first, and the cursor of the next page, "" at the end; see
// Client.List. A task whose payload no longer fits the type is listed with its DecodeError.
func (t *Type[In, Out]) List(ctx context.Context, c Caller, f Filter) ([]TypedTask[In, Out], string, error) {
	infos, next, err := t.list(ctx, c, f)
	if err != nil {
		return nil, "", err
	}
	typed := make([]TypedTask[In, Out], len(infos))
	for i, info := range infos {
		typed[i] = t.typed(info)
	}
	return typed, next, nil
}

func (t *Type[In, Out]) typed(info TaskInfo) TypedTask[In, Out] {
	tt := TypedTask[In, Out]{TaskInfo: info}
	tt.DecodeError = decodeTask(&info, &tt.Input, &tt.Output)
	return tt
}

// Output returns, inside a handler of a job's task, the output of a need by its name in the job.
// Errors: ErrNoTask, ErrNoSuchNeed, and ErrNotSucceeded, for example for a need with AllowFailure.
func (t *Type[In, Out]) Output(ctx context.Context, node string) (out Out, err error) {
	err = t.outputOfNeed(ctx, node, &out)
	return out, err
}
