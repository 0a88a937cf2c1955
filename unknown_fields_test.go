package weaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// A field was renamed without a new schema version.
func TestUnknownFields(t *testing.T) {
	type (
		before struct {
			Name string
			Age  int
		}
		after struct {
			FullName string
			Age      int
		}
	)
	const name = "engine.unknown.person.v1"
	const warning = "the input of a task has a field that its type lacks, and is decoded without it: add the field, give the type an Upcast, or set Config.UnknownFields"
	older := weaver.Define[before, string](name)
	newer := weaver.Define[after, string](name, weaver.MaxAttempts(1))
	greet := newer.Handler(func(_ context.Context, p after) (string, error) { return "hello " + p.FullName, nil })
	run := func(fx *fixture, unknown task.UnknownFields) {
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{greet}, UnknownFields: unknown})
	}

	subtest(t, "by default it is left out, noted, and logged once for the type", func(fx *fixture) {
		run(fx, task.UnknownWarn)
		h := enqueue(fx, older, before{"Cy", 7})
		equal(fx, "the output", result(fx, h), "hello ")
		equal(fx, "the output of the second", result(fx, enqueue(fx, older, before{"Di", 8})), "hello ")
		equal(fx, "that of one without", result(fx, enqueue(fx, newer, after{"Ed", 9})), "hello Ed")
		synctest.Wait()
		equal(fx, "warnings", len(fx.log.lines(fx, warning)), 1)
		if note := fx.history(h.ID()).Attempts[0].Notes["weaver.unknown_field"]; !strings.Contains(note, `no field "Name"`) {
			fx.Errorf("the attempt's note is %q", note)
		}
	})

	subtest(t, "refused, the input does not decode", func(fx *fixture) {
		run(fx, task.UnknownRefuse)
		h := enqueue(fx, older, before{"Cy", 7})
		_, err := h.Wait(fx.Context())
		if !errors.Is(err, weaver.ErrBlocked) || !strings.Contains(err.Error(), `no field "Name"`) {
			fx.Errorf("it ended with %v", err)
		}
		equal(fx, "that of one without", result(fx, enqueue(fx, newer, after{"Ed", 9})), "hello Ed")
	})

	subtest(t, "ignored, nothing is said", func(fx *fixture) {
		run(fx, task.UnknownIgnore)
		h := enqueue(fx, older, before{"Cy", 7})
		equal(fx, "the output", result(fx, h), "hello ")
		equal(fx, "warnings", len(fx.log.lines(fx, warning)), 0)
		equal(fx, "notes", len(fx.history(h.ID()).Attempts[0].Notes), 0)
	})
}

func TestUnknownFields_Config(t *testing.T) {
	t.Parallel()
	subtest(t, "a setting that does not exist is refused", func(fx *fixture) {
		if _, err := weaver.New(fx.store, weaver.Config{UnknownFields: 7}); !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), "UnknownFields is 7") {
			fx.Errorf("New: %v", err)
		}
	})
}
