package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// contract is the part of a Type that does not depend on its type parameters. The methods of Type are
// instantiated for each pair of types in a program, so they only convert; contract does the work.
// Inputs and outputs are passed as pointers.
type contract struct {
	name    string
	set     option.Settings
	in, out reflect.Type
}

func newContract(name string, in, out reflect.Type, opts []TypeOption) contract {
	if err := task.CheckTypeName(name); err != nil {
		panic("weaver.Define: " + err.Error())
	}
	t := contract{name: name, set: option.Defaults(), in: in, out: out}
	redactType(&t.set, in, out)
	for _, o := range opts {
		if o == nil {
			t.set.Problem("an option is nil")
			continue
		}
		o.ApplyType(&t.set)
	}
	if err := errors.Join(t.set.Errs...); err != nil {
		panic(fmt.Sprintf("weaver.Define(%q): %v", name, err))
	}
	return t
}

// Name returns the task type's name.
func (t *contract) Name() string { return t.name }
func (t *contract) anyType()     {}

// draftOf makes a draft of an input.
func (t *contract) draftOf(in any, opts []EnqueueOption) Draft {
	d := Draft{typeName: t.name, set: &t.set}
	if d.input, d.err = t.encode(in); d.err == nil {
		d.apply(opts)
	}
	return d
}

// encode validates and encodes an input.
func (t *contract) encode(in any) (json.RawMessage, error) {
	err := validate(in)
	if err == nil {
		var raw json.RawMessage
		if raw, err = encode(in); err == nil {
			return raw, nil
		}
	}
	return nil, fmt.Errorf("%w of %s: %w", ErrInvalidInput, t.name, err)
}

// WithJSON is With for encoded input, for example of another program. The input must decode as In,
// without unknown fields, and pass its Validate. It is stored unchanged, numbers with all their
// digits.
func (t *contract) WithJSON(input json.RawMessage, opts ...EnqueueOption) Draft {
	d := Draft{typeName: t.name, input: input, set: &t.set}
	if err := t.checkInput(input); err != nil {
		d.err = fmt.Errorf("%w of %s: %w", ErrInvalidInput, t.name, err)
		return d
	}
	d.apply(opts)
	return d
}

// checkInput reports why an encoded input is invalid for the type.
func (t *contract) checkInput(input json.RawMessage) error {
	if err := checkJSON(input); err != nil {
		return err
	}
	in := reflect.New(t.in).Interface()
	if err := decodeStrict(input, in); err != nil {
		return err
	}
	return validate(in)
}

func (t *contract) enqueue(ctx context.Context, e Enqueuer, in any, opts []EnqueueOption) (Enqueued, error) {
	if e == nil {
		return Enqueued{}, fmt.Errorf("enqueue %s: %w: the client is nil", t.name, ErrInvalidOption)
	}
	got, err := e.EnqueueTasks(ctx, t.draftOf(in, opts))
	if err != nil {
		return Enqueued{}, err
	}
	return got[0], nil
}

// enqueueMany enqueues n tasks with the inputs that at returns.
func (t *contract) enqueueMany(ctx context.Context, e Enqueuer, n int, at func(i int) any, opts []EnqueueOption) ([]Enqueued, error) {
	if n == 0 {
		return nil, nil
	}
	opts, own := cutPerItem(opts)
	alike := Draft{typeName: t.name, set: &t.set}
	alike.apply(opts)
	switch {
	case alike.options().IdempotencyKey != "":
		return nil, fmt.Errorf("%w: IdempotencyKey in EnqueueMany would give every task of %s the same key: give each its own, with PerItem, or use EnqueueTasks with one draft per key", ErrInvalidOption, t.name)
	case alike.err != nil:
		return nil, alike.err
	}
	drafts := make([]Draft, n)
	for i := range drafts {
		drafts[i] = alike
		if drafts[i].input, alike.err = t.encode(at(i)); alike.err != nil {
			return nil, fmt.Errorf("input %d: %w", i, alike.err)
		}
		if own == nil {
			continue
		}
		if drafts[i].apply(own(i)); drafts[i].err != nil {
			return nil, fmt.Errorf("input %d: %w", i, drafts[i].err)
		}
	}
	return e.EnqueueTasks(ctx, drafts...)
}

// get reads a task of the type.
func (t *contract) get(ctx context.Context, c Caller, id TaskID) (TaskInfo, error) {
	info, err := c.Get(ctx, id)
	if err != nil {
		return TaskInfo{}, err
	}
	if info.Type != t.name {
		return TaskInfo{}, fmt.Errorf("task %s is a %s, not a %s: %w", id, info.Type, t.name, ErrWrongType)
	}
	return info, nil
}

// list reads tasks of the type.
func (t *contract) list(ctx context.Context, c Caller, f Filter) ([]TaskInfo, string, error) {
	f.Types = []string{t.name}
	return c.List(ctx, f)
}

