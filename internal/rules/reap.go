package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// After an outage of the store every lease looks expired, and its holders are about to renew
// it. Only a worker that the store observed without a gap for a whole TTL may take expired
// leases: it is eligible to reap (R7). A worker that has just joined, or whose heartbeats were
// interrupted, warms up first.

// DefaultReapLimit is the maximum number of rows of each kind that one reap ends.
const DefaultReapLimit = 1000

// ForgetAfter is the number of TTLs of silence after which a worker is deleted.
const ForgetAfter = 10

// Worker is the store's observation of a worker.
type Worker struct {
	TTL      time.Duration // of its leases
	LastSeen time.Time     // its last Join or Heartbeat
	Since    time.Time     // begin of its observation without a gap
}

// Seen returns the worker after a Join or Heartbeat at now. A gap of more than half of its TTL
// begins a new warm-up. Heartbeats come every third of a TTL, so such a gap misses one. A
// store that was away long enough for a healthy worker's lease to expire (two thirds of a TTL)
// shows as a gap in every worker. After a clock step backwards the gap is unknown.
func (w *Worker) Seen(ttl time.Duration, now time.Time) Worker {
	seen := Worker{TTL: w.TTL, LastSeen: now, Since: w.Since}
	if w.interrupted(ttl, now) {
		seen.Since = now
	}
	return seen
}

func (w *Worker) interrupted(ttl time.Duration, now time.Time) bool {
	gap := now.Sub(w.LastSeen)
	return gap > LeaseClock(ttl).Gap() || gap < 0
}

// Stall is a wait for the store's write lock, during which other workers may have waited to
// renew their leases. The zero value means no wait.
type Stall struct {
	Waited time.Duration
	Ago    time.Duration // since its end
}

// ReaperEligibleAt returns the earliest instant at which a worker may take expired leases. The
// worker is eligible if that is not after now. w is nil for a worker that the store does not
// know.
func ReaperEligibleAt(w *Worker, ttl time.Duration, stall Stall, now time.Time) time.Time {
	clock := LeaseClock(ttl)
	at := now.Add(clock.WarmUp())
	if w != nil && !w.interrupted(ttl, now) {
		at = w.Since.Add(clock.WarmUp())
	}
	if stall.Waited > clock.Stall() {
		if after := now.Add(clock.WarmUp() - stall.Ago); after.After(at) {
			at = after
		}
	}
	return at
}

// Stopped reports whether a worker had stopped before its lease expired: it was silent for
// more than the second half of the lease. A worker seen later lost the lease for another
// reason: it never learned of the lease, or the store was restored. w is nil for a worker that
// left or is unknown, which counts as not crashed.
func (w *Worker) Stopped(leaseEnd time.Time) bool {
	return w != nil && w.LastSeen.Before(leaseEnd.Add(-LeaseClock(w.TTL).Silence()))
}

// Forgettable reports whether a worker without leases has been silent long enough to delete
// its row. ttl is the TTL of the reaping worker.
func (w *Worker) Forgettable(ttl time.Duration, now time.Time) bool {
	return now.Sub(w.LastSeen) > LeaseClock(max(w.TTL, ttl)).Forget()
}

// LostLease holds the facts about a lease that is taken from its worker.
type LostLease struct {
	Stopped  bool // its process is known to be dead, or had [Worker.Stopped]
	Crashes  int  // the task's crash_count
	Alone    bool // the task ran alone in its process
	Cancel   CancelRequest
	Deadline time.Time // of the task; zero if it has no deadline
	Created  time.Time // enqueue time of the task

	Phase *task.UndoPhase // nil if the task is not being undone
	Key   bool            // it has a concurrency key
}

// Loss is the verdict on a lost lease.
type Loss struct {
	Transition
	Crash          bool // counts as a crash of the task
	QuarantineLoss bool // a loss in quarantine that does not count as a crash
}

// ResolveLoss returns the transition of a task whose lease is taken (R7). The task is
// cancelled if a cancel was requested (failed if it used up its budget) or its deadline
// passed. It fails as poison if this crash exceeds the budget (budget < 0: no limit).
// Otherwise it is ready again, ahead of tasks enqueued later, because it was interrupted. A
// task that crashed before, or has a concurrency key, waits its turn. This keeps a task
// that stops its workers from blocking others, and lets the next task of its key run. The attempt's own error
// is [LeaseLostFailure].
func ResolveLoss(l *LostLease, budget int, now time.Time) Loss {
	if l.Phase != nil {
		return l.loseUndo(budget, now)
	}
	loss := Loss{Transition: Transition{State: task.Ready, ReadyAt: now, Outcome: task.OutcomeLeaseLost, KeepError: true}}
	if l.Crashes == 0 && !l.Key && !l.Created.IsZero() && l.Created.Before(now) {
		loss.ReadyAt = l.Created
	}
	switch {
	case l.Cancel.Kind != "":
		state := task.Cancelled
		if l.Cancel.Kind == task.KindBudget {
			state = task.Failed
		}
		loss.end(state, CancelFailure(l.Cancel, l.Deadline))
	case Past(l.Deadline, now):
		loss.end(task.Cancelled, DeadlineFailure(l.Deadline))
	case l.Stopped && Quarantined(l.Crashes) && !l.Alone:
		loss.QuarantineLoss = true
	case l.Stopped:
		loss.Crash = true
		if budget >= 0 && l.Crashes+1 >= budget {
			loss.end(task.Failed, PoisonFailure(l.Crashes+1))
		}
	}
	return loss
}

// Interrupted reports whether a task is claimable again because its lease was lost. Its
// ReadyAt may then lie in the past, so that it comes before younger tasks.
func (t *Transition) Interrupted() bool {
	return t.Outcome == task.OutcomeLeaseLost && t.State == task.Ready
}

// end makes the loss the end of its task.
func (l *Loss) end(state task.State, failure *task.Error) {
	l.State, l.ReadyAt, l.KeepError, l.Failure = state, time.Time{}, false, failure
}
