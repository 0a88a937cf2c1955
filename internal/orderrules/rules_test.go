package orderrules_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/task"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func fresh(key string) order.Order {
	n := order.New{Profile: "order", Parsed: order.Parsed{
		Key: key, Body: json.RawMessage(`{"instrument":"X","side":"BUY"}`), Digest: "d", Timeout: time.Second, MaxAge: time.Hour,
	}, Task: task.ID{1}, Step: "send"}
	return orderrules.Accept(&n, epoch)
}

var ok = order.ExecResult{Status: order.OK, Fills: []order.Fill{{Px: "1", Qty: "1"}}, ExecutedQty: "1"}

// TestMoves applies random rules to random orders. The moves that are seen are exactly those of
// docs/orders.md, a settled entry changes only by a requeue, by a positive answer after an
// unknown outcome or by hand, and no order is final with an open ledger entry.
func TestMoves(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"pending>sending", "sending>succeeded", "sending>failed", "sending>aborted", "sending>pending", "failed>pending", "failed>aborted",
		"pending>succeeded", "pending>aborted", "aborted>pending",
	}
	seen := make(map[string]bool)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		o, now := fresh("k"), epoch
		for range 30 {
			now = now.Add(time.Duration(rnd.IntN(120)) * time.Second)
			if rnd.IntN(300) == 0 {
				now = now.Add(2 * time.Hour)
			}
			was := o
			m, verb := step(&o, rnd, now)
			for i := 1; i < len(m.Path); i++ {
				seen[string(m.Path[i-1])+">"+string(m.Path[i])] = true
			}
			if m.Path[0] != was.Row.State || m.Path[len(m.Path)-1] != o.Row.State {
				t.Fatalf("%s: the path %v leads from %s to %s", verb, m.Path, was.Row.State, o.Row.State)
			}
			check(t, verb, &was, &o, &m)
		}
	}
	for move := range seen {
		if !slices.Contains(allowed, move) {
			t.Errorf("the move %s is not in the protocol", move)
		}
	}
	for _, move := range allowed {
		if !seen[move] {
			t.Errorf("the move %s never happened", move)
		}
	}
}

// step applies one rule.
func step(o *order.Order, rnd *rand.Rand, now time.Time) (m orderrules.Move, verb string) {
	lease := order.Lease{Key: "k", Token: o.Row.Token - int64(rnd.IntN(4)/3)}
	settle := order.Settlement{Lease: lease, Digest: "d", Counts: rnd.IntN(2) == 0, Unknown: rnd.IntN(2) == 0, Delay: time.Minute}
	stay := orderrules.Move{Path: []order.State{o.Row.State}}
	switch rnd.IntN(14) {
	case 0, 1, 2:
		if !orderrules.Due(&o.Row, now) {
			return stay, "claim"
		}
		return orderrules.Claim(o, &order.ClaimRequest{Worker: "w", Lease: time.Minute}, rnd.IntN(20) == 0, now), "claim"
	case 3, 4:
		m, _ = orderrules.Send(o, &order.Send{Lease: lease, EndsAt: now.Add(time.Second)}, now)
		return m, "send"
	case 5:
		settle.Verdict, settle.Result = order.VerdictSucceeded, ok
	case 6:
		settle.Verdict, settle.Code = order.VerdictRetry, "BROKER_DOWN"
	case 7:
		settle.Verdict, settle.Code = order.VerdictAborted, "BROKER_DOWN"
		settle.Result = *order.NoResult(&o.Row, order.ReasonDown, now)
	case 8:
		settle.Verdict = order.VerdictRelease
	case 9:
		if o.Row.State != order.Sending || o.Row.LeaseUntil.After(now) {
			return stay, "reclaim"
		}
		m, _ = orderrules.Reclaim(o, rnd.IntN(2) == 0, now)
		return m, "reclaim"
	case 10:
		m, _ = orderrules.Requeue(o, &order.Requeue{Key: "k", Confirmed: rnd.IntN(2) == 0}, now)
		return m, "requeue"
	case 11:
		cmd := order.SettleByHand{Key: "k", Code: order.ReasonInternal}
		if rnd.IntN(2) == 0 {
			cmd.Result = &ok
		}
		m, _ = orderrules.SettleByHand(o, &cmd, now)
		return m, "by hand"
	case 12:
		m, _ = orderrules.Withdraw(o, "ann", now)
		return m, "withdraw"
	case 13:
		if rnd.IntN(3) == 0 {
			return orderrules.Hold(o, now), "hold"
		}
		m, _ = orderrules.Release(o, now)
		return m, "release"
	}
	var got order.Settled
	m, got = orderrules.Settle(o, &settle, now)
	if got.Err != nil && (m.Row || m.Ledger) {
		panic("a settlement that is refused changed something: " + got.Err.Error())
	}
	return m, "settle " + string(settle.Verdict)
}