// decodeTask decodes the input and the output of a task.
func decodeTask(info *TaskInfo, in, out any) error {
	err := unread(info)
	if err != nil {
		return err
	}
	if err = unloaded("input", info.ID, info.Input); err == nil {
		if bad := json.Unmarshal(task.WithoutExpired(info.Input), in); bad != nil {
			err = fmt.Errorf("the input of task %s no longer decodes: %w", info.ID, bad)
		}
	}
	if bad := unloaded("output", info.ID, info.Output); bad != nil {
		err = errors.Join(err, bad)
	} else if len(info.Output) > 0 {
		if bad := json.Unmarshal(info.Output, out); bad != nil {
			err = errors.Join(err, fmt.Errorf("the output of task %s no longer decodes: %w", info.ID, bad))
		}
	}
	return err
}

// unread returns the error for a task that was read without its values. A stored task has an input,
// unless it was dropped.
func unread(info *TaskInfo) error {
	if len(info.Input) > 0 || info.ValuesDropped {
		return nil
	}
	return fmt.Errorf("the values of task %s were not read: use Get, because lists over HTTP have no values, and credentials that have the access payloads", info.ID)
}

// outputOfNeed decodes the output of a need of the running task.
func (t *contract) outputOfNeed(ctx context.Context, node string, out any) error {
	a, err := engine.From(ctx)
	if err != nil {
		return err
	}
	needs, err := a.Needs(ctx)
	if err != nil {
		return err
	}
	need, ok := findNeed(needs, node)
	if !ok {
		return fmt.Errorf("%q: %w; it needs %v", node, ErrNoSuchNeed, needNames(needs))
	}
	if need.State != task.Succeeded {
		may := ""
		if need.End().Allowed() {
			may = ", which the job allows"
		}
		return fmt.Errorf("%q is %s%s: %w", node, need.State, may, ErrNotSucceeded)
	}
	got, err := a.Tasks(ctx, need.ID)
	if err != nil {
		return fmt.Errorf("read the output of %q: %w", node, err)
	}
	if len(got) == 0 {
		return fmt.Errorf("%q (%s): %w", node, need.ID, ErrNotFound)
	}
	if got[0].Type != t.name {
		return fmt.Errorf("%q is a %s, not a %s: %w", node, got[0].Type, t.name, ErrWrongType)
	}
	if err := engine.Erased("output", &got[0]); err != nil {
		return fmt.Errorf("%q: %w", node, err)
	}
	if got[0].ValuesDropped {
		return fmt.Errorf("the output of %q (%s): %w", node, need.ID, ErrValuesDropped)
	}
	raw, err := a.Load(ctx, fmt.Sprintf("output of %q", node), got[0].Output)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the output of %q no longer decodes: %w", node, err)
	}
	return nil
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

// decodeInput decodes the input of a task for a handler of this type: it upcasts the input to the
// handler's schema version, decodes and validates it.
func (t *contract) decodeInput(ctx context.Context, raw json.RawMessage, upcasts map[int]upcast, in any) error {
	refuse := func(err error) error { return &engine.KindError{Kind: task.KindDecode, Err: err} }
	version := t.set.Task.SchemaVersion
	if a, err := engine.From(ctx); err == nil && a.Task().Type == t.name {
		version = a.Task().SchemaVersion
	}
	if version > t.set.Task.SchemaVersion {
		return refuse(fmt.Errorf("the input has schema version %d, which is newer than the handler's, %d", version, t.set.Task.SchemaVersion))
	}
	for ; version < t.set.Task.SchemaVersion; version++ {
		up := upcasts[version]
		if up == nil {
			continue
		}
		var err error
		if raw, err = up(raw); err != nil {
			return refuse(fmt.Errorf("bring the input from schema version %d to %d: %w", version, version+1, err))
		}
	}
	if err := t.unmarshalInput(ctx, raw, in); err != nil {
		return refuse(fmt.Errorf("the input does not decode as %s: %w", t.in, jsonfields.Mistake(err, t.in)))
	}
	if err := validate(in); err != nil {
		return refuse(fmt.Errorf("the input is not valid: %w", err))
	}
	return nil
}

// unmarshalInput decodes a stored input. The running engine's Config.UnknownFields decides about
// fields that the type lacks; without an engine they are ignored.
func (t *contract) unmarshalInput(ctx context.Context, raw json.RawMessage, in any) error {
	a, err := engine.From(ctx)
	if err != nil || a.UnknownFields() == task.UnknownIgnore || a.Task().Type != t.name {
		return json.Unmarshal(raw, in)
	}
	mistake := decodeStrict(raw, in)
	if mistake == nil {
		return nil
	}
	// The strict decoder may have failed for another reason: report that reason.
	reflect.ValueOf(in).Elem().SetZero()
	if err := json.Unmarshal(raw, in); err != nil {
		return err
	}
	if a.UnknownFields() == task.UnknownRefuse {
		return mistake
	}
	a.WarnUnknown(mistake)
	return nil
}
