package rules

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task that ends without success and has something to undo waits for the undo first. The
// verdict is kept in [task.UndoPhase], cleanups and undos run in attempts of their own, and
// the phase ends with the verdict (ADR 0049). Every end of a task passes
// [Transition.BeginUndo].

// Undoable holds the facts that decide whether the end of a task waits for an undo phase.
type Undoable struct {
	Open     int             // steps with an undo that began and are not undone
	Began    bool            // the task has run since it was enqueued or revived
	CleansUp bool            // task.New.CleanupWhenCancelled
	Unclean  bool            // the attempt reports that a cleanup failed, or could not run
	Unaware  bool            // see [Transition.Unaware]
	Phase    *task.UndoPhase // nil: no phase has begun
	Key      bool            // the task runs, with a concurrency key
	Hold     task.LeaseID    // a revoked attempt that may run until notBefore
	Forced   bool            // by a forced cancel
}

// BeginUndo turns the end of a task into the begin of its undo phase if there is anything to
// undo, and reports whether it did. No attempt of the phase begins before notBefore.
func (t *Transition) BeginUndo(u *Undoable, notBefore, now time.Time) bool {
	ends := t.State == task.Failed || t.State == task.Cancelled
	if !ends || u.Phase != nil || u.Open == 0 && !u.Unclean && !(u.CleansUp && u.Began && u.Unaware) {
		return false
	}
	t.Undo = &task.UndoPhase{EndsAs: t.State, Error: t.Failure, Began: now, Forced: u.Forced, HoldsKey: u.Key}
	if notBefore.After(now) {
		t.Undo.Hold, t.Undo.NotBefore = u.Hold, notBefore
	}
	t.SetUndo, t.Begins, t.State, t.Waiting = true, true, task.Pending, task.WaitUndo
	t.ReadyAt, t.SetReadyAt, t.Output = later(now, notBefore), false, nil
	t.Join, t.JoinOutput, t.Awaited = task.JoinNone, nil, false
	return true
}

// undoRetryAfter is the default pause after an attempt of the phase.
const undoRetryAfter = time.Second

// checkUndo refuses a malformed finish of an undo phase. No engine reports one.
func checkUndo(f *store.Finish) error {
	switch f.EndsAs {
	case task.Failed, task.Cancelled, task.Succeeded:
	default:
		return fmt.Errorf("finish task %v: an undo phase cannot end %q", f.Lease.Task, f.EndsAs)
	}
	switch f.Outcome {
	case task.OutcomeSuccess, task.OutcomeUndone:
		return nil
	case task.OutcomeReleased:
		return checkReleased(f)
	case task.OutcomeSuspended, task.OutcomeBlocked:
		if f.Waiting == task.WaitUndo && (f.Outcome == task.OutcomeSuspended || f.Error != nil) {
			return nil
		}
	case task.OutcomeUndoFailed:
		if f.Error != nil && (f.Delay >= 0 || f.Error.Kind == task.KindUndoFailed) {
			return nil
		}
	}
	return fmt.Errorf("finish task %v: outcome %q, waiting for %q, cannot be reported in its undo phase", f.Lease.Task, f.Outcome, f.Waiting)
}

