package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

func TestHeartbeaterRenewsEveryThirdOfTheTTL(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		a := f.lease(e)
		h := newHeartbeater(e)
		stop := f.background(h.run)
		defer stop()
		time.Sleep(time.Minute)
		f.wantCalls("Heartbeat", 6, "in a minute")
		if got, want := a.validFor(), testTTL-testTTL/6; got != want {
			t.Errorf("after a renewal the lease is valid for %s, want %s", got, want)
		}
	})
}

func TestHeartbeaterWakesForACancel(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		a := f.lease(e)
		h := newHeartbeater(e)
		stop := f.background(h.run)
		defer stop()
		if _, err := f.Operate(f.Context(), testNS, store.CancelTask{Task: a.task.ID}); err != nil {
			t.Fatal(err)
		}
		h.leased()
		f.wantCalls("Heartbeat", 0, "when attempts began")
		h.notify(true, false)
		f.wantCalls("Heartbeat", 1, "when a cancel was asked for")
		if cause := context.Cause(a.ctx); !errors.Is(cause, ErrCancelled) {
			t.Errorf("the context ended with %v, want ErrCancelled", cause)
		}
	})
}

func TestHeartbeaterWaitsASecondAfterAnExternalWrite(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		f.lease(e)
		h := newHeartbeater(e)
		stop := f.background(h.run)
		defer stop()
		for range 5 {
			h.notify(false, true)
		}
		f.wantCalls("Heartbeat", 0, "at once")
		time.Sleep(externalDelay)
		f.wantCalls("Heartbeat", 1, "a second after another process wrote five times")
		time.Sleep(testTTL/3 - time.Millisecond)
		f.wantCalls("Heartbeat", 0, "before the next one is due")
	})
}

func TestHeartbeaterSleepsWhileNothingIsLeased(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		h := newHeartbeater(e)
		stop := f.background(h.run)
		defer stop()
		time.Sleep(time.Hour)
		f.wantCalls("Heartbeat", 0, "of an idle worker of a store without other processes")
		f.lease(e)
		h.leased()
		f.wantCalls("Join", 1, "when a lease began")
		time.Sleep(testTTL / 3)
		f.wantCalls("Heartbeat", 1, "a third of the TTL later")
	})
}
