package rules

import "github.com/goweaver/weaver/store"

// A task that lost two leases in a row to processes that stopped may be what
// kills them. It is quarantined (R7): a worker runs few such tasks at once,
// half as many after each further loss, and in the end it runs alone: beside no
// other task, quarantined or not. Only a loss while it was alone counts further, so that
// a task that kills its worker does not take its neighbours with it, and neither
// do processes that are killed for other reasons.

// quarantineAfter is the crash_count from which on a task is quarantined.
const quarantineAfter = 2

// Quarantined reports whether a task with this crash_count is quarantined.
func Quarantined(crashes int) bool { return crashes >= quarantineAfter }

// QuarantineLimit is how many quarantined tasks a worker with so many slots may
// run while this one is among them, after its losses in quarantine.
func QuarantineLimit(slots, losses int) int { return max(1, slots/8>>min(losses, 62)) }

// Alone reports whether a quarantined task runs as the only one of a worker with
// so many slots, after its losses in quarantine.
func Alone(slots, losses int) bool { return slots/8>>min(losses, 62) == 0 }

// Quarantine is what a worker runs, with what a claim adds.
type Quarantine struct {
	slots       int
	running     int
	quarantined int // of those running
	limit       int // the smallest limit among the quarantined ones; 0: none
	alone       bool
	passed      bool // a task that has to run alone
}

// NewQuarantine starts from what a claim request says of its worker.
func NewQuarantine(req *store.ClaimRequest) Quarantine {
	return Quarantine{
		slots: req.Slots, running: max(req.Running, req.Quarantined), quarantined: req.Quarantined, limit: req.QuarantineLimit, alone: req.Alone,
	}
}

// Closed reports whether a task runs alone, so that nothing may be claimed.
func (q *Quarantine) Closed() bool { return q.alone }

// PassedOver reports whether a task had no room that has to run alone.
func (q *Quarantine) PassedOver() bool { return q.passed }

// HasRoom reports whether a task may be claimed: no other one runs alone, and it
// is not quarantined, or neither its own limit nor that of any other one is
// reached. One that has to run alone needs a worker that runs nothing.
func (q *Quarantine) HasRoom(crashes, losses int) bool {
	switch {
	case q.alone:
		return false
	case !Quarantined(crashes):
		return true
	}
	if Alone(q.slots, losses) {
		q.passed = q.passed || q.running > 0
		return q.running == 0
	}
	own := QuarantineLimit(q.slots, losses)
	return q.quarantined < own && (q.limit == 0 || q.quarantined < q.limit)
}

// Add counts a claimed task. It returns its limit, 0 if it is not quarantined,
// and whether it runs alone.
func (q *Quarantine) Add(crashes, losses int) (limit int, alone bool) {
	q.running++
	if !Quarantined(crashes) {
		return 0, false
	}
	limit, alone = QuarantineLimit(q.slots, losses), Alone(q.slots, losses)
	q.quarantined++
	q.alone = q.alone || alone
	if q.limit == 0 || limit < q.limit {
		q.limit = limit
	}
	return limit, alone
}
