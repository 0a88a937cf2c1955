package weaver

import (
	"context"
	"fmt"
	"reflect"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/task"
)

// RedactText masks in a text the masked values that the handler of ctx has seen, as in error texts. It
// is for plug-ins, which get unmasked errors of steps. Outside a handler it returns the text
// unchanged.
func RedactText(ctx context.Context, text string) string {
	a, err := engine.From(ctx)
	if err != nil {
		return text
	}
	return a.HiddenIn(text)
}

// redactType records the tagged fields of a task type's input and output.
func redactType(s *option.Settings, in, out reflect.Type) {
	for _, of := range []struct {
		what string
		typ  reflect.Type
	}{{redact.Input, in}, {redact.Output, out}} {
		paths, err := redact.Paths(of.typ)
		if err != nil {
			s.Problem("%s: %w", of.what, err)
		}
		s.Task.Redact = append(s.Task.Redact, redact.In(of.what, paths)...)
		expire, _ := redact.Expiries(of.typ) // the same error
		switch {
		case of.what == redact.Input:
			s.Task.Expire = expire
		case len(expire) > 0:
			s.Problem("output: %w", errExpires(expire))
		}
	}
}

// errExpires refuses the tag where it has no effect.
func errExpires(list []task.Expiry) error {
	return fmt.Errorf("the field %s has the tag weaver:%q, which holds for inputs alone: use a type without it", list[0].Path, "expire="+list[0].After.String())
}

// redactStep returns the tagged fields of a step's value. A wrong tag is a mistake in the program and
// fails the task.
func redactStep(value reflect.Type) ([]string, error) {
	paths, err := redact.Paths(value)
	if expire, _ := redact.Expiries(value); err == nil && len(expire) > 0 {
		err = errExpires(expire)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	return paths, nil
}

// redactKeys turns Config.Redact into patterns.
func redactKeys(keys []string) (patterns []string, problems []error) {
	for _, k := range keys {
		p, err := redact.CheckKey(k)
		if err != nil {
			problems = append(problems, fmt.Errorf("in Redact: %w", err))
			continue
		}
		patterns = append(patterns, p)
	}
	return patterns, problems
}
