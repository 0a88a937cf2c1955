package rules_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
)

// The phases of a lease have a safe order for every TTL.
func TestLeaseClock(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{time.Second, 7 * time.Second, 30 * time.Second, time.Hour} {
		c := rules.LeaseClock(ttl)
		for what, ok := range map[string]bool{
			"a renewal that hangs is followed by another one while the lease is valid":    c.Heartbeat()+c.HeartbeatCall()+c.HeartbeatAgain() < c.Validity(),
			"a lease is not relied on when it may be taken":                               c.Validity() < ttl,
			"a session is relied on no longer than a lease":                               c.SessionGrace() < c.Validity(),
			"heartbeats that are not lost leave no gap":                                   c.Heartbeat() < c.Gap(),
			"a heartbeat that is lost leaves a gap":                                       2*c.Heartbeat() > c.Gap(),
			"an outage that lets a lease expire, renewed every third of it, leaves a gap": ttl-c.Heartbeat() > c.Gap(),
			"a warm-up is as long as every lease that seems to have expired":              c.WarmUp() >= ttl && c.WarmUpLimit() > c.WarmUp(),
			"a worker that renewed its lease in time has not stopped":                     c.Silence() > c.Heartbeat(),
			"a wait for the lock of a heartbeat is not a stall":                           c.Stall() <= c.Gap(),
			"a transaction of a step leaves time for a renewal":                           c.StepTx()+c.HeartbeatCall() < c.Validity(),
			"looks come before the next leases end":                                       c.Reap()+c.ReapJitter() < ttl,
			"a worker is forgotten long after its leases":                                 c.Forget() > 2*ttl,
		} {
			if !ok {
				t.Errorf("with a TTL of %v it does not hold that %s", ttl, what)
			}
		}
	}
}