// ResolveUndo is [ResolveFinish] for an attempt of an undo phase. open is the number of steps
// still to be undone. key reports that the task has a concurrency key. The attempt does not count
// against MaxAttempts. The task keeps the error with which it ends.
func ResolveUndo(f *store.Finish, p *task.UndoPhase, open int, key bool, now time.Time) Transition {
	t := Transition{Outcome: f.Outcome, Failure: f.Error, KeepError: true, Uncounted: true, SetUndo: true, Undo: p.Clone()}
	t.Undo.HoldsKey = key
	again := func(after time.Duration) {
		t.State, t.Waiting, t.ReadyAt = task.Pending, task.WaitUndo, later(Instant(now.Add(max(0, after))), p.NotBefore)
	}
	over := open == 0 && f.EndsAs == p.EndsAs
	switch {
	case f.Outcome == task.OutcomeSuccess && over && p.EndsAs == task.Cancelled:
		return Transition{State: task.Succeeded, Outcome: f.Outcome, Output: f.Output, ResetCrashes: true, Uncounted: true, SetUndo: true}
	case f.Outcome == task.OutcomeSuccess && over && p.Runs():
		return Transition{State: task.Succeeded, Outcome: task.OutcomeUndone, Output: f.Output, ResetCrashes: true, Uncounted: true, SetUndo: true}
	case (f.Outcome == task.OutcomeSuccess || f.Outcome == task.OutcomeUndone) && over:
		t.State, t.Outcome, t.Failure, t.Undo, t.Verdict = p.EndsAs, task.OutcomeUndone, nil, nil, p.Error
	case f.Outcome == task.OutcomeSuccess, f.Outcome == task.OutcomeUndone:
		t.Outcome = task.OutcomeUndoFailed
		t.Failure = &task.Error{Kind: task.KindInternal, Message: fmt.Sprintf("%d steps are to be undone, and the task is to end %s, not %s", open, p.EndsAs, f.EndsAs)}
		again(undoRetryAfter)
	case f.Outcome == task.OutcomeUndoFailed && f.Delay < 0:
		t.giveUp(f.Error)
	case f.Outcome == task.OutcomeBlocked:
		t.State, t.Waiting, t.KeepError, t.Undo.HoldsKey = task.Blocked, task.WaitUndo, false, false
	case f.Outcome == task.OutcomeReleased:
		t.RaiseEpoch = true
		again(f.Delay)
	case f.Outcome == task.OutcomeUndoFailed, f.Outcome == task.OutcomeSuspended:
		again(f.Delay)
	default: // of a program that did not know of the phase; the attempt does not count
		if t.Outcome = task.OutcomeUndoFailed; t.Failure == nil {
			t.Failure = &task.Error{Kind: task.KindInternal, Message: fmt.Sprintf("the attempt ended %q, as if its task were not being undone", f.Outcome)}
		}
		again(max(f.Delay, undoRetryAfter))
	}
	return t
}

// ResumeUndo returns the transition of a task that is unblocked in its undo phase, or whose
// undo an operator retries. The task shows its final error again, and earlier tries do not
// count any more.
func ResumeUndo(p *task.UndoPhase, attemptNo int, now time.Time) Transition {
	t := Transition{State: task.Pending, Waiting: task.WaitUndo, Failure: p.Error, ReadyAt: later(now, p.NotBefore), SetUndo: true, Undo: p.Clone()}
	t.Undo.Since, t.Undo.Resumed, t.Undo.Crashes, t.Undo.GaveUp, t.Undo.Abandoned = attemptNo, now, 0, false, false
	return t
}

// Holds reports whether the end of a revoked lease delays the attempts of an undo phase,
// because its handler may still run.
func Holds(p *task.UndoPhase, lease task.LeaseID, now time.Time) bool {
	return p != nil && p.Hold == lease && p.NotBefore.After(now)
}

// FreeHold returns the transition of a task whose undo waited for a revoked lease, once the
// lease's process is proven dead.
func FreeHold(p *task.UndoPhase, now time.Time) Transition {
	t := Transition{State: task.Pending, Waiting: task.WaitUndo, Failure: p.Error, ReadyAt: now, SetUndo: true, Undo: p.Clone()}
	t.Undo.Hold, t.Undo.NotBefore = task.LeaseID{}, time.Time{}
	return t
}

// giveUp ends the task with the failure of its undo phase.
func (t *Transition) giveUp(failure *task.Error) {
	t.State, t.Waiting, t.ReadyAt, t.KeepError, t.Failure = task.Failed, task.WaitNone, time.Time{}, false, failure
	t.Undo.GaveUp, t.Undo.HoldsKey = true, false
}

// loseUndo is [ResolveLoss] for an attempt of an undo phase, which has its own crash count.
func (l *LostLease) loseUndo(budget int, now time.Time) Loss {
	loss := Loss{Transition: Transition{
		State: task.Pending, Waiting: task.WaitUndo, ReadyAt: later(now, l.Phase.NotBefore), Outcome: task.OutcomeLeaseLost, KeepError: true,
		SetUndo: true, Undo: l.Phase.Clone(),
	}}
	loss.Undo.HoldsKey = l.Key
	switch {
	case !l.Stopped:
	case Quarantined(max(l.Crashes, l.Phase.Crashes)) && !l.Alone:
		loss.QuarantineLoss = true
	default:
		loss.Crash = true
		loss.Undo.Crashes++
		if n := loss.Undo.Crashes; budget >= 0 && n >= budget {
			loss.giveUp(UndoLostFailure(n, l.Phase))
		}
	}
	return loss
}

