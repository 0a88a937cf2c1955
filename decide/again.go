package decide

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/task"
)

// Again rebuilds the input of a recorded decision. t is the current task, attempts are its attempts. It returns false
// if the decision was recorded by a program that did not keep enough, or if its attempt is missing.
//
// Progress and UnblockInput are the current values, because a task does not keep earlier ones.
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

// Compare asks a Decider again and describes the difference from the recorded decision, or returns "". It compares
// the kind, the delay of a retry and the number of children. A Decider without an opinion decides as Default does. If
// the recorded decision is a fallback (Reason.Fallback), Compare uses the kind that the Decider chose at that time.
func Compare(in Input, recorded *task.Decision, d Decider) (now Decision, differs string) {
	fellBack := recorded.Reason.Fallback != ""
	defer func() {
		if p := recover(); p != nil {
			now, differs = Decision{}, fmt.Sprintf("it panics: %v", p)
			if fellBack && recorded.Reason.Said == "" {
				differs = "" // same as the recorded panic
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

// AtMost returns a Decider that decides as d but gives up instead of retrying after n counted attempts.
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
