package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestValidityCheckerEndsAnAttemptInTime(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		v := newValidityChecker(e)
		stop := f.background(v.run)
		defer stop()
		time.Sleep(time.Minute) // it sleeps without a limit

		a := f.lease(e)
		v.watch(a)
		synctest.Wait()
		time.Sleep(10 * time.Second)
		a.extendValidity(time.Now()) // like a heartbeat, which wakes nothing
		valid := testTTL - testTTL/6
		time.Sleep(valid - time.Millisecond)
		synctest.Wait()
		if a.ctx.Err() != nil {
			t.Fatalf("the attempt ended %s early: %v", a.validFor(), context.Cause(a.ctx))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if cause := context.Cause(a.ctx); !errors.Is(cause, ErrLeaseUncertain) {
			t.Errorf("the lease is not valid any more and the cause is %v", cause)
		}
		if valid >= testTTL {
			t.Error("a lease is valid here for as long as in the store")
		}
	})
}

// An attempt that starts while another one is watched, and is valid for a shorter time, must be checked in time.
func TestValidityCheckerWakesForAShorterLease(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		v := newValidityChecker(e)
		f.lease(e)
		stop := f.background(v.run)
		defer stop()
		late := f.lease(e)
		late.extendValidity(time.Now().Add(-20 * time.Second)) // the claim took that long
		v.watch(late)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if cause := context.Cause(late.ctx); !errors.Is(cause, ErrLeaseUncertain) {
			t.Errorf("the cause is %v, want ErrLeaseUncertain", cause)
		}
	})
}
