package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
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

// With complete notices the reaper sleeps until something can expire, so it must learn of leases that begin later.
func TestReaperLooksWhenANewLeaseMayEnd(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		r := newReaper(e, newSignal())
		stop := f.background(r.run)
		defer stop()
		time.Sleep(time.Hour)
		f.wantCalls("Reap", 1, "while nothing can expire")
		f.lease(e)
		r.leased()
		time.Sleep(testTTL - time.Millisecond)
		r.leased()
		f.wantCalls("Reap", 0, "before the lease may end")
		time.Sleep(time.Millisecond)
		f.wantCalls("Reap", 1, "when it may")
	})
}

// A new deadline sets a timer of the reaper, however late its next round is; later deadlines need no look.
func TestReaperLooksAtTheNextDeadline(t *testing.T) {
	for _, complete := range []bool{false, true} {
		inBubble(t, func(f *fixture) {
			r := newReaper(f.env(complete), newSignal())
			stop := f.background(r.run)
			defer stop()
			f.wantCalls("Reap", 1, "at the start")
			stopNotices, _ := f.Notify(testNS, nil, func(n store.Notice) { r.notify(&n) })
			defer stopNotices()
			first := f.enqueue(1, expireAfter(2*time.Second))[0]
			second := f.enqueue(1, expireAfter(time.Second))[0]
			third := f.enqueue(1, expireAfter(4*time.Second))[0]
			time.Sleep(time.Second - time.Millisecond)
			f.wantCalls("Reap", 0, "before a deadline")
			for _, id := range []task.ID{second, first} { // the answer names the deadline after it
				time.Sleep(time.Millisecond)
				f.wantCalls("Reap", 1, "at a deadline")
				if s := f.state(id); s != task.Cancelled {
					t.Errorf("at its deadline the task is %s", s)
				}
				time.Sleep(time.Second - time.Millisecond)
				f.wantCalls("Reap", 0, "before the next deadline")
			}
			if s := f.state(third); s != task.Ready {
				t.Errorf("a second before its deadline the task is %s", s)
			}
		})
	}
}

// Deadlines set by another process are noticed within a poll interval, by one look for all its writes meanwhile.
func TestReaperLooksAfterAnotherProcessWrote(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		r := newReaper(e, newSignal())
		stop := f.background(r.run)
		defer stop()
		f.wantCalls("Reap", 1, "at the start")
		time.Sleep(2 * e.Poll)
		id := f.enqueue(1, expireAfter(e.Poll/2))[0]
		r.notify(&store.Notice{External: true})
		f.wantCalls("Reap", 1, "when another process wrote")
		time.Sleep(e.Poll / 2)
		f.wantCalls("Reap", 1, "at the deadline that it set")
		if s := f.state(id); s != task.Cancelled {
			t.Errorf("at its deadline the task is %s", s)
		}
		for range 9 {
			time.Sleep(e.Poll / 10)
			r.notify(&store.Notice{External: true})
		}
		f.wantCalls("Reap", 0, "while another process writes, before a poll has passed")
		time.Sleep(e.Poll / 10)
		f.wantCalls("Reap", 1, "a poll after the last look")
	})
}

// Leases of workers that the store found dead are taken at once.
func TestReaperLooksWhenWorkersAreDead(t *testing.T) {
	inBubble(t, func(f *fixture) {
		r := newReaper(f.env(false), newSignal())
		stop := f.background(r.run)
		defer stop()
		f.wantCalls("Reap", 1, "at the start")
		time.Sleep(time.Second)
		f.wantCalls("Reap", 0, "a second later")
		r.notify(&store.Notice{Dead: true})
		f.wantCalls("Reap", 1, "when workers were found dead")
		for range 5 {
			r.notify(&store.Notice{Dead: true})
		}
		f.wantCalls("Reap", 0, "at once again")
		time.Sleep(reapPause)
		f.wantCalls("Reap", 1, "a moment later")
	})
}

// A store without notices is polled as often as for work.
func TestReaperPolls(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		e.unnoticed = true
		stop := f.background(newReaper(e, newSignal()).run)
		defer stop()
		f.wantCalls("Reap", 1, "at the start")
		time.Sleep(100 * e.Poll)
		if n := f.called("Reap"); n < 90 || n > 112 {
			t.Errorf("%d calls of Reap in 100 polls, want one each, give or take a tenth", n)
		}
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
		r.reap(f.Context(), false)
		select {
		case <-due.C():
		default:
			t.Error("a task was taken over and the claimer was not woken")
		}
		r.reap(f.Context(), false)
		select {
		case <-due.C():
			t.Error("the claimer was woken for nothing")
		default:
		}
	})
}

// RunUntilIdle does not end while expired leases wait for the warm-up of the reaper, but waits at most two TTLs.
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
		r.reap(f.Context(), false)
		if !r.waitsForWarmUp() {
			t.Error("an expired lease of a worker that may come back is there, and it does not wait")
		}
		stopBeats := f.background(newHeartbeater(e).run) // a worker without heartbeats stays ineligible
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
