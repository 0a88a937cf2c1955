package ordertest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

func accept(t *testing.T, w *world) {
	w.accept("a")
	first := w.want("a", order.Pending, order.LedgerAccepted)
	if first.Row.Ref != "o-a" || first.Row.TraceID != "t" || first.Row.Timeout != 20*time.Millisecond || string(first.Row.Body) != string(request("a").Body) ||
		first.Row.StaleAt.Sub(first.Row.CreatedAt) != time.Hour {
		t.Errorf("stored %+v", first.Row)
	}
	bad, err := w.s.AcceptOrders(w.ctx(), w.ns, nil, request(""), request(strings.Repeat("k", order.MaxKey+1)))
	w.ok(err)
	for _, got := range bad {
		if _, ok := errors.AsType[*order.Invalid](got.Err); !ok || got.Created {
			t.Errorf("a bad key: %+v", got)
		}
	}
	got, err := w.s.AcceptOrders(w.ctx(), w.ns, nil, request("a"), request("a", "other"), request("b"))
	w.ok(err)
	if got[0].Created || got[0].Err != nil || got[0].Entry.Digest != first.Entry.Digest {
		t.Errorf("a repetition: %+v", got[0])
	}
	if !errors.Is(got[1].Err, order.ErrConflict) || got[1].Created {
		t.Errorf("another request: %+v", got[1])
	}
	if !got[2].Created {
		t.Errorf("another key: %+v", got[2])
	}
	if o := w.get("a"); o.Row.ID != first.Row.ID || string(o.Row.Body) != string(first.Row.Body) {
		t.Errorf("a conflict changed %+v", o.Row)
	}
	if _, err := w.s.GetOrder(w.ctx(), w.ns, "none"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
}

func acceptAtOnce(t *testing.T, w *world) {
	var mu sync.Mutex
	created := 0
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			got, err := w.s.AcceptOrders(w.ctx(), w.ns, nil, request("a"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || got[0].Err != nil {
				t.Error(err, got)
			} else if got[0].Created {
				created++
			}
		})
	}
	wg.Wait()
	if created != 1 {
		t.Errorf("created %d times", created)
	}
}

func namespaces(t *testing.T, w *world) {
	w.accept("a")
	other := &world{t: t, s: w.s, ns: "other"}
	if rows := other.claim("w", lease, 10); len(rows) > 0 {
		t.Errorf("claimed %+v", rows)
	}
	if _, err := w.s.GetOrder(w.ctx(), "other", "a"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("read in another namespace: %v", err)
	}
	other.accept("a")
	other.operate(order.Withdraw{Key: "a"})
	w.want("a", order.Pending, order.LedgerAccepted)
}

