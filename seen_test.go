package weaver_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// Every verb of one task checks the version seen: with another one it changes nothing.
func TestEveryVerbLooksAtTheSeenVersion(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("engine.seen.verb.v1")
	verbs := map[string]func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error{
		"cancel": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.Cancel(fx.Context(), id, seen)
		},
		"retry": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.Retry(fx.Context(), id, seen)
		},
		"unblock": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.Unblock(fx.Context(), id, nil, seen)
		},
		"run now": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.RunNow(fx.Context(), id, seen)
		},
		"reschedule": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.Reschedule(fx.Context(), id, time.Now().Add(time.Hour), seen)
		},
		"delete": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.Delete(fx.Context(), id, seen)
		},
		"pause": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.PauseTask(fx.Context(), id, seen)
		},
		"resume": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.ResumeTask(fx.Context(), id, seen)
		},
		"repair": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.RepairInput(fx.Context(), id, "x", seen)
		},
		"signal": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			return fx.client.SendSignal(fx.Context(), id, "engine.seen.signal", "k", json.RawMessage("1"), seen)
		},
		"rerun": func(fx *fixture, id weaver.TaskID, seen weaver.OperateOption) error {
			_, err := fx.client.Rerun(fx.Context(), id, seen)
			return err
		},
	}
	inBubble(t, func(fx *fixture) {
		h := enqueue(fx, typ, "a", weaver.Delay(time.Minute))
		before := fx.history(h.ID())
		for name, verb := range verbs {
			for _, seen := range []weaver.OperateOption{
				weaver.SeenEpoch(before.Task.Epoch + 7), weaver.SeenEpoch(before.Task.Epoch, before.Task.UpdatedAt.Add(time.Second)),
			} {
				fx.Log(name)
				wantError(fx, verb(fx, h.ID(), seen), store.ErrChanged)
			}
		}
		equal(fx, "the audited verbs", len(fx.history(h.ID()).Audit), 0)
		equal(fx, "the task", fx.get(h.ID()).UpdatedAt, before.Task.UpdatedAt)
	})
}
