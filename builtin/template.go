package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/pipeline/value"
)

// maxArgument is the maximum length of an argument or variable on Linux, in bytes,
// without the final NUL.
const maxArgument = 128<<10 - 1

func (in RunInput) texts() value.Texts { return value.Texts{Args: in.Argv, Env: in.Env} }

// filled returns the input with the values of needs filled in.
func (in RunInput) filled(ctx context.Context, files *handed) (RunInput, error) {
	if !in.Templates {
		return in, nil
	}
	texts, err := in.texts().Fill(files.find(ctx, needed(ctx)))
	if err != nil {
		return in, unfilled("run a command", err)
	}
	made := in
	made.Argv, made.Env, made.Templates = texts.Args, texts.Env, false
	err = made.Validate()
	if err == nil {
		err = made.checkLengths(in)
	}
	if err != nil {
		return in, weaver.Permanent(fmt.Errorf("run a command: %w", err))
	}
	return made, nil
}

// checkLengths refuses arguments and variables too long for Linux, and names the
// values in them.
func (in RunInput) checkLengths(of RunInput) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	check := func(where, template string, size int) error {
		if size <= maxArgument {
			return nil
		}
		var names []string
		for _, p := range value.Paths(template) {
			names = append(names, p.String())
		}
		return fmt.Errorf("%s is %d bytes long with %s, and the system takes at most %d: let the task write a file, and read that", where, size, strings.Join(names, ", "), maxArgument)
	}
	var problems []error
	for i, arg := range in.Argv {
		problems = append(problems, check(fmt.Sprintf("argv[%d]", i), of.Argv[i], len(arg)))
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		problems = append(problems, check("env."+name, of.Env[name], len(name)+len("=")+len(in.Env[name])))
	}
	return errors.Join(problems...)
}

func (in RequestInput) texts() value.Texts {
	return value.Texts{URL: in.URL, Headers: in.Headers, JSON: in.JSON, Body: in.Body}
}

func (in RequestInput) with(t value.Texts) RequestInput {
	in.URL, in.Headers, in.JSON, in.Body, in.Templates = t.URL, t.Headers, t.JSON, t.Body, false
	return in
}

// filled returns the input with the values of needs filled in.
func (in RequestInput) filled(ctx context.Context) (RequestInput, error) {
	if !in.Templates {
		return in, nil
	}
	texts, err := in.texts().Fill(needed(ctx))
	if err != nil {
		return in, unfilled("make a request", err)
	}
	made := in.with(texts)
	if err := made.Validate(); err != nil {
		return in, weaver.Permanent(err)
	}
	return made, nil
}

// unfilled returns the error of an attempt that lacks a value: permanent, except
// when the store could not be read.
func unfilled(doing string, err error) error {
	if wrong := (*value.Error)(nil); errors.As(err, &wrong) {
		return weaver.Permanent(fmt.Errorf("%s: %w", doing, err))
	}
	return err
}

// needed returns a find for the needs of the handler's task.
func needed(ctx context.Context) value.Find {
	return func(name string) (*value.Output, error) {
		a, err := engine.From(ctx)
		if err != nil {
			return nil, err
		}
		t, err := a.Need(ctx, name)
		if err != nil || t == nil {
			return nil, err
		}
		o := value.OutputOf(t)
		o.Optional = a.Task().Undo.Runs()
		return o, nil
	}
}
