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

// RedactText returns a text in which what the handler of ctx has seen in masked values is
// masked, as far as Weaver masks it in the texts of errors: for plug-ins, which get
// errors of steps as they are. Outside a handler the text stays as it is.
func RedactText(ctx context.Context, text string) string {
	a, err := engine.From(ctx)
	if err != nil {
		return text
	}
	return a.HiddenIn(text)
}

// redactType notes which fields of a task type's input and output are tagged.
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

// errExpires refuses the tag where it does nothing.
func errExpires(list []task.Expiry) error {
	return fmt.Errorf("the field %s has the tag weaver:%q, which holds for inputs alone: use a type without it", list[0].Path, "expire="+list[0].After.String())
}

// redactStep returns the tagged fields of what a step gives. A wrong tag is a mistake
// of the program, which fails the task.
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
