package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// After an outage of the store every lease looks expired, and its holders are
// about to renew it. So only a worker that the store observed without a gap for
// a whole TTL may take expired leases: it is eligible to reap (R7). A worker
// that has just joined, or whose own heartbeats were interrupted, warms up first.

// DefaultReapLimit is how many rows of each kind one reap ends at most.
const DefaultReapLimit = 1000

// ForgetAfter is after how many TTLs of silence a worker is forgotten.
const ForgetAfter = 10

// Worker is what the store has observed of a worker.
type Worker struct {
	TTL      time.Duration // of its leases
	LastSeen time.Time     // its last Join or Heartbeat
	Since    time.Time     // since when it has been seen without a gap
}

// Seen returns the worker as it is after a Join or Heartbeat at now. A gap of
// more than half of its TTL begins a new warm-up: heartbeats come every third of
// a TTL, so one is missing, and a store that was away long enough to let the
// lease of a healthy worker expire (two thirds of a TTL) shows in every worker.
// After a clock that went back nothing is known of the gap.
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

// Stall is a wait for the store's write lock, during which other workers may
// have waited to renew their leases. The zero value means that there was none.
type Stall struct {
	Waited time.Duration
	Ago    time.Duration // since its end
}

// ReaperEligibleAt returns when a worker may take expired leases at the
// earliest; if that is not after now it is eligible. w is nil for a worker that
// the store does not know.
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

// Stopped reports whether a worker whose lease expired had stopped before: it
// was silent for more than the second half of the lease. A worker that was seen
// later lost the lease for another reason: it never learned of it, or the store
// was restored. w is nil for a worker that has left or is not known: it did not
// crash.
func (w *Worker) Stopped(leaseEnd time.Time) bool {
	return w != nil && w.LastSeen.Before(leaseEnd.Add(-LeaseClock(w.TTL).Silence()))
}

// Forgettable reports whether a worker that holds nothing has been silent for so
// long that its row may go. ttl is that of the worker that asks.
func (w *Worker) Forgettable(ttl time.Duration, now time.Time) bool {
	return now.Sub(w.LastSeen) > LeaseClock(max(w.TTL, ttl)).Forget()
}

// LostLease is what is known of a lease that is taken from its worker.
type LostLease struct {
	Stopped  bool // its process is known to be dead, or had [Worker.Stopped]
	Crashes  int  // the task's crash_count
	Alone    bool // the task ran alone in its process
	Cancel   CancelRequest
	Deadline time.Time // of the task; zero: none
	Created  time.Time // when the task was enqueued

	Phase *task.UndoPhase // nil: the task is in none
	Key   bool            // it has a concurrency key
}

// Loss is the verdict on a lost lease.
type Loss struct {
	Transition
	Crash          bool // counts as a crash of the task
	QuarantineLoss bool // a loss in quarantine that is not counted as a crash
}

// ResolveLoss says what becomes of a task whose lease is taken (R7): cancelled,
// if that was asked for (failed if it used its budget up) or its deadline passed; failed
// as poison, if this crash is one too many (budget < 0: never); else ready again, before
// what was enqueued later: it was interrupted. One that crashed before, or has a
// concurrency key, waits its turn: a task that stops its workers does not keep others from
// running, and the next one of a key runs. The attempt's own error is [LeaseLostFailure].
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

// Interrupted reports whether a task is claimable again because its lease was lost: ReadyAt
// may have passed then, so that it goes before what is younger.
func (t *Transition) Interrupted() bool {
	return t.Outcome == task.OutcomeLeaseLost && t.State == task.Ready
}

// end makes the loss the end of its task.
func (l *Loss) end(state task.State, failure *task.Error) {
	l.State, l.ReadyAt, l.KeepError, l.Failure = state, time.Time{}, false, failure
}
