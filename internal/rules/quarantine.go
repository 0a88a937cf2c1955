package rules

import "github.com/goweaver/weaver/store"

// A task that lost two leases in a row to processes that stopped may be what
// kills them. It is quarantined (R7): a worker runs few such tasks at once,
// fewer with each further loss, down to one. Only a loss while a task was the
// only quarantined one of its worker counts further, so that a task that kills
// its worker does not take its neighbours with it.

// quarantineAfter is the crash_count from which on a task is quarantined.
const quarantineAfter = 2

// Quarantined reports whether a task with this crash_count is quarantined.
func Quarantined(crashes int) bool { return crashes >= quarantineAfter }

// QuarantineLimit is how many quarantined tasks a worker with so many slots may
// run while this one is among them, after its losses in quarantine.
func QuarantineLimit(slots, losses int) int { return max(1, slots/8>>min(losses, 62)) }

// Isolated reports whether a task with this limit runs as the only quarantined
// one of its worker.
func Isolated(limit int) bool { return limit == 1 }

// Quarantine is what a worker runs of quarantined tasks, with what a claim adds.
type Quarantine struct {
	slots   int
	running int
	limit   int // the smallest limit among those; 0: none
}

// NewQuarantine starts from what a claim request says of its worker.
func NewQuarantine(req *store.ClaimRequest) Quarantine {
	return Quarantine{slots: req.Slots, running: req.Quarantined, limit: req.QuarantineLimit}
}

// HasRoom reports whether a task may be claimed: it is not quarantined, or
// neither its own limit nor that of any other one is reached.
func (q *Quarantine) HasRoom(crashes, losses int) bool {
	if !Quarantined(crashes) {
		return true
	}
	return q.running < QuarantineLimit(q.slots, losses) && (q.limit == 0 || q.running < q.limit)
}

// Add counts a claimed task and returns its limit, 0 if it is not quarantined.
func (q *Quarantine) Add(crashes, losses int) (limit int) {
	if !Quarantined(crashes) {
		return 0
	}
	limit = QuarantineLimit(q.slots, losses)
	q.running++
	if q.limit == 0 || limit < q.limit {
		q.limit = limit
	}
	return limit
}