func check(t *testing.T, verb string, was, o *order.Order, m *orderrules.Move) {
	t.Helper()
	switch {
	case o.Row.State == order.Succeeded && o.Entry.State != order.LedgerSucceeded:
		t.Fatalf("%s: the row succeeded, the ledger is %s", verb, o.Entry.State)
	case o.Row.State == order.Aborted && o.Entry.State == order.LedgerAccepted:
		t.Fatalf("%s: the row is aborted, the ledger accepted", verb)
	case !o.Row.State.Final() && o.Entry.State != order.LedgerAccepted:
		t.Fatalf("%s: the row is %s, the ledger %s", verb, o.Row.State, o.Entry.State)
	case was.Entry.State == order.LedgerSucceeded && o.Entry.State != order.LedgerSucceeded:
		t.Fatalf("%s: a success became %s", verb, o.Entry.State)
	case was.Entry.State == order.LedgerFailed && o.Entry.State == order.LedgerSucceeded && !was.Entry.Unknown && verb != "by hand":
		t.Fatalf("%s: a failure without doubt became a success", verb)
	case was.Entry.State == order.LedgerFailed && o.Entry.State == order.LedgerAccepted && verb != "requeue":
		t.Fatalf("%s: a settled entry is accepted again", verb)
	case o.Row.Token < was.Row.Token:
		t.Fatalf("%s: the token fell", verb)
	case (o.Row.State == order.Sending) != (o.Row.LockedBy != ""):
		t.Fatalf("%s: %s and locked by %q", verb, o.Row.State, o.Row.LockedBy)
	case (o.Row.State == order.Pending || o.Row.State == order.Retrying) == o.Row.NextRunAt.IsZero():
		t.Fatalf("%s: %s and next_run_at %v", verb, o.Row.State, o.Row.NextRunAt)
	case was.Row.SendOpen && !o.Row.SendOpen && !o.Row.Unknown && (verb == "reclaim" || verb == "hold"):
		t.Fatalf("%s: an open send is forgotten", verb)
	case m.Settled != (o.Row.State.Final() && len(m.Path) > 1):
		t.Fatalf("%s: settled %t on the path %v", verb, m.Settled, m.Path)
	}
}

// W-105: the row follows a ledger that has succeeded, and an order whose key has another
// request in the ledger is aborted, the ledger untouched.
func TestW105_RowFollowsLedger(t *testing.T) {
	t.Parallel()
	o := fresh("k")
	o.Entry.State = order.LedgerSucceeded
	m := orderrules.Claim(&o, &order.ClaimRequest{Worker: "w", Lease: time.Minute}, false, epoch)
	if o.Row.State != order.Succeeded || m.Ledger || o.Row.SendNo != 0 {
		t.Errorf("ledger succeeded: %+v", o.Row)
	}
	o = fresh("k")
	o.Entry.Digest, o.Entry.State = "other", order.LedgerSucceeded
	was := o.Entry
	m = orderrules.Claim(&o, &order.ClaimRequest{Worker: "w", Lease: time.Minute}, false, epoch)
	if o.Row.State != order.Aborted || o.Row.LastErrorCode != "IDEMPOTENCY_CONFLICT" || m.Ledger || o.Entry.State != was.State {
		t.Errorf("another request: %+v", o)
	}
}

// TestLateAnswers drops a late negative answer and takes a late positive one.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	o := fresh("k")
	claim := func(worker string, now time.Time) order.Lease {
		orderrules.Claim(&o, &order.ClaimRequest{Worker: worker, Lease: time.Minute}, false, now)
		return order.Lease{Key: "k", Token: o.Row.Token}
	}
	stale := claim("slow", epoch)
	if _, err := orderrules.Send(&o, &order.Send{Lease: stale}, epoch); err != nil {
		t.Fatal(err)
	}
	later := epoch.Add(2 * time.Minute)
	if _, counted := orderrules.Reclaim(&o, false, later); counted || o.Row.Attempts != 0 || !o.Row.Unknown {
		t.Errorf("an outage counted: %+v", o.Row)
	}
	claim("quick", later)
	was := o.Row
	_, got := orderrules.Settle(&o, &order.Settlement{Lease: stale, Digest: "d", Verdict: order.VerdictRetry, Counts: true}, later)
	if got.Err == nil || o.Row.Attempts != was.Attempts || o.Row.State != order.Sending {
		t.Errorf("a late negative answer: %v, %+v", got, o.Row)
	}
	_, got = orderrules.Settle(&o, &order.Settlement{Lease: stale, Digest: "d", Verdict: order.VerdictSucceeded, Result: ok}, later)
	if got.Err != nil || o.Row.State != order.Succeeded || o.Entry.State != order.LedgerSucceeded {
		t.Errorf("a late positive answer: %v, %+v", got, o)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	if got := orderrules.Clip(strings.Repeat("é", 600)); len([]rune(got)) != order.MaxMessage {
		t.Errorf("%d characters", len([]rune(got)))
	}
}
