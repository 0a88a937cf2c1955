package decide

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/task"
)

// Again rebuilds what a Decider was asked with when it made a recorded decision: t is
// the task as it is now, attempts are its attempts. It reports false for a decision of
// a program that did not keep enough, and for one whose attempt is not there.
//
// What a task shows of its past is not rebuilt: Progress and UnblockInput are those of
// now.
func Again(t task.Task, attempts []task.Attempt, d *task.Decision) (Input, bool) {
	asked := d.Reason.Asked
	if asked == nil {
		return Input{}, false
	}
	t.Error = nil
	for i := range attempts {
		a := &attempts[i]
		if a.No != d.AttemptNo {
			if a.No < d.AttemptNo && a.Error != nil {
				t.Error = a.Error
			}
			continue
		}
		if a.Error == nil {
			break
		}
		t.State, t.Waiting, t.Output, t.Join = task.Running, task.WaitNone, nil, task.JoinNone
		t.AttemptNo, t.Epoch, t.LeaseID, t.LeasedBy = a.No, a.Epoch, a.LeaseID, a.Worker
		t.StartedAt, t.FinishedAt, t.UpdatedAt = a.StartedAt, time.Time{}, a.StartedAt
		t.AttemptCount, t.CrashCount, t.RepairCount, t.StepCount = asked.AttemptCount, asked.CrashCount, asked.RepairCount, asked.StepCount
		return Input{
			Task: t, Outcome: a.Outcome, Error: *a.Error,
			Permanent: asked.Permanent, RetryAfter: asked.RetryAfter, TimeLeft: asked.TimeLeft, IdleAttempts: asked.IdleAttempts, CanRepair: asked.CanRepair,
		}, true
	}
	return Input{}, false
}

// Compare asks a Decider once more and says in what its decision differs from the
// recorded one, "" if it does not: in the kind, in the pause before a retry, or in
// the number of children. A Decider without an opinion decides as Default does. Where
// the recorded decision is the default's because the Decider failed (Reason.Fallback)
// it is compared with what that Decider said.
func Compare(in Input, recorded *task.Decision, d Decider) (now Decision, differs string) {
	fellBack := recorded.Reason.Fallback != ""
	defer func() {
		if p := recover(); p != nil {
			now, differs = Decision{}, fmt.Sprintf("it panics: %v", p)
			if fellBack && recorded.Reason.Said == "" {
				differs = "" // as it did then
			}
		}
	}()
	now = Chain(d).Decide(in)
	if fellBack {
		if now.Kind == recorded.Reason.Said {
			return now, ""
		}
		return now, fmt.Sprintf("%s instead of a fallback to %s: %s", now.Kind, recorded.Kind, recorded.Reason.Fallback)
	}
	was := recorded.NextReadyAt.Sub(recorded.At)
	switch {
	case now.Kind != recorded.Kind:
		return now, fmt.Sprintf("%s instead of %s", now.Kind, recorded.Kind)
	case now.Kind == task.DecideRetry && (max(now.Delay, 0)-was).Abs() > time.Millisecond:
		return now, fmt.Sprintf("retry after %s instead of %s", round(max(now.Delay, 0)), round(was))
	case now.Kind == task.DecideDecompose && min(len(now.Children), task.MaxDecisionChildren) != len(recorded.ChildIDs):
		return now, fmt.Sprintf("%d children instead of %d", len(now.Children), len(recorded.ChildIDs))
	}
	return now, ""
}

// AtMost is d, but for a task that has had n attempts that count: where d would retry
// it, it gives up.
func AtMost(n int, d Decider) Decider {
	return Func(func(in Input) Decision {
		dec := Chain(d).Decide(in)
		done := in.Task.AttemptCount
		if task.Counts(in.Outcome, in.Error.Kind) {
			done++
		}
		if dec.Kind != task.DecideRetry || done < n {
			return dec
		}
		return Decision{Kind: task.DecideMarkDead, Reason: task.Reason{
			Policy: "at-most", Version: 1, Text: fmt.Sprintf("%d attempts failed, and no more than %d are wanted", done, n),
			Evidence: map[string]any{"attempt_count": done, "at_most": n},
		}}
	})
}
