package rules_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestCheckForget(t *testing.T) {
	t.Parallel()
	for _, s := range task.States() {
		err := rules.CheckForget(task.ID{1}, s, false)
		if s.Terminal() != (err == nil) || err != nil && (!errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "cancel it first")) {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := rules.CheckForget(task.ID{1}, task.Cancelled, true); !errors.Is(err, store.ErrState) {
		t.Errorf("with children that are being stored: %v", err)
	}
	if err := rules.CheckForgotten(task.ID{1}, task.Failed, true); !errors.Is(err, store.ErrState) {
		t.Errorf("a forgotten task: %v", err)
	}
	if err := rules.CheckForgotten(task.ID{1}, task.Failed, false); err != nil {
		t.Errorf("a task that was not forgotten: %v", err)
	}
}

func TestForgetTexts(t *testing.T) {
	t.Parallel()
	if rules.ForgetError(nil) != nil {
		t.Error("an error came from nothing")
	}
	e := rules.ForgetError(&task.Error{Kind: task.KindPanic, Message: "m", Code: "c", Step: "s", Stack: "t", Ask: "a"})
	if want := (&task.Error{Kind: task.KindPanic, Message: rules.Forgotten, Step: "s", Ask: "a"}); *e != *want {
		t.Errorf("of an error %+v is left", e)
	}
	asked := &task.Asked{CrashCount: 1}
	r := rules.ForgetReason(&task.Reason{Policy: "p", Version: 2, Text: "t", Change: "c", Fallback: "f", Said: task.DecideRetry, Asked: asked, Evidence: map[string]any{"a": 1}})
	if want := (task.Reason{Policy: "p", Version: 2, Text: rules.Forgotten, Fallback: rules.Forgotten, Said: task.DecideRetry, Asked: asked}); !reflect.DeepEqual(r, want) {
		t.Errorf("of a reason %+v is left", r)
	}
	a := task.Attempt{No: 1, OutcomeHash: "h", RouteReason: "r", StepsRun: []string{"s"}}
	if rules.ForgetAttempt(&a); a.OutcomeHash != rules.Forgotten || a.RouteReason != rules.Forgotten || len(a.StepsRun) != 1 {
		t.Errorf("of an attempt %+v is left", a)
	}
}
