package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/goweaver/weaver"
)

// A client that knows a type checks inputs as an enqueue does, and sets the version of its handler,
// whatever version the task has.
func TestClientThatKnowsTypes(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		type renamed struct{ Amount int }
		old := weaver.Define[map[string]any, int]("engine.known.charge.v1")
		now := weaver.Define[renamed, int]("engine.known.charge.v1", weaver.SchemaVersion(2))
		handler := now.Handler(func(_ context.Context, in renamed) (int, error) { return in.Amount, nil },
			weaver.Upcast(1, func(in map[string]any) (renamed, error) { return renamed{}, errors.New("no amount") }))
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{handler}})
		h := enqueue(fx, old, map[string]any{"sum": 7})
		blocks(fx, h)
		knows, err := weaver.NewClient(fx.store, weaver.ClientConfig{Handlers: []weaver.Handler{handler}})
		fx.must(err)
		wrong := json.RawMessage(`{"sum":7}`)
		wantError(fx, knows.RepairInput(fx.Context(), h.ID(), wrong), weaver.ErrInvalidInput, `there is no field "sum"`)
		_, err = knows.Rerun(fx.Context(), h.ID(), weaver.RerunInput(wrong))
		wantError(fx, err, weaver.ErrInvalidInput, `there is no field "sum"`)
		wantError(fx, knows.CheckInput(now.Name(), 2, wrong), weaver.ErrInvalidInput, `there is no field "sum"`)
		fx.must(knows.CheckInput(now.Name(), 1, wrong))
		fx.must(fx.client.CheckInput(now.Name(), 2, wrong))

		again, err := knows.Rerun(fx.Context(), h.ID(), weaver.RerunInput(renamed{8}))
		fx.must(err)
		fx.must(knows.RepairInput(fx.Context(), h.ID(), renamed{9}))
		for id, want := range map[weaver.TaskID]string{again.ID: "8", h.ID(): "9"} {
			_, err := knows.Wait(fx.Context(), id)
			fx.must(err)
			equal(fx, "the output", string(fx.get(id).Output), want)
			equal(fx, "the schema version", fx.get(id).SchemaVersion, 2)
		}
	})
}
