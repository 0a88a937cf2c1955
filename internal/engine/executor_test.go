package engine

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/goweaver/weaver/task"
)

// The context of the lease ends a moment before that of the handler, which is derived from it. An attempt that starts
// between the two, because the engine stops, calls no handler: its task must be released, and must not succeed
// without a handler.
func TestExecutorReleasesWhatItDoesNotRun(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		e.Values = &Values{Store: f, Namespace: testNS, IDs: f.ids, Limit: e.InlineLimit}
		a := f.lease(e)
		a.held, a.lose = context.WithCancelCause(a.held) // not a parent of a.ctx, which has not ended yet
		a.lose(ErrDraining)
		run := func(context.Context, json.RawMessage) (json.RawMessage, error) {
			t.Error("the handler runs")
			return nil, nil
		}
		handlers := map[handlerKey]Handler{{testType, ""}: {Type: testType, CodeVersion: 1, Run: run}}
		x := newExecutor(e, handlers, newRecorder(e), newCompleter(e), newValidityChecker(e), newSignal())
		x.execute(a)
		if err := x.attempts.Wait(); err != nil {
			t.Error(err)
		}
		h, err := f.History(t.Context(), testNS, a.task.ID)
		if err != nil || len(h.Attempts) != 1 || h.Attempts[0].Outcome != task.OutcomeReleased || h.Task.State != task.Ready {
			t.Errorf("the task is %s after the attempts %+v, %v, want ready after one that was released", h.Task.State, h.Attempts, err)
		}
	})
}