// CrashesOf returns the crash count that decides about quarantine. The attempts of an undo
// phase are quarantined if the task was.
func CrashesOf(crashes int, p *task.UndoPhase) int {
	if p == nil {
		return crashes
	}
	return max(crashes, p.Crashes)
}

// UndoRetry configures the retries of a failed cleanup or undo. Zero fields take their
// defaults.
type UndoRetry struct {
	For        time.Duration // measured from the first failed try; DefaultUndoFor
	Base, Most time.Duration // first and longest pause; 1 s and 1 min
}

// DefaultUndoFor is the default time for which a failed undo is retried.
const DefaultUndoFor = 24 * time.Hour

// UndoDelay returns the pause after the last of the failed tries of one cleanup or undo in one
// round. The pause doubles with each attempt. giveUp reports that the retry time is over.
// Tries of attempts up to since do not count.
func UndoDelay(tries []task.Step, r UndoRetry, since int, now time.Time) (delay time.Duration, giveUp bool) {
	limit, base, most := orDefault(r.For, DefaultUndoFor), orDefault(r.Base, time.Second), orDefault(r.Most, time.Minute)
	var first time.Time
	attempts := map[int]bool{}
	h := fnv.New32a()
	for i := range tries {
		s := &tries[i]
		if s.State != task.StepFailed || s.AttemptNo <= since {
			continue
		}
		if first.IsZero() || s.StartedAt.Before(first) {
			first = s.StartedAt
		}
		if !attempts[s.AttemptNo] {
			attempts[s.AttemptNo] = true
			_, _ = h.Write(append(s.TaskID[:], byte(s.AttemptNo), byte(s.AttemptNo>>8)))
		}
	}
	delay = base
	for n := 1; n < len(attempts) && delay < most; n++ {
		delay *= 2
	}
	delay = min(delay, most)
	delay += delay * time.Duration(int(h.Sum32()%201)-100) / 1000 // ± 10 %
	return delay, !first.IsZero() && now.Sub(first) >= limit
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// GivenUp describes an undo phase that is given up.
type GivenUp struct {
	Step    string // the failed cleanup, or the step whose undo failed; "" if the task itself is an undo
	Cleanup bool
	Tries   int
	Took    time.Duration // since the first try
	Last    *task.Error   // of the last try
	Open    []task.Step   // steps left to undo, in their undo order
	Phase   *task.UndoPhase
}

// UndoFailure returns the failure of a task whose undo phase is given up. It names each step
// that stands.
func UndoFailure(g *GivenUp) *task.Error {
	tries := "1 try"
	if g.Tries != 1 {
		tries = fmt.Sprintf("%d tries", g.Tries)
	}
	tried := fmt.Sprintf("failed after %s in %v: %s", tries, g.Took.Round(time.Second), g.Last.Message)
	var parts []string
	if g.Step == "" { // the task is an undo
		parts = append(parts, "it "+tried)
	}
	if g.Cleanup {
		parts = append(parts, fmt.Sprintf("cleanup %q %s", g.Step, tried))
	}
	for i := range g.Open {
		s := &g.Open[i]
		how, what := "done", "not undone"
		if s.State != task.StepCompleted || s.Error != nil {
			how = "its end is not on record"
		}
		if s.Name == g.Step && !g.Cleanup {
			what = "its undo " + tried
		}
		parts = append(parts, fmt.Sprintf("step %q (%s): %s", s.Name, how, what))
	}
	if len(parts) == 0 {
		parts = append(parts, tried)
	}
	return undoFailed("undo given up: "+strings.Join(parts, "; "), g.Last, g.Phase)
}

// UndoLostFailure is [UndoFailure] after this number of consecutive lost leases.
func UndoLostFailure(n int, p *task.UndoPhase) *task.Error {
	return undoFailed(fmt.Sprintf("undo given up: it lost %d leases in a row to processes that stopped", n), nil, p)
}

func undoFailed(text string, last *task.Error, p *task.UndoPhase) *task.Error {
	failure := &task.Error{Kind: task.KindUndoFailed}
	if last != nil {
		failure.Code, failure.Step = last.Code, last.Step
	}
	if p.Error != nil {
		text += fmt.Sprintf("; the task had ended %s: %s", p.EndsAs, p.Error.Message)
	}
	failure.Message = text
	return failure
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
