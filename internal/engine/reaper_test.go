package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestReaperLooksEveryThirdOfTheTTL(t *testing.T) {
	inBubble(t, func(f *fixture) {
		r := newReaper(f.env(false), newSignal())
		stop := f.background(r.run)
		defer stop()
		f.wantCalls("Reap", 1, "at the start")
		time.Sleep(10 * testTTL)
		if n := f.called("Reap"); n < 27 || n > 30 {
			t.Errorf("%d calls of Reap in ten TTLs, want 27 to 30", n)
		}
	})
}

// Where every change is notified the reaper sleeps until something can expire,
// so leases that begin later must wake it.
func TestReaperWakesForNewLeases(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		r := newReaper(e, newSignal())
		stop := f.background(r.run)
		defer stop()
		time.Sleep(time.Hour)
		f.wantCalls("Reap", 1, "while nothing can expire")
		f.lease(e)
		r.leased()
		f.wantCalls("Reap", 1, "when the first lease began")
		r.leased()
		f.wantCalls("Reap", 0, "when a lease began that does not end before it looks")
		r.wake.Set()
		f.wantCalls("Reap", 1, "when it is woken")
	})
}

func TestReaperWakesTheClaimer(t *testing.T) {
	inBubble(t, func(f *fixture) {
		gone := f.env(true)
		f.lease(gone)
		f.Kill(gone.worker)
		e := f.env(true)
		due := newSignal()
		r := newReaper(e, due)
		r.reap(f.Context())
		select {
		case <-due.C():
		default:
			t.Error("a task was taken over and the claimer was not woken")
		}
		r.reap(f.Context())
		select {
		case <-due.C():
			t.Error("the claimer was woken for nothing")
		default:
		}
	})
}

// RunUntilIdle stays while expired leases wait for the warm-up of the reaper,
// but not for longer than two TTLs.
func TestReaperWaitsForWarmUp(t *testing.T) {
	inBubble(t, func(f *fixture) {
		gone := f.env(false)
		f.lease(gone)
		time.Sleep(2 * testTTL)

		e := f.env(false)
		due := newSignal()
		r := newReaper(e, due)
		if r.waitsForWarmUp() {
			t.Error("it waits before it looked")
		}
		r.reap(f.Context())
		if !r.waitsForWarmUp() {
			t.Error("an expired lease of a worker that may come back is there, and it does not wait")
		}
		stopBeats := f.background(newHeartbeater(e).run) // a worker that is not seen stays ineligible
		stop := f.background(r.run)
		time.Sleep(testTTL + testTTL/2)
		synctest.Wait()
		if r.waitsForWarmUp() {
			t.Error("it waits after the warm-up")
		}
		select {
		case <-due.C():
		default:
			t.Error("the warm-up ended and the claimer was not woken")
		}
		stop()
		stopBeats()
		if n := f.states(f.taskIDs()); n["ready"] != 1 {
			t.Errorf("the tasks are %v, want the one that was taken over ready", n)
		}

		slow := newReaper(e, due)
		slow.noteWarmUp(true)
		time.Sleep(2*testTTL - time.Millisecond)
		if !slow.waitsForWarmUp() {
			t.Error("it gave up before two TTLs")
		}
		time.Sleep(time.Millisecond)
		if slow.waitsForWarmUp() || !slow.noteWarmUp(true) {
			t.Error("it waits for longer than two TTLs, or does not say that this ended")
		}
	})
}