func claim(t *testing.T, w *world) {
	l := w.claimed("old", lease)
	w.settle(order.Settlement{Lease: l, Verdict: order.VerdictRetry, Code: "BROKER_DOWN"})
	w.accept("a", "b", "c")
	rows := w.claim("w", lease, 3)
	var keys []string
	for _, r := range rows {
		keys = append(keys, r.Key)
		if r.State != order.Sending || r.LockedBy != "w" || r.Token == 0 || len(r.Body) == 0 || r.LeaseUntil.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(keys, []string{"old", "a", "b"}) {
		t.Errorf("claimed %v", keys)
	}
	if rows = w.claim("v", lease, 10); len(rows) != 1 || rows[0].Key != "c" {
		t.Errorf("the second claim took %+v", rows)
	}
	if o := w.get("old"); o.Row.Token != l.Token+1 {
		t.Errorf("the token is %d after %d", o.Row.Token, l.Token)
	}
	errs, err := w.s.SendOrders(w.ctx(), w.ns, order.Send{Lease: l, EndsAt: time.Now().Add(time.Minute)})
	w.ok(err)
	if o := w.get("old"); !errors.Is(errs[0], order.ErrLeaseLost) || o.Row.SendOpen {
		t.Errorf("a send under an earlier lease: %v, %+v", errs[0], o.Row)
	}
	got, err := w.s.ClaimOrders(w.ctx(), w.ns, order.ClaimRequest{Worker: "w", Lease: lease, Limit: 1})
	w.ok(err)
	if len(got.Claimed) != 0 || got.Next >= 0 {
		t.Errorf("nothing is left: %+v", got)
	}
}

func claimAtOnce(t *testing.T, w *world) {
	const n = 60
	for i := range n {
		w.accept(strconv.Itoa(i))
	}
	var mu sync.Mutex
	seen := make(map[string]int)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range n {
				got, err := w.s.ClaimOrders(w.ctx(), w.ns, order.ClaimRequest{Worker: strconv.Itoa(i), Lease: lease, Limit: 7})
				mu.Lock()
				if err != nil {
					t.Error(err)
				}
				for _, r := range got.Claimed {
					seen[r.Key]++
				}
				done := len(seen) == n
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	for key, times := range seen {
		if times != 1 {
			t.Errorf("%s was claimed %d times", key, times)
		}
	}
	if len(seen) != n {
		t.Errorf("claimed %d of %d", len(seen), n)
	}
}

func renew(t *testing.T, w *world) {
	l := w.claimed("a", lease)
	before := w.get("a").Row.LeaseUntil
	lost, err := w.s.RenewOrders(w.ctx(), w.ns, "w", 2*lease, l, order.Lease{Key: "a", Token: l.Token + 1}, order.Lease{Key: "none", Token: 1})
	w.ok(err)
	if !slices.Equal(lost, []bool{false, true, true}) {
		t.Errorf("lost %v", lost)
	}
	after := w.get("a").Row.LeaseUntil
	if !after.After(before) {
		t.Errorf("the lease ended at %v and ends at %v", before, after)
	}
	if _, err := w.s.RenewOrders(w.ctx(), w.ns, "w", time.Millisecond, l); err != nil || !w.get("a").Row.LeaseUntil.Equal(after) {
		t.Errorf("a renewal shortened the lease: %v", err)
	}
}

func send(t *testing.T, w *world) {
	l := w.claimed("a", lease)
	ends := time.Now().Add(time.Second).Truncate(time.Microsecond)
	errs, err := w.s.SendOrders(w.ctx(), w.ns, order.Send{Lease: order.Lease{Key: "a", Token: l.Token - 1}, EndsAt: ends},
		order.Send{Lease: order.Lease{Key: "none"}, EndsAt: ends}, order.Send{Lease: l, EndsAt: ends})
	w.ok(err)
	if !errors.Is(errs[0], order.ErrLeaseLost) || !errors.Is(errs[1], order.ErrNotFound) || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if r := w.get("a").Row; r.SendNo != 1 || !r.SendOpen || !r.SendEndsAt.Equal(ends) || r.SendStartedAt.IsZero() {
		t.Errorf("%+v", r)
	}
}

func succeed(t *testing.T, w *world) {
	l := w.claimed("a", lease)
	w.send(l)
	end := order.Settlement{Lease: l, Verdict: order.VerdictSucceeded, Result: success}
	if got := w.settle(end); got.Err != nil || got.State != order.Succeeded || got.Again {
		t.Fatalf("%+v", got)
	}
	o := w.want("a", order.Succeeded, order.LedgerSucceeded)
	var res order.ExecResult
	w.ok(json.Unmarshal(o.Entry.Result, &res))
	if res.ExecutedQty != "1" || o.Entry.HTTPStatus != 200 || o.Entry.ResultSHA == "" || o.Entry.ExpiresAt.Sub(o.Row.UpdatedAt) != order.Kept || o.Row.SendOpen || o.Row.LockedBy != "" {
		t.Errorf("%+v %+v", o, res)
	}
	if got := w.settle(end); got.Err != nil || !got.Again {
		t.Errorf("the same again: %+v", got)
	}
	end.Digest = "other"
	if got := w.settle(end); !errors.Is(got.Err, order.ErrConflict) {
		t.Errorf("another digest: %+v", got)
	}
	if got := w.settle(order.Settlement{Lease: order.Lease{Key: "none"}, Verdict: order.VerdictSucceeded, Digest: "d"}); !errors.Is(got.Err, order.ErrNotFound) {
		t.Errorf("an unknown key: %+v", got)
	}
}

func retry(t *testing.T, w *world) {
	l := w.claimed("a", lease)
	w.send(l)
	w.settle(order.Settlement{Lease: l, Verdict: order.VerdictRetry, Counts: true, Unknown: true, Code: "BROKER_TIMEOUT", Message: "no answer", Delay: time.Hour})
	o := w.want("a", order.Retrying, order.LedgerAccepted)
	if r := o.Row; r.Attempts != 1 || !r.Unknown || r.SendOpen || r.LastErrorCode != "BROKER_TIMEOUT" || r.LastErrorMsg != "no answer" || r.NextRunAt.Sub(r.UpdatedAt) != time.Hour {
		t.Errorf("%+v", r)
	}
	got, err := w.s.ClaimOrders(w.ctx(), w.ns, order.ClaimRequest{Worker: "w", Lease: lease, Limit: 1})
	w.ok(err)
	if len(got.Claimed) != 0 || got.Next <= 50*time.Minute {
		t.Errorf("a claim before the delay is over: %+v", got)
	}
}

func abort(t *testing.T, w *world) {
	l := w.claimed("a", lease)
	w.send(l)
	r := w.get("a").Row
	end := order.Settlement{
		Lease: l, Verdict: order.VerdictAborted, Counts: true, Unknown: true, Code: "BROKER_TIMEOUT",
		Result: *order.NoResult(&r, order.ReasonTimeout, time.Now(), order.WarnUnknown),
	}
	if got := w.settle(end); got.Err != nil {
		t.Fatal(got.Err)
	}
	o := w.want("a", order.Aborted, order.LedgerFailed)
	if o.Entry.HTTPStatus != 504 || !o.Entry.Unknown || o.Row.Attempts != 1 {
		t.Errorf("%+v", o)
	}
	if got := w.settle(end); !errors.Is(got.Err, order.ErrLeaseLost) {
		t.Errorf("the same again: %+v", got)
	}
	if got := w.settle(order.Settlement{Lease: l, Verdict: order.VerdictSucceeded, Result: success}); got.Err != nil {
		t.Errorf("the truth after an unknown outcome: %+v", got)
	}
	w.want("a", order.Succeeded, order.LedgerSucceeded)
}

func release(t *testing.T, w *world) {
	l := w.claimed("a", lease)
	if got := w.settle(order.Settlement{Lease: l, Verdict: order.VerdictRelease}); got.Err != nil || got.State != order.Pending {
		t.Errorf("%+v", got)
	}
	rows := w.claim("v", lease, 1)
	if len(rows) != 1 || rows[0].Attempts != 0 {
		t.Fatalf("%+v", rows)
	}
	again := order.Lease{Key: "a", Token: rows[0].Token}
	w.send(again)
	if got := w.settle(order.Settlement{Lease: again, Verdict: order.VerdictRelease}); !errors.Is(got.Err, order.ErrState) {
		t.Errorf("a release of what was sent: %+v", got)
	}
}

// until calls fn until it is done. The test's own limit ends it.
func (w *world) until(fn func() bool) {
	w.t.Helper()
	for !fn() {
		w.ok(w.ctx().Err())
	}
}

func reclaim(t *testing.T, w *world) {
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "reaper", Name: "host:1", Lease: short}))
	l := w.claimed("a", short)
	w.send(l)
	w.until(func() bool {
		got, err := w.s.ReclaimOrders(w.ctx(), w.ns, "reaper", short)
		w.ok(err)
		return got.Expired == 1
	})
	o := w.want("a", order.Pending, order.LedgerAccepted)
	if !o.Row.Unknown || o.Row.SendOpen || o.Row.LockedBy != "" {
		t.Errorf("%+v", o.Row)
	}
	if rows := w.claim("v", lease, 1); len(rows) != 1 || rows[0].Token != l.Token+1 {
		t.Errorf("claimed %+v", rows)
	}
	w.ok(w.s.LeaveOrders(w.ctx(), w.ns, "reaper"))
}

