package faultstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

var everyFault = []faultstore.Fault{faultstore.None, faultstore.ErrorBefore, faultstore.ReplyLost, faultstore.CrashBefore, faultstore.CrashAfter}

func TestEveryMethodGoesThroughUnchanged(t *testing.T) {
	t.Parallel()
	for _, m := range methods() {
		spy := newSpy(false)
		p := faultstore.New(spy, nil)
		got, err := call(t.Context(), p.Store(), m)
		if !slices.Equal(spy.calls, []string{m}) {
			t.Errorf("%s: the store below saw %v", m, spy.calls)
		}
		if !errors.Is(err, errSpy) || errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("%s: error %v, want the store's own", m, err)
		}
		if !got {
			t.Errorf("%s: the answer that came with the error is lost", m)
		}
		if calls := p.Calls(); len(calls) != 1 || calls[0] != (faultstore.Call{N: 1, Method: m, Nth: 1}) {
			t.Errorf("%s: recorded as %v", m, calls)
		}
	}
}

func TestFaultsStrikeEveryMethod(t *testing.T) {
	t.Parallel()
	for _, m := range methods() {
		for _, f := range everyFault[1:] {
			spy := newSpy(true)
			p := faultstore.New(spy, faultstore.At(m, 2, f))
			s := p.Store()
			if _, err := call(t.Context(), s, m); err != nil {
				t.Errorf("%s before the %s: %v", m, f, err)
			}
			got, err := call(t.Context(), s, m)
			if got {
				t.Errorf("%s: %s: the answer came through", m, f)
			}
			crash := f == faultstore.CrashBefore || f == faultstore.CrashAfter
			if want := faultstore.ErrInjected; !crash && !errors.Is(err, want) || crash && !errors.Is(err, faultstore.ErrDead) {
				t.Errorf("%s: %s: error %v", m, f, err)
			}
			seen := map[faultstore.Fault]int{faultstore.ErrorBefore: 1, faultstore.ReplyLost: 2, faultstore.CrashBefore: 1, faultstore.CrashAfter: 2}
			if len(spy.calls) != seen[f] {
				t.Errorf("%s: %s: the store below saw %v", m, f, spy.calls)
			}
			if p.Died() != crash {
				t.Errorf("%s: %s: died: %v", m, f, p.Died())
			}
			struck := p.Struck()
			if len(struck) != 1 || struck[0].Fault != f || struck[0].Method != m || struck[0].Nth != 2 {
				t.Errorf("%s: %s: struck %v", m, f, struck)
			}
			_, err = call(t.Context(), s, m)
			if !crash && err != nil || crash && !errors.Is(err, faultstore.ErrDead) {
				t.Errorf("%s after the %s: %v", m, f, err)
			}
			if after := len(spy.calls) - seen[f]; after != 1 && !crash || after != 0 && crash {
				t.Errorf("%s after the %s: the store below saw %d calls more", m, f, after)
			}
		}
	}
}

func TestErrorsReadLikeTheStores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    int
		f    faultstore.Fault
		want error
	}{
		{1, faultstore.ErrorBefore, store.ErrUnavailable},
		{2, faultstore.ErrorBefore, store.ErrUnavailable},
		{1, faultstore.ReplyLost, store.ErrUnknown},
		{2, faultstore.ReplyLost, store.ErrUnavailable},
		{1, faultstore.CrashBefore, store.ErrClosed},
		{2, faultstore.CrashAfter, store.ErrClosed},
	} {
		p := faultstore.New(newSpy(true), faultstore.AtCall(c.n, c.f))
		var err error
		for range c.n {
			err = p.Store().Ready(t.Context())
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s at call %d reads %q, want %q", c.f, c.n, err, c.want)
		}
	}
}

func TestAPlanIsAskedOncePerCall(t *testing.T) {
	t.Parallel()
	var asked []faultstore.Call
	p := faultstore.New(newSpy(true), func(c faultstore.Call) faultstore.Fault {
		asked = append(asked, c)
		return faultstore.Fault(99) // not a fault
	})
	for range 2 {
		if err := p.Store().Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Store().Overview(t.Context(), "ns", store.OverviewRequest{}); err != nil {
		t.Error(err)
	}
	want := []faultstore.Call{{N: 1, Method: "Ready", Nth: 1}, {N: 2, Method: "Ready", Nth: 2}, {N: 3, Method: "Overview", Nth: 1}}
	if !slices.Equal(asked, want) || !slices.Equal(p.Calls(), want) || len(p.Struck()) != 0 {
		t.Errorf("the plan was asked about %v, recorded %v, struck %v; want %v and nothing struck", asked, p.Calls(), p.Struck(), want)
	}
}

func TestTheViewHasTheCapabilitiesOfTheStoreBelow(t *testing.T) {
	t.Parallel()
	for _, hide := range []store.Capabilities{0, store.CanNotify, store.CanNotify | store.CanStepTx, store.AllCapabilities} {
		below := storehook.New(memstore.New(), &storehook.Hooks{Hide: hide})
		if got, want := faultstore.New(below, nil).Store().Capabilities(), memstore.New().Capabilities()&^hide; got != want {
			t.Errorf("over a store without %b the view has %b, want %b", hide, got, want)
		}
	}
}

func TestDeathEndsCallsInFlight(t *testing.T) {
	t.Parallel()
	spy := newSpy(false)
	spy.hold = make(chan struct{})
	p := faultstore.New(spy, nil)
	answer := make(chan error)
	go func() {
		_, err := p.Store().Claim(t.Context(), "ns", store.ClaimRequest{})
		answer <- err
	}()
	ctx := <-spy.ctx
	p.Die()
	p.Die() // a second call is allowed
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, faultstore.ErrDead) {
		t.Errorf("the claim's context ended with %v", cause)
	}
	select {
	case <-p.Dead():
		t.Error("Dead is closed while a claim is in flight")
	default:
	}
	close(spy.hold)
	if err := <-answer; !errors.Is(err, faultstore.ErrDead) {
		t.Errorf("the claim of a dead process was answered: %v", err)
	}
	<-p.Dead()
}

func TestTheEndOfAContextReachesTheStore(t *testing.T) {
	t.Parallel()
	spy := newSpy(false)
	spy.hold = make(chan struct{})
	p := faultstore.New(spy, nil)
	given, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.Store().Claim(given, "ns", store.ClaimRequest{})
	}()
	ctx := <-spy.ctx
	why := errors.New("enough")
	cancel(why)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), why) {
		t.Errorf("the store sees the cause %v", context.Cause(ctx))
	}
	close(spy.hold)
	<-done
	if p.Died() {
		t.Error("the process died of it")
	}
}

func TestWorkersAreThoseThatJoined(t *testing.T) {
	t.Parallel()
	p := faultstore.New(newSpy(true), nil)
	for _, id := range []store.WorkerID{"a", "b"} {
		if err := p.Store().Join(t.Context(), "ns", store.WorkerInfo{ID: id}); err != nil {
			t.Error(err)
		}
	}
	if got := p.Workers(); !slices.Equal(got, []store.WorkerID{"a", "b"}) {
		t.Errorf("the workers are %v", got)
	}
}
