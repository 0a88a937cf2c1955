package mcpserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/mcpserver"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

// ordersConfig has the orders "ok", which succeeded, and "lost", whose outcome is unknown.
func ordersConfig(t *testing.T) mcpserver.Config {
	t.Helper()
	c, _ := config(t)
	st := memstore.New()
	for _, key := range []string{"ok", "lost"} {
		body := fmt.Sprintf(`{"order_id":"o-%s","instrument":"BTC-JPY","side":"BUY","qty":"0.5","time_in_force":"GTC","idempotency_key":%q,"requested_at":"2026-01-02T03:04:05Z"}`, key, key)
		p, err := order.Orders{Timeout: 10 * time.Millisecond}.Parse([]byte(body), time.Now())
		if err == nil {
			_, err = st.AcceptOrders(t.Context(), c.Client.Namespace(), nil, p.New(order.Orders{}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	paper := &order.Paper{Behave: func(out order.Outgoing) string { return map[string]string{"lost": "drop"}[out.Key] }}
	w, err := order.NewWorker(order.WorkerConfig{Store: st, Adapter: struct{ order.Adapter }{paper}, Config: order.Config{MaxAttempts: 1}})
	if err == nil {
		err = w.RunUntilIdle(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Orders = mcpserver.Orders{Store: st, Why: func(o *order.Order) string { return "the story of " + o.Row.Key }}
	return c
}

func TestOrderReads(t *testing.T) {
	t.Parallel()
	c := ordersConfig(t)
	cs := connect(t, c)
	want := slices.Sorted(slices.Values(append(slices.Clone(reads), "list_orders", "order_stats", "show_order")))
	if got := names(t, cs); !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
	if answer, isError := call(t, cs, "list_orders", map[string]any{"statuses": []string{"aborted"}}); isError || !strings.Contains(answer, `"key":"lost"`) || strings.Contains(answer, `"key":"ok"`) || !strings.Contains(answer, `"outcome_unknown":true`) {
		t.Errorf("%v %s", isError, answer)
	}
	if answer, _ := call(t, cs, "show_order", map[string]any{"key": "ok"}); !strings.Contains(answer, "the story of ok") || strings.Contains(answer, `"0.5`) || !strings.Contains(answer, "hidden") {
		t.Errorf("without payloads: %s", answer)
	}
	if answer, isError := call(t, cs, "order_stats", nil); isError || !strings.Contains(answer, `"aborted":1`) {
		t.Errorf("%v %s", isError, answer)
	}
	for tool, args := range map[string]map[string]any{
		"list_orders": {"statuses": []string{"abroted"}}, "show_order": {"key": "none"}, "requeue_order": {"key": "lost", "reason": "x"},
	} {
		if answer, isError := call(t, cs, tool, args); !isError {
			t.Errorf("%s: %s", tool, answer)
		}
	}
	c.ShowPayloads = true
	if answer, _ := call(t, connect(t, c), "show_order", map[string]any{"key": "ok"}); !strings.Contains(answer, `"executed_qty":"0.5"`) || !strings.Contains(answer, `"instrument":"BTC-JPY"`) {
		t.Errorf("with payloads: %s", answer)
	}
}

func TestRequeueOrder(t *testing.T) {
	t.Parallel()
	c := ordersConfig(t)
	c.AllowWrites, c.Actor = true, "bot"
	found := order.FoundOpen
	cs := connect(t, c)
	c.Orders.Ask = func(context.Context, string, order.Audit) (order.Found, error) { return found, nil }
	asking := connect(t, c)
	for name, s := range map[string]func() (string, bool){
		"no reason": func() (string, bool) {
			return call(t, cs, "requeue_order", map[string]any{"key": "lost", "reason": ""})
		},
		"succeeded": func() (string, bool) { return call(t, cs, "requeue_order", map[string]any{"key": "ok", "reason": "x"}) },
		"nobody": func() (string, bool) {
			return call(t, cs, "requeue_order", map[string]any{"key": "lost", "reason": "x"})
		},
		"no answer": func() (string, bool) {
			return call(t, asking, "requeue_order", map[string]any{"key": "lost", "reason": "x"})
		},
		"no such": func() (string, bool) {
			return call(t, cs, "requeue_order", map[string]any{"key": "none", "reason": "x"})
		},
	} {
		if answer, isError := s(); !isError {
			t.Errorf("%s: %s", name, answer)
		}
	}
	found = order.FoundNothing
	if answer, isError := call(t, asking, "requeue_order", map[string]any{"key": "lost", "reason": "the partner does not have it"}); isError || !strings.Contains(answer, `"status":"pending"`) {
		t.Errorf("%s", answer)
	}
}

// Each verb for all orders returns the number of changed orders, and requires a reason.
func TestBulkOrders(t *testing.T) {
	t.Parallel()
	c := ordersConfig(t)
	c.AllowWrites, c.Actor = true, "bot"
	cs := connect(t, c)
	done := func(tool string, args map[string]any, want string) {
		t.Helper()
		args["reason"] = "x"
		if answer, isError := call(t, cs, tool, args); isError || answer != want {
			t.Errorf("%s %v: %v %s, want %s", tool, args, isError, answer, want)
		}
	}
	call(t, cs, "requeue_order", map[string]any{"key": "lost", "reason": "x", "confirmed": true})
	done("hold_orders", map[string]any{}, `{"changed":1}`)
	done("release_orders", map[string]any{}, `{"changed":1}`)
	done("hold_orders", map[string]any{}, `{"changed":1}`)
	done("release_orders", map[string]any{"key": "lost"}, `{"changed":1,"status":"pending"}`)
	done("unlock_orders", map[string]any{}, `{"changed":0}`)
	done("prune_orders", map[string]any{}, `{"changed":0}`)
	done("prune_orders", map[string]any{"aborted_for_days": 30}, `{"changed":0}`)
	for tool, args := range map[string]map[string]any{
		"hold_orders": {"reason": ""}, "release_orders": {"reason": "x", "key": "ok"}, "unlock_orders": {"reason": "x", "key": "none"}, "prune_orders": {"reason": "x", "aborted_for_days": -1},
	} {
		if answer, isError := call(t, cs, tool, args); !isError {
			t.Errorf("%s: %s", tool, answer)
		}
	}
}
