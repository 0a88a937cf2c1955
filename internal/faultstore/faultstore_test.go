package faultstore_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/goweaver/weaver/internal/faultstore"
	"github.com/goweaver/weaver/store"
)

var everyFault = []faultstore.Fault{faultstore.None, faultstore.ErrorBefore, faultstore.ReplyLost, faultstore.CrashBefore, faultstore.CrashAfter}

func TestEveryMethodGoesThroughUnchanged(t *testing.T) {
	t.Parallel()
	for _, m := range methods {
		spy := &spy{}
		p := faultstore.New(spy, nil)
		got, err := m.call(t.Context(), p.Store())
		if !slices.Equal(spy.calls, []string{m.name}) {
			t.Errorf("%s: the store below saw %v", m.name, spy.calls)
		}
		if !errors.Is(err, errSpy) || errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("%s: error %v, want the store's own", m.name, err)
		}
		if !got {
			t.Errorf("%s: the answer that came with the error is lost", m.name)
		}
		if calls := p.Calls(); len(calls) != 1 || calls[0] != (faultstore.Call{N: 1, Method: m.name, Nth: 1}) {
			t.Errorf("%s: recorded as %v", m.name, calls)
		}
	}
}

func TestMethodsAreComplete(t *testing.T) {
	t.Parallel()
	for i := range reflect.TypeFor[store.Store]().NumMethod() {
		name := reflect.TypeFor[store.Store]().Method(i).Name
		if !slices.ContainsFunc(methods, func(m method) bool { return m.name == name }) {
			t.Errorf("no test calls %s", name)
		}
	}
}

func TestFaultsStrikeEveryMethod(t *testing.T) {
	t.Parallel()
	for _, m := range methods {
		for _, f := range everyFault[1:] {
			spy := &spy{well: true}
			p := faultstore.New(spy, faultstore.At(m.name, 2, f))
			s := p.Store()
			if _, err := m.call(t.Context(), s); err != nil {
				t.Errorf("%s before the %s: %v", m.name, f, err)
			}
			got, err := m.call(t.Context(), s)
			if got {
				t.Errorf("%s: %s: the answer came through", m.name, f)
			}
			crash := f == faultstore.CrashBefore || f == faultstore.CrashAfter
			if want := faultstore.ErrInjected; !crash && !errors.Is(err, want) || crash && !errors.Is(err, faultstore.ErrDead) {
				t.Errorf("%s: %s: error %v", m.name, f, err)
			}
			seen := map[faultstore.Fault]int{faultstore.ErrorBefore: 1, faultstore.ReplyLost: 2, faultstore.CrashBefore: 1, faultstore.CrashAfter: 2}
			if len(spy.calls) != seen[f] {
				t.Errorf("%s: %s: the store below saw %v", m.name, f, spy.calls)
			}
			if p.Died() != crash {
				t.Errorf("%s: %s: died: %v", m.name, f, p.Died())
			}
			struck := p.Struck()
			if len(struck) != 1 || struck[0].Fault != f || struck[0].Method != m.name || struck[0].Nth != 2 {
				t.Errorf("%s: %s: struck %v", m.name, f, struck)
			}
			_, err = m.call(t.Context(), s)
			if !crash && err != nil || crash && !errors.Is(err, faultstore.ErrDead) {
				t.Errorf("%s after the %s: %v", m.name, f, err)
			}
			if after := len(spy.calls) - seen[f]; after != 1 && !crash || after != 0 && crash {
				t.Errorf("%s after the %s: the store below saw %d calls more", m.name, f, after)
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
		p := faultstore.New(&spy{well: true}, faultstore.AtCall(c.n, c.f))
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
	p := faultstore.New(&spy{well: true}, func(c faultstore.Call) faultstore.Fault {
		asked = append(asked, c)
		return faultstore.Fault(99) // no fault there is
	})
	for range 2 {
		if err := p.Store().Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Store().Queues(t.Context(), "ns"); err != nil {
		t.Error(err)
	}
	want := []faultstore.Call{{N: 1, Method: "Ready", Nth: 1}, {N: 2, Method: "Ready", Nth: 2}, {N: 3, Method: "Queues", Nth: 1}}
	if !slices.Equal(asked, want) || !slices.Equal(p.Calls(), want) || len(p.Struck()) != 0 {
		t.Errorf("the plan was asked about %v, recorded %v, struck %v; want %v and nothing struck", asked, p.Calls(), p.Struck(), want)
	}
}

func TestAbilitiesAreThoseOfTheStoreBelow(t *testing.T) {
	t.Parallel()
	s := &spy{}
	for _, c := range []struct {
		below               store.Store
		notifies, transacts bool
	}{
		{s, false, false},
		{struct {
			*spy
			spyNotifier
		}{spy: s}, true, false},
		{struct {
			*spy
			spyStepTxer
		}{spy: s}, false, true},
		{struct {
			*spy
			spyNotifier
			spyStepTxer
		}{spy: s}, true, true},
	} {
		seen := faultstore.New(c.below, nil).Store()
		_, notifies := seen.(store.Notifier)
		_, transacts := seen.(store.StepTxer)
		if notifies != c.notifies || transacts != c.transacts {
			t.Errorf("over a store with Notifier %v and StepTxer %v one sees %v and %v", c.notifies, c.transacts, notifies, transacts)
		}
	}
}

func TestDeathEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	spy := &spy{hold: make(chan struct{}), held: make(chan struct{})}
	p := faultstore.New(spy, nil)
	answer := make(chan error)
	go func() {
		_, err := p.Store().Claim(t.Context(), "ns", store.ClaimRequest{})
		answer <- err
	}()
	ctx := <-spy.in()
	p.Die()
	p.Die() // once is enough
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, faultstore.ErrDead) {
		t.Errorf("the claim's context ended with %v", cause)
	}
	select {
	case <-p.Dead():
		t.Error("Dead is closed while a claim is under way")
	default:
	}
	close(spy.hold)
	if err := <-answer; !errors.Is(err, faultstore.ErrDead) {
		t.Errorf("the claim of a dead process was answered: %v", err)
	}
	<-p.Dead()
}

func TestAContextThatEndsIsPassedOn(t *testing.T) {
	t.Parallel()
	spy := &spy{hold: make(chan struct{}), held: make(chan struct{})}
	p := faultstore.New(spy, nil)
	given, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.Store().Claim(given, "ns", store.ClaimRequest{})
	}()
	ctx := <-spy.in()
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
	p := faultstore.New(&spy{well: true}, nil)
	for _, id := range []store.WorkerID{"a", "b"} {
		if err := p.Store().Join(t.Context(), "ns", store.WorkerInfo{ID: id}); err != nil {
			t.Error(err)
		}
	}
	if got := p.Workers(); !slices.Equal(got, []store.WorkerID{"a", "b"}) {
		t.Errorf("the workers are %v", got)
	}
}
