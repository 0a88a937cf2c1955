package weaver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// None is the input or output of a task type that has none.
type None = struct{}

// Type is a task type: a named contract between the code that enqueues tasks
// and the code that handles them. Producers and workers share its definition;
// In and Out travel as JSON.
type Type[In, Out any] struct {
	name string
	set  settings
}

// AnyType is a Type of any input and output.
type AnyType interface {
	// Name returns the task type's name.
	Name() string
	// Info returns what the definition says of the task type.
	Info() TypeInfo
	// Payloads returns the Go types of its input and output.
	Payloads() (in, out reflect.Type)
	anyType()
}

// Define makes a task type. Name has the form owner.domain.action.vN, for
// example "acme.billing.charge.v1"; the version rises when the input changes
// incompatibly. Define panics on a bad name or option: it is meant for package
// variables, and a program with such a mistake must not start.
func Define[In, Out any](name string, opts ...TypeOption) *Type[In, Out] {
	if err := task.CheckTypeName(name); err != nil {
		panic("weaver.Define: " + err.Error())
	}
	t := &Type[In, Out]{name: name, set: defaults()}
	redactType[In, Out](&t.set)
	for _, o := range opts {
		if o == nil {
			t.set.problem("an option is nil")
			continue
		}
		o.applyType(&t.set)
	}
	if err := errors.Join(t.set.errs...); err != nil {
		panic(fmt.Sprintf("weaver.Define(%q): %v", name, err))
	}
	return t
}

// Name returns the task type's name.
func (t *Type[In, Out]) Name() string { return t.name }
func (t *Type[In, Out]) anyType()     {}

// Draft is a task that is not enqueued yet. The call that it is given to
// reports its mistakes.
type Draft struct {
	typeName string
	input    json.RawMessage
	set      *settings // shared with the type or with other drafts; nil: the draft is empty
	err      error
}

// options are what the draft was given, to be read only: they are shared (own).
func (d *Draft) options() *task.New {
	if d.set == nil {
		return new(task.New)
	}
	return &d.set.task
}

// own gives the draft a copy of its settings, which may be changed, and returns it.
func (d *Draft) own() *settings {
	var set settings
	if d.set != nil {
		set = d.set.clone()
	}
	d.set = &set
	return &set
}

// With makes a draft: for EnqueueTasks, or for a Job's Add. The input is
// validated (Validate() error, when it has one) and encoded at once.
func (t *Type[In, Out]) With(in In, opts ...EnqueueOption) Draft {
	d := Draft{typeName: t.name, set: &t.set}
	if d.input, d.err = t.encode(in); d.err == nil {
		d.apply(opts)
	}
	return d
}

// encode validates and encodes an input.
func (t *Type[In, Out]) encode(in In) (json.RawMessage, error) {
	err := validate(&in)
	if err == nil {
		var raw json.RawMessage
		if raw, err = encode(in); err == nil {
			return raw, nil
		}
	}
	return nil, fmt.Errorf("%w of %s: %w", ErrInvalidInput, t.name, err)
}

// WithJSON is With for input that is encoded already, say by another program. It
// must decode as In: fields that In does not have are refused, and so is what its
// Validate refuses. It is stored as it is given, numbers with all their digits.
func (t *Type[In, Out]) WithJSON(input json.RawMessage, opts ...EnqueueOption) Draft {
	d := Draft{typeName: t.name, input: input, set: &t.set}
	if err := t.checkInput(input); err != nil {
		d.err = fmt.Errorf("%w of %s: %w", ErrInvalidInput, t.name, err)
		return d
	}
	d.apply(opts)
	return d
}

func (t *Type[In, Out]) checkInput(input json.RawMessage) error {
	if err := checkJSON(input); err != nil {
		return err
	}
	var in In
	if err := decodeStrict(input, &in); err != nil {
		return err
	}
	return validate(&in)
}