// dead also reaps tasks: that must not remove the row of a worker that holds orders.
func dead(t *testing.T, w *world, kill func(order.Store, string)) {
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "w", Name: "host:1", Lease: lease}))
	w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: "reaper", Name: "host:1", Lease: lease}))
	l := w.claimed("a", lease)
	w.send(l)
	kill(w.s, "w")
	tasks, reaps := w.s.(interface {
		Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error)
	})
	var got order.Reclaimed
	w.until(func() (taken bool) {
		if reaps {
			_, err := tasks.Reap(w.ctx(), w.ns, store.ReapRequest{Worker: "reaper", TTL: lease})
			w.ok(err)
		}
		var err error
		got, err = w.s.ReclaimOrders(w.ctx(), w.ns, "reaper", lease)
		w.ok(err)
		return got.Expired == 1
	})
	if o := w.want("a", order.Pending, order.LedgerAccepted); got.Counted != 1 || o.Row.Attempts != 1 || !o.Row.Unknown {
		t.Errorf("%+v %+v", got, o.Row)
	}
}

// forget has workers of orders only: their rows must not pile up where no engine reaps. A store
// need not prove the death of a worker without leases; that one is silent for long at last.
func forget(t *testing.T, w *world, kill func(order.Store, string)) {
	join := func(lease time.Duration, ids ...string) {
		for _, id := range ids {
			w.ok(w.s.JoinOrders(w.ctx(), w.ns, order.WorkerInfo{ID: id, Name: "host:1", Lease: lease}))
		}
	}
	join(short, "holder", "reaper", "silent")
	join(lease, "dead", "live")
	for key, worker := range map[string]string{"a": "holder", "b": "dead"} {
		w.accept(key)
		if rows := w.claim(worker, lease, 1); len(rows) != 1 || rows[0].Key != key {
			t.Fatalf("claimed %+v", rows)
		}
	}
	kill(w.s, "dead")
	var left []string
	w.until(func() bool {
		_, err := w.s.ReclaimOrders(w.ctx(), w.ns, "reaper", short)
		w.ok(err)
		got, err := w.s.OrderStats(w.ctx(), w.ns)
		w.ok(err)
		left = nil
		for i := range got.Senders {
			left = append(left, got.Senders[i].Worker)
		}
		return !slices.Contains(left, "dead") && !slices.Contains(left, "silent")
	})
	if !slices.Equal(left, []string{"holder", "live", "reaper"}) {
		t.Errorf("left are %v", left)
	}
	w.want("a", order.Sending, order.LedgerAccepted)
	w.want("b", order.Pending, order.LedgerAccepted)
}

func lateAnswers(t *testing.T, w *world) {
	l := w.claimed("a", short)
	w.send(l)
	w.until(func() bool {
		ack, err := w.s.OperateOrder(w.ctx(), w.ns, order.Unlock{Key: "a"})
		if errors.Is(err, order.ErrState) {
			return false
		}
		w.ok(err)
		return ack.Changed == 1
	})
	w.claim("v", lease, 1)
	if got := w.settle(order.Settlement{Lease: l, Verdict: order.VerdictRetry, Counts: true}); !errors.Is(got.Err, order.ErrLeaseLost) {
		t.Errorf("a late negative answer: %+v", got)
	}
	w.want("a", order.Sending, order.LedgerAccepted)
	if got := w.settle(order.Settlement{Lease: l, Verdict: order.VerdictSucceeded, Result: success}); got.Err != nil {
		t.Errorf("a late positive answer: %+v", got)
	}
	w.want("a", order.Succeeded, order.LedgerSucceeded)
}
