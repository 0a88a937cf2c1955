package order

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// AskPartner asks the partner of an aborted order whose outcome is unknown what became of it.
// If it executed the order, the key is settled with its result, with an audit entry of who asked
// and why. Without a Reconciler the answer is FoundOpen.
func AskPartner(ctx context.Context, st Store, ns string, a Adapter, key string, by Audit) (Found, error) {
	rec, ok := a.(Reconciler)
	if !ok {
		return FoundOpen, nil
	}
	o, err := st.GetOrder(ctx, ns, key)
	switch {
	case err != nil:
		return FoundOpen, err
	case o.Row.State != Aborted || !o.Entry.Unknown:
		return FoundOpen, fmt.Errorf("%w: %q is %s; only an aborted order with an unknown outcome is asked about", ErrState, key, o.Row.State)
	}
	h := holding{row: o.Row}
	call, cancel := context.WithTimeout(ctx, max(o.Row.Timeout, time.Second))
	defer cancel()
	type answer struct {
		res   ExecResult
		found Found
	}
	got, err := safely("Reconcile of the adapter "+a.Name(), func() (got answer, err error) {
		got.res, got.found, err = rec.Reconcile(call, h.outgoing())
		return got, err
	})
	switch {
	case err != nil:
		return FoundOpen, err
	case got.found == FoundNothing && time.Now().Before(absentFrom(&o.Row)):
		return FoundOpen, nil // a send may be under way
	case got.found != FoundResult:
		return got.found, nil
	}
	complete(&o.Row, a.Name(), &got.res, time.Time{}, time.Now())
	if err := got.res.Check(o.Row.Profile); err != nil {
		return FoundOpen, fmt.Errorf("the partner's result: %w", err)
	}
	by.Reason = strings.TrimSpace(by.Reason + " (the partner has executed it)")
	_, err = st.OperateOrder(ctx, ns, SettleByHand{Audit: by, Key: key, Result: &got.res, Asked: true})
	return FoundResult, err
}

// minAbsent is the shortest time after the end of a send in which the partner may still begin to
// execute it: the bytes may wait in its queues for longer than a short timeout.
const minAbsent = 5 * time.Second

// absentFrom returns the time from which FoundNothing is final: the partner executes no send of the
// row after it.
func absentFrom(r *Row) time.Time { return r.SendEndsAt.Add(max(r.Timeout, minAbsent)) }