// decodeStrict decodes what a person or another program wrote: a field that v
// lacks is a mistake.
func decodeStrict(raw json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return jsonfields.Mistake(dec.Decode(v), reflect.TypeOf(v).Elem())
}

// NewDraft makes a draft of a task type that is only known by name, with
// encoded input, which is not checked. Programs that have the Type use its With
// or WithJSON.
func NewDraft(typeName string, input json.RawMessage, opts ...EnqueueOption) Draft {
	set := defaults()
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

// Err returns what is wrong with the draft, nil if nothing is: what enqueueing it
// would return, but for what the store says and the limit of payloads.
func (d Draft) Err() error { return d.err }

// Type returns the name of the draft's task type, "" if it was not made with one.
func (d Draft) Type() string { return d.typeName }

// Queue returns the queue in which the draft's task will wait.
func (d Draft) Queue() string { return d.options().Queue }

// And returns the draft with more options, which come after those that it has.
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
			set.problem("an option is nil")
			continue
		}
		o.applyEnqueue(set)
	}
	if n := &set.task; n.Coalesce && n.IdempotencyKey == "" && n.ConcurrencyKey == "" {
		set.problem("Coalesce needs an IdempotencyKey or a ConcurrencyKey, by which it finds the task that waits")
	}
	if err := errors.Join(set.errs...); err != nil {
		d.err = fmt.Errorf("%w of %s: %w", ErrInvalidOption, d.typeName, err)
	}
}

