package rules

import "time"

// LeaseClock is the TTL of a worker's leases. Its methods are all that happens at a
// fraction, or a multiple, of it: a lease that is renewed at 0 is renewed again at 1/3,
// is not relied on from 5/6 on, and may be taken from 1 on.
//
//	0        1/3        1/2        2/3        5/6       1
//	renewed  Heartbeat  Gap        a second   Validity  Reap, if the worker
//	                               heartbeat            that takes it was seen
//	                                                    without a Gap for WarmUp
//
// Clocks decide only when a lease may be taken; who may write, the epoch does (R2).
type LeaseClock time.Duration

func (c LeaseClock) part(n time.Duration) time.Duration { return time.Duration(c) / n }

// Heartbeat is the time between two renewals (R6). One of them may be lost, and the
// next one still comes before [LeaseClock.Validity] is over.
func (c LeaseClock) Heartbeat() time.Duration { return c.part(3) }

// HeartbeatCall bounds a renewal: one that hangs keeps all leases from being renewed, and
// the next try must come while they are valid.
func (c LeaseClock) HeartbeatCall() time.Duration { return c.part(3) }

// HeartbeatAgain is the pause after a renewal that failed: several tries come before the
// leases end, also the shortest ones.
func (c LeaseClock) HeartbeatAgain() time.Duration { return min(time.Second, c.part(12)) }

// Validity is the time for which a worker relies on a lease from the moment before it asked for it
// (R5). The rest is for the handler to return, and for clocks that run unevenly: when another
// worker takes the lease, this one has stopped counting on it.
func (c LeaseClock) Validity() time.Duration { return time.Duration(c) - c.part(6) }

// SessionGrace is the default time without an answer of its session for which a worker
// relies on its leases (R5): others may take the end of a session for the death of its process.
func (c LeaseClock) SessionGrace() time.Duration { return c.part(3) }

// Gap is the longest time between two signs of life of a worker that counts as none (R7):
// longer than one heartbeat and shorter than two, so that a missing one shows, and an
// outage of the store in which healthy leases can expire shows in every worker.
func (c LeaseClock) Gap() time.Duration { return c.part(2) }

// WarmUp is the time for which a worker is seen without a [LeaseClock.Gap] before it may take
// expired leases (R7): after an outage all look expired, and by then their holders have
// renewed them.
func (c LeaseClock) WarmUp() time.Duration { return time.Duration(c) }

// WarmUpLimit is the time after which a worker that waits for its warm-up is not waited for any
// more: a store that answers too slowly never makes it eligible.
func (c LeaseClock) WarmUpLimit() time.Duration { return 2 * time.Duration(c) }

// Stall is the longest wait for the write lock after which a worker may take expired
// leases without a new warm-up (R7): their holders may have waited for it with their
// heartbeats for as long.
func (c LeaseClock) Stall() time.Duration { return c.part(3) }

// Silence is the time for which a worker was silent at the end of a lease that stopped (R7): two
// heartbeats are missing. A shorter silence is no crash.
func (c LeaseClock) Silence() time.Duration { return c.part(2) }

// Forget is the time after which a silent worker without leases is forgotten.
func (c LeaseClock) Forget() time.Duration { return ForgetAfter * time.Duration(c) }

// Reap is the time between two looks at expired leases (R7): one that expires is taken
// after a third of its life at the latest, and a warm-up is seen to end in time.
func (c LeaseClock) Reap() time.Duration { return c.part(3) }

// ReapJitter is the most that a look is later than [LeaseClock.Reap]: reapers of several
// processes do not look at once.
func (c LeaseClock) ReapJitter() time.Duration { return c.part(30) }

// Lookup bounds the search for a claim whose answer was lost (R3): one that takes longer
// finds leases of which much is over.
func (c LeaseClock) Lookup() time.Duration { return c.part(3) }

// Join bounds the announcement of a worker: while it hangs, no lease is renewed and none
// is taken.
func (c LeaseClock) Join() time.Duration { return max(c.part(3), time.Second) }

// Watch is the time between two looks at the schema of a store that tells of no changes,
// and bounds one: a worker that must stop does so before it begins much more.
func (c LeaseClock) Watch() time.Duration { return c.part(3) }

// StepTx bounds the transaction of a step (R10): on SQLite no lease is renewed meanwhile.
func (c LeaseClock) StepTx() time.Duration { return min(5*time.Second, c.part(3)) }

// Call bounds the other calls of the store: one that hangs for longer outlives the leases
// that it is about.
func (c LeaseClock) Call() time.Duration { return time.Duration(c) }

// Finish bounds a write of ends. It hangs for longer than the shortest leases live: a
// finish that arrives late is fenced, and nothing is lost by waiting.
func (c LeaseClock) Finish() time.Duration { return max(c.Call(), 10*time.Second) }
