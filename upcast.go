package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/task"
)

// upcast makes of an encoded input that of the next schema version.
type upcast func(json.RawMessage) (json.RawMessage, error)

// Upcast turns inputs that were enqueued with a schema version into those of the
// next one, before the handler sees them: give one for each older version that
// may still wait, and a task goes through all that lead to the handler's own
// (SchemaVersion). Old and New are what JSON of both versions decodes into, or
// json.RawMessage. An input of a version without an Upcast is taken as it is.
// The stored input does not change.
//
// An error of up, like an input that does not decode, blocks the task until a person
// has looked (RepairInput), unless the handler has a Repair.
func Upcast[Old, New any](from int, up func(Old) (New, error)) HandlerOption {
	return handlerOption(func(s *handlerSettings) {
		switch {
		case up == nil:
			s.problems = append(s.problems, fmt.Errorf("Upcast(%d): the function is nil", from))
			return
		case s.upcasts[from] != nil:
			s.problems = append(s.problems, fmt.Errorf("two Upcasts from %d", from))
			return
		}
		if s.upcasts == nil {
			s.upcasts = make(map[int]upcast)
		}
		s.upcasts[from] = func(raw json.RawMessage) (json.RawMessage, error) {
			var old Old
			if err := json.Unmarshal(raw, &old); err != nil {
				return nil, fmt.Errorf("it does not decode as %T: %w", old, err)
			}
			next, err := up(old)
			if err != nil {
				return nil, err
			}
			return json.Marshal(next)
		}
	})
}

// checkUpcasts reports those that no input of the type can need.
func (s *handlerSettings) checkUpcasts(version int) {
	for from := range s.upcasts {
		if from < 1 || from >= version {
			s.problems = append(s.problems, fmt.Errorf("Upcast(%d): want a version from 1 on that is older than the type has with its SchemaVersion, %d", from, version))
		}
	}
}

// input decodes the input of a task that a handler of this type is to run: it is
// brought to the handler's schema version, decoded, and validated.
func (t *Type[In, Out]) input(ctx context.Context, raw json.RawMessage, upcasts map[int]upcast) (in In, err error) {
	refuse := func(err error) (In, error) {
		return in, &engine.KindError{Kind: task.KindDecode, Err: err}
	}
	version := t.set.task.SchemaVersion
	if a, err := engine.From(ctx); err == nil && a.Task().Type == t.name {
		version = a.Task().SchemaVersion
	}
	if version > t.set.task.SchemaVersion {
		return refuse(fmt.Errorf("the input has schema version %d, which is newer than the handler's, %d", version, t.set.task.SchemaVersion))
	}
	for ; version < t.set.task.SchemaVersion; version++ {
		up := upcasts[version]
		if up == nil {
			continue
		}
		if raw, err = up(raw); err != nil {
			return refuse(fmt.Errorf("bring the input from schema version %d to %d: %w", version, version+1, err))
		}
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return refuse(fmt.Errorf("the input does not decode as %T: %w", in, jsonfields.Mistake(err, reflect.TypeFor[In]())))
	}
	if err := validate(&in); err != nil {
		return refuse(fmt.Errorf("the input is not valid: %w", err))
	}
	return in, nil
}

// problem is what New reports of the options of a handler, "" if nothing.
func (s *handlerSettings) problem(typeName string) string {
	if err := errors.Join(s.problems...); err != nil {
		return fmt.Sprintf("the handler of %s: %v", typeName, err)
	}
	return ""
}
