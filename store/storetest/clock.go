package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
)

var clockCases = []testCase{
	{"ready tasks are claimed though the clock is set back", func(e *env) {
		e.many(100)
		e.pass(time.Second)
		second := e.second()
		e.shiftClock(-time.Hour, e.s, second)
		e.equal("tasks claimed", len(e.a.claim(limit(60)).Tasks), 60)
		got, err := second.Claim(e.Context(), e.ns, e.b.request(limit(100)))
		e.require(err == nil, "Claim: %v", err)
		e.equal("tasks claimed on the second handle", len(got.Tasks), 40)
		e.many(1)
		e.equal("tasks claimed of those that came later", len(e.a.claim(limit(60)).Tasks), 1)
	}},
	{"time goes on after the clock is set back", func(e *env) {
		lost := e.a.take(e.one())
		delayed := e.one(after(10 * time.Second))
		e.shiftClock(-time.Hour, e.s)
		before := e.snap().Now
		e.pass(8 * time.Second)
		e.reap()
		e.check(e.task(lost.Task.ID).State != "running", "a lease of %v is not over after 8 s", ttl)
		passed := e.snap().Now.Sub(before)
		e.check(passed >= 4*time.Second && passed <= 8*time.Second+slack, "in 8 s the store's clock went on by %v", passed)
		e.pass(12 * time.Second)
		e.a.take(delayed)
	}},
	{"what the future holds is due when the clock is set forward", func(e *env) {
		later := e.one(after(time.Hour))
		held := e.a.take(e.one())
		e.shiftClock(2*time.Hour, e.s)
		got := e.reaper.reap(store.ReapRequest{CrashBudget: 3})
		e.check(len(got.Reaped) == 0 && got.WarmingUp, "reaped %v of leases that only look as if they were over", got.Reaped)
		e.a.beat(held.Lease)
		e.a.take(later)
		e.finishOK(success(held))
		e.pass(2 * ttl)
	}},
	{"the clock of a snapshot never goes back", func(e *env) {
		last := e.snap().Now
		for _, d := range []time.Duration{-time.Second, time.Minute, -time.Hour, 30 * time.Minute, -time.Millisecond} {
			e.shiftClock(d, e.s)
			now := e.snap().Now
			e.check(!now.Before(last), "after a step by %v the clock went from %v back to %v", d, last, now)
			last = now
		}
	}},
}

// shiftClock makes the machine's clock jump for the given handles.
func (e *env) shiftClock(d time.Duration, handles ...store.Store) {
	e.Helper()
	for i, s := range handles {
		if i == 0 || s != handles[0] {
			e.h.ShiftClock(e.T, s, d)
		}
	}
}
