package rules

import "github.com/goweaver/weaver/store"

// A task that lost two consecutive leases to crashed processes may be the cause of the
// crashes. It is quarantined (R7): a worker runs few such tasks at once, and half as many
// after each further loss. In the end the task runs alone, without any other task in the
// process. Further losses count only while the task runs alone. A task that kills its worker
// therefore does not take its neighbours with it, and processes killed for other reasons do
// not count either.

// quarantineAfter is the crash_count from which on a task is quarantined.
const quarantineAfter = 2

// Quarantined reports whether a task with this crash_count is quarantined.
func Quarantined(crashes int) bool { return crashes >= quarantineAfter }

// QuarantineLimit returns the maximum number of quarantined tasks that a worker runs together
// with a task of these losses in quarantine.
func QuarantineLimit(slots, losses int) int { return max(1, slots/8>>min(losses, 62)) }

// Alone reports whether a worker with this number of slots runs a quarantined task alone,
// after these losses in quarantine.
func Alone(slots, losses int) bool { return slots/8>>min(losses, 62) == 0 }

// Quarantine tracks the running tasks of a worker during a claim.
type Quarantine struct {
	slots       int
	running     int
	quarantined int // of the running tasks
	limit       int // the smallest limit of the quarantined tasks, or 0
	alone       bool
	passed      bool // a task that must run alone was passed over
}

// NewQuarantine starts from the worker's state in a claim request.
func NewQuarantine(req *store.ClaimRequest) Quarantine {
	return Quarantine{
		slots: req.Slots, running: max(req.Running, req.Quarantined), quarantined: req.Quarantined, limit: req.QuarantineLimit, alone: req.Alone,
	}
}

// Closed reports whether a task runs alone, so that nothing may be claimed.
func (q *Quarantine) Closed() bool { return q.alone }

// PassedOver reports whether a task that must run alone had no room.
func (q *Quarantine) PassedOver() bool { return q.passed }

// HasRoom reports whether a task may be claimed. No other task may run alone. A quarantined
// task must also fit its own limit and the limit of every other quarantined task. A task that
// must run alone needs an idle worker.
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

// Add counts a claimed task. It returns the task's limit, 0 if it is not quarantined, and
// whether it runs alone.
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
