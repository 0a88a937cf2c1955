package weaver_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

func TestRequireSameInput(t *testing.T) {
	t.Parallel()
	type order struct {
		ID  string `json:"id"`
		Sum int    `json:"sum"`
	}
	typ := weaver.Define[order, weaver.None]("acme.test.order.v1")
	c, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	key := weaver.IdempotencyKey("k")
	first, err := typ.Enqueue(t.Context(), c, order{"a", 1}, key, weaver.RequireSameInput())
	if err != nil || first.Disposition() != store.DispositionCreated {
		t.Fatal(first, err)
	}
	again, err := typ.Enqueue(t.Context(), c, order{"a", 1}, key, weaver.RequireSameInput())
	if err != nil || again.ID() != first.ID() {
		t.Errorf("the same input again: %v, %v", again, err)
	}
	if _, err := c.EnqueueTasks(t.Context(), typ.WithJSON(json.RawMessage(`{ "sum":1, "id":"\u0061"}`), key, weaver.RequireSameInput())); err != nil {
		t.Errorf("the same JSON: %v", err)
	}
	if _, err := typ.Enqueue(t.Context(), c, order{"a", 2}, key, weaver.RequireSameInput()); !errors.Is(err, weaver.ErrConflict) {
		t.Errorf("another input: %v", err)
	}
	if h, err := typ.Enqueue(t.Context(), c, order{"a", 2}, key); err != nil || h.ID() != first.ID() {
		t.Errorf("another input without the option: %v, %v", h, err)
	}
	if _, err := typ.Enqueue(t.Context(), c, order{}, weaver.RequireSameInput()); !errors.Is(err, weaver.ErrInvalidOption) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := c.EnqueueTasks(t.Context(), typ.With(order{}, key, weaver.RequireSameInput()), typ.With(order{})); !errors.Is(err, weaver.ErrInvalidOption) {
		t.Errorf("in a batch: %v", err)
	}
	list, _, err := c.List(t.Context(), weaver.Filter{})
	if err != nil || len(list) != 1 {
		t.Errorf("there are %d tasks, %v; want the first alone", len(list), err)
	}
}
