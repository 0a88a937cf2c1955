package rules

import "time"

// LeaseClock is the TTL of a worker's leases. Its methods return every duration that is a
// fraction or a multiple of the TTL. A lease renewed at 0 is renewed again at 1/3, is not
// relied on from 5/6 on, and may be taken from 1 on.
//
//	0        1/3        1/2        2/3        5/6       1
//	renewed  Heartbeat  Gap        a second   Validity  Reap, if the reaping worker
//	                               heartbeat            was seen without a Gap for WarmUp
//
// Clocks decide only when a lease may be taken. The epoch decides who may write (R2).
type LeaseClock time.Duration

func (c LeaseClock) part(n time.Duration) time.Duration { return time.Duration(c) / n }

// Heartbeat is the time between two renewals (R6). If one renewal is lost, the next one still
// arrives before the end of [LeaseClock.Validity].
func (c LeaseClock) Heartbeat() time.Duration { return c.part(3) }

// OrderHeartbeat is the interval at which an order worker renews its leases: 60 s of 120 s. Its
// leases are long, and ReclaimOrders counts as a sign of life more often.
func (c LeaseClock) OrderHeartbeat() time.Duration { return c.part(2) }

// HeartbeatCall is the timeout of a renewal. A hanging call keeps all leases from being
// renewed, and the next call must start while they are valid.
func (c LeaseClock) HeartbeatCall() time.Duration { return c.part(3) }

// HeartbeatAgain is the pause after a failed renewal. Even the shortest leases allow several
// tries.
func (c LeaseClock) HeartbeatAgain() time.Duration { return min(time.Second, c.part(12)) }

// Validity is the time for which a worker relies on a lease, counted from before its request
// (R5). The remaining sixth lets the handler return and covers clocks of different speed: when
// another worker takes the lease, this worker has stopped relying on it.
func (c LeaseClock) Validity() time.Duration { return time.Duration(c) - c.part(6) }

// SessionGrace is the default time for which a worker relies on its leases without an answer
// of its session (R5). Other workers may take the end of a session for the death of its
// process.
func (c LeaseClock) SessionGrace() time.Duration { return c.part(3) }

// Gap is the longest pause between two signs of life of a worker that does not count as an
// interruption (R7). It is longer than one heartbeat and shorter than two. One missing
// heartbeat therefore shows, and so does an outage that lets healthy leases expire.
func (c LeaseClock) Gap() time.Duration { return c.part(2) }

// WarmUp is the time for which a worker must be seen without a [LeaseClock.Gap] before it may
// take expired leases (R7). After an outage every lease looks expired, and by the end of the
// warm-up the holders have renewed their leases.
func (c LeaseClock) WarmUp() time.Duration { return time.Duration(c) }

// WarmUpLimit is the longest wait for a worker's warm-up. With a store that answers too slowly
// the worker never becomes eligible.
func (c LeaseClock) WarmUpLimit() time.Duration { return 2 * time.Duration(c) }

// Stall is the longest wait for the write lock after which a worker may take expired leases
// without a new warm-up (R7). The heartbeats of the holders may have waited for the lock just
// as long.
func (c LeaseClock) Stall() time.Duration { return c.part(3) }

// Silence is the silence at the end of a lease from which on its worker counts as stopped
// (R7): two heartbeats are missing. A shorter silence is not a crash.
func (c LeaseClock) Silence() time.Duration { return c.part(2) }

// Forget is the time after which a silent worker without leases is deleted.
func (c LeaseClock) Forget() time.Duration { return ForgetAfter * time.Duration(c) }

// Reap is the time between two scans for expired leases (R7). A lease is taken at most a third
// of the TTL after it expires, and the end of a warm-up is noticed in time.
func (c LeaseClock) Reap() time.Duration { return c.part(3) }

// ReapJitter is the maximum delay added to [LeaseClock.Reap], so that several processes do not
// scan at once.
func (c LeaseClock) ReapJitter() time.Duration { return c.part(30) }

// Lookup is the timeout of the search for a claim whose answer was lost (R3). A slower search
// would find leases that have mostly run out.
func (c LeaseClock) Lookup() time.Duration { return c.part(3) }

// Join is the timeout of the announcement of a worker. While it hangs, no lease is renewed and
// no task is claimed.
func (c LeaseClock) Join() time.Duration { return max(c.part(3), time.Second) }

// Watch is the time between two schema checks of a store that does not announce changes, and
// the timeout of one check. A worker that must stop begins little further work.
func (c LeaseClock) Watch() time.Duration { return c.part(3) }

// StepTx is the timeout of a step's transaction (R10). On SQLite no lease is renewed
// meanwhile.
func (c LeaseClock) StepTx() time.Duration { return min(5*time.Second, c.part(3)) }

// Call is the timeout of the other store calls. A call that hangs longer outlives the leases
// that it is about.
func (c LeaseClock) Call() time.Duration { return time.Duration(c) }

// Finish is the timeout of a write of finishes. It is longer than the shortest leases: a late
// finish is fenced, and waiting for it loses nothing.
func (c LeaseClock) Finish() time.Duration { return max(c.Call(), 10*time.Second) }
