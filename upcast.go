package weaver

import (
	"encoding/json"
	"errors"
	"fmt"
)

// upcast converts an encoded input to the next schema version.
type upcast func(json.RawMessage) (json.RawMessage, error)

// Upcast converts inputs of a schema version to the next one, before the handler sees them. Declare
// one for each older version that may still wait: a task passes through all of them up to the
// handler's own version (SchemaVersion). Old and New are the types that the JSON of both versions
// decodes into, or json.RawMessage. An input of a version without an Upcast is used unchanged. The
// stored input does not change.
//
// An error of up, like an input that does not decode, blocks the task until a person resolves it
// (RepairInput), unless the handler has a Repair.
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

// checkUpcasts reports upcasts that no input of the type can need.
func (s *handlerSettings) checkUpcasts(version int) {
	for from := range s.upcasts {
		if from < 1 || from >= version {
			s.problems = append(s.problems, fmt.Errorf("Upcast(%d): want a version from 1 on that is older than the type has with its SchemaVersion, %d", from, version))
		}
	}
}

// problem returns the mistake in a handler's options for New to report, or "".
func (s *handlerSettings) problem(typeName string) string {
	if err := errors.Join(s.problems...); err != nil {
		return fmt.Sprintf("the handler of %s: %v", typeName, err)
	}
	return ""
}