// Enqueue stores a task durably and returns a handle without waiting for it.
func (t *Type[In, Out]) Enqueue(ctx context.Context, e Enqueuer, in In, opts ...EnqueueOption) (*Handle[Out], error) {
	if e == nil {
		return nil, fmt.Errorf("enqueue %s: %w: the client is nil", t.name, ErrInvalidOption)
	}
	got, err := e.EnqueueTasks(ctx, t.With(in, opts...))
	if err != nil {
		return nil, err
	}
	return newHandle[Out](e, got[0]), nil
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

// EnqueueMany stores one task per input in one transaction: all of them, or
// none and an error. The options hold for every task.
func (t *Type[In, Out]) EnqueueMany(ctx context.Context, e Enqueuer, ins []In, opts ...EnqueueOption) ([]*Handle[Out], error) {
	if len(ins) == 0 {
		return nil, nil
	}
	alike := Draft{typeName: t.name, set: &t.set}
	alike.apply(opts)
	switch {
	case alike.options().IdempotencyKey != "":
		return nil, fmt.Errorf("%w: IdempotencyKey in EnqueueMany would give every task of %s the same key: use EnqueueTasks with one draft per key", ErrInvalidOption, t.name)
	case alike.err != nil:
		return nil, alike.err
	}
	drafts := make([]Draft, len(ins))
	for i, in := range ins {
		drafts[i] = alike
		if drafts[i].input, alike.err = t.encode(in); alike.err != nil {
			return nil, fmt.Errorf("input %d: %w", i, alike.err)
		}
	}
	got, err := e.EnqueueTasks(ctx, drafts...)
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
	DecodeError error // why Input or Output is not what was stored: that does not fit the type any more
}

// Reader reads tasks: a Client or an Engine.
type Reader interface {
	Get(ctx context.Context, id TaskID) (TaskInfo, error)
	List(ctx context.Context, f Filter) (tasks []TaskInfo, next string, err error)
}

// Get reads one task of this type; ErrNotFound, ErrWrongType. A payload that
// does not fit the type any more is an error; what could be read comes with it.
func (t *Type[In, Out]) Get(ctx context.Context, c Reader, id TaskID) (TypedTask[In, Out], error) {
	info, err := c.Get(ctx, id)
	if err != nil {
		return TypedTask[In, Out]{}, err
	}
	if info.Type != t.name {
		return TypedTask[In, Out]{}, fmt.Errorf("task %s is a %s, not a %s: %w", id, info.Type, t.name, ErrWrongType)
	}
	typed := t.typed(info)
	return typed, typed.DecodeError
}

// List reads tasks of this type, newest first, and the cursor of the next
// page, "" at the end; see Client.List. A task whose payload does not fit the type any more is
// listed with its DecodeError.
func (t *Type[In, Out]) List(ctx context.Context, c Reader, f Filter) ([]TypedTask[In, Out], string, error) {
	f.Types = []string{t.name}
	infos, next, err := c.List(ctx, f)
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
	if err := unread(&info); err != nil {
		tt.DecodeError = err
		return tt
	}
	if err := unloaded("input", info.ID, info.Input); err != nil {
		tt.DecodeError = err
	} else if err := json.Unmarshal(task.WithoutExpired(info.Input), &tt.Input); err != nil {
		tt.DecodeError = fmt.Errorf("the input of task %s no longer decodes: %w", info.ID, err)
	}
	if err := unloaded("output", info.ID, info.Output); err != nil {
		tt.DecodeError = errors.Join(tt.DecodeError, err)
	} else if len(info.Output) > 0 {
		if err := json.Unmarshal(info.Output, &tt.Output); err != nil {
			tt.DecodeError = errors.Join(tt.DecodeError, fmt.Errorf("the output of task %s no longer decodes: %w", info.ID, err))
		}
	}
	return tt
}

// unread returns the error for a task that was read without its values. What is in the
// store has an input, unless that was dropped.
func unread(info *TaskInfo) error {
	if len(info.Input) > 0 || info.ValuesDropped {
		return nil
	}
	return fmt.Errorf("the values of task %s were not read: over HTTP a list has none, for which there is Get, and credentials without the access payloads see none", info.ID)
}

// Output returns, inside a handler of a job's task, the output of a task that
// it needs, by its name in the job. Errors: ErrNoTask, ErrNoSuchNeed,
// ErrNotSucceeded, which a need with AllowFailure may be.
func (t *Type[In, Out]) Output(ctx context.Context, node string) (Out, error) {
	var out Out
	a, err := engine.From(ctx)
	if err != nil {
		return out, err
	}
	needs, err := a.Needs(ctx)
	if err != nil {
		return out, err
	}
	need, ok := findNeed(needs, node)
	if !ok {
		return out, fmt.Errorf("%q: %w; it needs %v", node, ErrNoSuchNeed, needNames(needs))
	}
	if need.State != task.Succeeded {
		may := ""
		if need.End().Allowed() {
			may = ", which the job allows"
		}
		return out, fmt.Errorf("%q is %s%s: %w", node, need.State, may, ErrNotSucceeded)
	}
	got, err := a.Store().Tasks(ctx, a.Namespace(), need.ID)
	if err != nil {
		return out, fmt.Errorf("read the output of %q: %w", node, err)
	}
	if len(got) == 0 {
		return out, fmt.Errorf("%q (%s): %w", node, need.ID, ErrNotFound)
	}
	if got[0].Type != t.name {
		return out, fmt.Errorf("%q is a %s, not a %s: %w", node, got[0].Type, t.name, ErrWrongType)
	}
	if err := engine.Erased("output", &got[0]); err != nil {
		return out, fmt.Errorf("%q: %w", node, err)
	}
	if got[0].ValuesDropped {
		return out, fmt.Errorf("the output of %q (%s): %w", node, need.ID, ErrValuesDropped)
	}
	raw, err := a.Load(ctx, fmt.Sprintf("output of %q", node), got[0].Output)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("the output of %q no longer decodes: %w", node, err)
	}
	return out, nil
}

func findNeed(needs []store.Need, node string) (store.Need, bool) {
	for _, n := range needs {
		if n.Node == node {
			return n, true
		}
	}
	return store.Need{}, false
}

func needNames(needs []store.Need) []string {
	names := make([]string, 0, len(needs))
	for _, n := range needs {
		names = append(names, n.Node)
	}
	return names
}
