package ordertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// aborted makes an order that was given up.
func (w *world) aborted(key string, unknown bool) {
	w.t.Helper()
	l := w.claimed(key, lease)
	w.send(l)
	r := w.get(key).Row
	got := w.settle(order.Settlement{Lease: l, Verdict: order.VerdictAborted, Unknown: unknown, Code: "BROKER_DOWN", Result: *order.NoResult(&r, order.ReasonDown, time.Now())})
	w.ok(got.Err)
}

func requeue(t *testing.T, w *world) {
	w.aborted("a", false)
	if ack := w.operate(order.Requeue{Audit: order.Audit{By: "ann"}, Key: "a"}); ack.Changed != 1 || ack.State != order.Pending {
		t.Errorf("%+v", ack)
	}
	if o := w.want("a", order.Pending, order.LedgerAccepted); o.Row.Attempts != 0 || o.Row.LastErrorCode != "" || len(o.Entry.Result) != 0 || o.Entry.HTTPStatus != 0 || !o.Entry.ExpiresAt.IsZero() {
		t.Errorf("%+v", o)
	}
	if rows := w.claim("w", lease, 1); len(rows) != 1 {
		t.Errorf("claimed %+v", rows)
	}
	w.aborted("b", true)
	if _, err := w.s.OperateOrder(w.ctx(), w.ns, order.Requeue{Key: "b"}); !errors.Is(err, order.ErrInDoubt) {
		t.Errorf("one in doubt: %v", err)
	}
	w.operate(order.Requeue{Key: "b", Confirmed: true})
	for key, want := range map[string]error{"a": order.ErrState, "none": order.ErrNotFound} {
		if _, err := w.s.OperateOrder(w.ctx(), w.ns, order.Requeue{Key: key}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
}

func settleByHand(t *testing.T, w *world) {
	w.accept("a", "b")
	res := success
	w.operate(order.SettleByHand{Audit: order.Audit{By: "ann"}, Key: "a", Result: &res})
	w.want("a", order.Succeeded, order.LedgerSucceeded)
	w.operate(order.SettleByHand{Key: "b", Code: order.ReasonRejected, Message: "by phone"})
	if o := w.want("b", order.Aborted, order.LedgerFailed); o.Entry.HTTPStatus != 400 || o.Row.LastErrorMsg != "by phone" {
		t.Errorf("%+v", o)
	}
	if _, err := w.s.OperateOrder(w.ctx(), w.ns, order.SettleByHand{Key: "a", Code: order.ReasonRejected}); !errors.Is(err, order.ErrState) {
		t.Errorf("a settled order: %v", err)
	}
	bad := order.ExecResult{Status: order.OK}
	if _, err := w.s.OperateOrder(w.ctx(), w.ns, order.SettleByHand{Key: "b", Result: &bad}); err == nil {
		t.Error("a success without fills is taken")
	}
}

func withdraw(t *testing.T, w *world) {
	w.accept("a")
	if ack := w.operate(order.Withdraw{Key: "a", Audit: order.Audit{By: "ann"}}); ack.InDoubt || ack.State != order.Aborted {
		t.Errorf("%+v", ack)
	}
	if o := w.want("a", order.Aborted, order.LedgerFailed); o.Row.LastErrorCode != order.WarnWithdrawn {
		t.Errorf("%+v", o.Row)
	}
	l := w.claimed("b", lease)
	w.operate(order.Withdraw{Key: "b"})
	if errs, err := w.s.SendOrders(w.ctx(), w.ns, order.Send{Lease: l, EndsAt: time.Now()}); err != nil || !errors.Is(errs[0], order.ErrLeaseLost) {
		t.Errorf("a withdrawn order is sent: %v %v", errs, err)
	}
	l = w.claimed("c", lease)
	w.send(l)
	if ack := w.operate(order.Withdraw{Key: "c"}); !ack.InDoubt || ack.Changed != 0 {
		t.Errorf("%+v", ack)
	}
}

func resubmit(t *testing.T, w *world) {
	w.aborted("a", false)
	if ack := w.operate(order.Resubmit{Key: "a", New: request("a2", "corrected")}); ack.Changed != 1 {
		t.Errorf("%+v", ack)
	}
	w.want("a2", order.Pending, order.LedgerAccepted)
	w.want("a", order.Aborted, order.LedgerFailed)
	w.claim("w", lease, 1)
	w.aborted("b", true)
	if _, err := w.s.OperateOrder(w.ctx(), w.ns, order.Resubmit{Key: "b", New: request("b2")}); !errors.Is(err, order.ErrInDoubt) {
		t.Errorf("one in doubt: %v", err)
	}
}

func hold(t *testing.T, w *world) {
	l := w.claimed("sent", lease)
	w.send(l)
	for i := range 40 {
		w.accept("k" + strconv.Itoa(i))
	}
	if ack := w.operate(order.Hold{Audit: order.Audit{By: "doctor"}}); ack.Changed != 41 {
		t.Errorf("%+v", ack)
	}
	if rows := w.claim("w", lease, 50); len(rows) != 0 {
		t.Errorf("claimed %d held orders", len(rows))
	}
	if o := w.want("sent", order.Pending, order.LedgerAccepted); !o.Row.Held || !o.Row.Unknown {
		t.Errorf("%+v", o.Row)
	}
	if got := w.settle(order.Settlement{Lease: l, Verdict: order.VerdictRetry}); !errors.Is(got.Err, order.ErrLeaseLost) {
		t.Errorf("the holder before: %+v", got)
	}
	w.operate(order.Release{Key: "k7"})
	if rows := w.claim("w", lease, 50); len(rows) != 1 || rows[0].Key != "k7" {
		t.Errorf("claimed %+v", rows)
	}
	if ack := w.operate(order.Release{}); ack.Changed != 40 {
		t.Errorf("%+v", ack)
	}
	if rows := w.claim("w", lease, 50); len(rows) != 40 {
		t.Errorf("claimed %d", len(rows))
	}
}

func unlock(t *testing.T, w *world) {
	w.claimed("a", short)
	w.claimed("b", lease)
	if _, err := w.s.OperateOrder(w.ctx(), w.ns, order.Unlock{Key: "b"}); !errors.Is(err, order.ErrState) {
		t.Errorf("a living lease: %v", err)
	}
	w.until(func() bool { return w.operate(order.Unlock{}).Changed == 1 })
	w.want("a", order.Pending, order.LedgerAccepted)
	w.want("b", order.Sending, order.LedgerAccepted)
}

func prune(t *testing.T, w *world) {
	l := w.claimed("done", lease)
	w.settle(order.Settlement{Lease: l, Verdict: order.VerdictSucceeded, Result: success})
	w.aborted("gone", false)
	w.accept("open")
	if ack := w.operate(order.Prune{}); ack.Changed != 0 {
		t.Errorf("before their time: %+v", ack)
	}
	if ack := w.operate(order.Prune{Aborted: true, Before: time.Now().Add(time.Hour), Limit: 10}); ack.Changed != 1 {
		t.Errorf("aborted: %+v", ack)
	}
	if _, err := w.s.GetOrder(w.ctx(), w.ns, "gone"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("a pruned order: %v", err)
	}
	w.accept("gone") // its key is new
	w.want("done", order.Succeeded, order.LedgerSucceeded)
	w.want("open", order.Pending, order.LedgerAccepted)
}

func list(t *testing.T, w *world) {
	for i := range 5 {
		w.accept("k" + strconv.Itoa(i))
	}
	w.operate(order.Withdraw{Key: "k2"})
	var keys []string
	for after := ""; ; {
		page, next, err := w.s.ListOrders(w.ctx(), w.ns, order.Filter{After: after, Limit: 2})
		w.ok(err)
		for _, o := range page {
			keys = append(keys, o.Row.Key)
		}
		if after = next; after == "" {
			break
		}
	}
	if !slices.Equal(keys, []string{"k4", "k3", "k2", "k1", "k0"}) {
		t.Errorf("%v", keys)
	}
	page, _, err := w.s.ListOrders(w.ctx(), w.ns, order.Filter{States: []order.State{order.Aborted}})
	if err != nil || len(page) != 1 || page[0].Row.Key != "k2" || page[0].Entry.State != order.LedgerFailed {
		t.Errorf("aborted: %+v, %v", page, err)
	}
	if _, _, err := w.s.ListOrders(w.ctx(), w.ns, order.Filter{After: "x"}); err == nil {
		t.Error("a wrong cursor is taken")
	}
}

// rewriter is a store that also keeps tasks.
type rewriter interface {
	RewriteValues(ctx context.Context, ns, after string, limit int, fn store.RewriteFunc) (swapped int, next string, err error)
}

// rewrite replaces each value once, by pages of one row.
func rewrite(t *testing.T, w *world) {
	data, ok := w.s.(rewriter)
	if !ok {
		return // it keeps no values of tasks
	}
	w.aborted("a", false)
	w.accept("b/c", "d")
	walk := func(ns string, swap func(store.StoredValue) json.RawMessage) (seen []string) {
		t.Helper()
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			_, next, err := data.RewriteValues(w.ctx(), ns, after, 1, func(values []store.StoredValue) (swaps []store.ValueSwap, _ error) {
				for _, v := range values {
					seen = append(seen, fmt.Sprintf("%s %s %s", v.Kind, v.Name, v.Value))
					swaps = append(swaps, store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: swap(v)})
				}
				return swaps, nil
			})
			w.ok(err)
			if after = next; pages > 1000 {
				t.Fatal("the walk does not end")
			}
		}
		slices.Sort(seen)
		return seen
	}
	renew := func(v store.StoredValue) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"new":%q}`, v.Kind))
	}
	var want []string
	for _, key := range []string{"a", "b/c", "d"} {
		want = append(want, fmt.Sprintf("order_request %s %s", key, w.get(key).Row.Body))
	}
	want = append(want, fmt.Sprintf("order_result a %s", w.get("a").Entry.Result))
	before := w.get("a")
	if got := walk("other", renew); len(got) != 0 {
		t.Errorf("another namespace has %q", got)
	}
	if got := walk(w.ns, renew); !slices.Equal(got, want) {
		t.Errorf("walked %q, want %q", got, want)
	}
	after := w.get("a")
	if string(after.Row.Body) != `{"new":"order_request"}` || string(after.Entry.Result) != `{"new":"order_result"}` || string(w.get("b/c").Row.Body) != `{"new":"order_request"}` {
		t.Errorf("%s, %s", after.Row.Body, after.Entry.Result)
	}
	after.Row.Body, after.Entry.Result = before.Row.Body, before.Entry.Result
	if !reflect.DeepEqual(after, before) {
		t.Errorf("a swap changed more: %+v, was %+v", after, before)
	}
	stale := store.ValueSwap{ValueAt: store.ValueAt{Kind: store.ValueOrderRequest, Name: "a"}, Old: before.Row.Body, New: json.RawMessage(`0`)}
	n, _, err := data.RewriteValues(w.ctx(), w.ns, "", 1, func([]store.StoredValue) ([]store.ValueSwap, error) { return []store.ValueSwap{stale}, nil })
	if err != nil || n != 0 {
		t.Errorf("a value that has changed: %d, %v", n, err)
	}
}

func stats(t *testing.T, w *world) {
	w.aborted("u", true)
	w.claimed("s", lease)
	w.accept("a", "b")
	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "1", Name: "host:1", Lease: lease}))
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "1", Name: "host:1", Lease: lease, Sender: order.Sender{Adapter: "http", Failed: 3, PausedUntil: until, Reason: "down"}}))
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "2", Name: "host:2", Lease: lease, Sender: order.Sender{Adapter: "paper", PausedUntil: until.Add(-2 * time.Hour), Reason: "over"}}))
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "3", Name: "host:3", Lease: lease}))
	w.ok(w.s.LeaveOrders(w.ctx(), w.ns, "3"))
	got, err := w.s.OrderStats(w.ctx(), w.ns)
	w.ok(err)
	senders := got.Senders
	for i := range senders {
		if senders[i].LastSeen.IsZero() {
			t.Errorf("%s has no time of its last sign of life", senders[i].Name)
		}
		senders[i].LastSeen, senders[i].PausedUntil = time.Time{}, senders[i].PausedUntil.UTC()
	}
	if want := []order.SenderStatus{
		{Worker: "1", Name: "host:1", Sender: order.Sender{Adapter: "http", Failed: 3, PausedUntil: until, Reason: "down"}},
		{Worker: "2", Name: "host:2", Sender: order.Sender{Adapter: "paper"}},
	}; !slices.Equal(senders, want) {
		t.Errorf("the workers are %+v, want %+v", senders, want)
	}
	if got.Counts[order.Pending] != 2 || got.Counts[order.Sending] != 1 || got.Counts[order.Aborted] != 1 || got.Counts[order.Succeeded] != 0 ||
		got.Unknown != 1 || got.Ledger != 4 || got.More || !got.OldestAt.Equal(w.get("s").Row.CreatedAt) {
		t.Errorf("%+v", got)
	}
}
