// Package decide chooses the next action after an attempt that did not succeed, from its report and the state of its
// task. Deciders do no I/O and read no clock and no randomness: the same input always gives the same decision. They
// are asked after a failure, a block or a failed decode, never after a success.
package decide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/goweaver/weaver/task"
)

// Input is everything a Decider may look at.
type Input struct {
	Task    task.Task // as claimed: AttemptCount excludes this attempt
	Outcome task.Outcome
	Error   task.Error // with its kind and the handler's code, if any

	Permanent  bool          // the handler marked the error as permanent
	RetryAfter time.Duration // delay requested by the handler; 0: not requested
	// IdleAttempts is the number of consecutive attempts, this one included, without a new record: no step, no child,
	// no changed input.
	IdleAttempts int

	// CanRepair reports whether a repair is possible: the worker has a Repair function for the task's type, and the
	// task has repairs left (task.Task.MaxRepairs).
	CanRepair bool

	TimeLeft time.Duration // until the task's deadline, by the store's clock; 0: no deadline
}

// Decision is the choice of a Decider. The zero value means "no opinion".
type Decision struct {
	Kind    task.DecisionKind
	Delay   time.Duration   // for a retry
	Waiting task.Waiting    // for a block: manual, empty or budget
	Output  json.RawMessage // output of the task, for a success in place of a failure, or for a decompose with JoinComplete
	Reason  task.Reason

	// Children are for a decompose: they are stored with the decision, and the task waits for them. With
	// task.JoinRerun, the default, the handler runs again after they end. With task.JoinComplete the task ends with
	// them and has Output. Only task types that the worker handles are allowed.
	Children []task.Draft
	Join     task.Join

	// DependsOn is for add_dependency: the handler runs again after this task succeeds.
	DependsOn task.ID
}

// Decider chooses the next action after an attempt that did not succeed. Implementations must be pure and safe for
// concurrent use. Default replaces an impossible decision and explains that in its reason. Examples are a repair
// without CanRepair, children of an unknown type, too many or too deep, or a task that does not exist.
type Decider interface {
	Decide(in Input) Decision
}

// Func adapts a function to a Decider.
type Func func(Input) Decision

// Decide implements Decider.
func (f Func) Decide(in Input) Decision { return f(in) }

// Chain asks deciders in turn and returns the first opinion, or Default's if no decider has an opinion.
func Chain(deciders ...Decider) Decider {
	return Func(func(in Input) Decision {
		for _, d := range deciders {
			if dec := d.Decide(in); dec.Kind != "" {
				return dec
			}
		}
		return Default{}.Decide(in)
	})
}

// Default is the policy of the task's own limits. It retries with exponential backoff until MaxAttempts and gives up
// at once on a permanent error. It repairs an input that cannot be decoded, and blocks if that is impossible or the
// handler asks for a person. It blocks for the budget after MaxNoProgress consecutive attempts without a new record.
type Default struct{}

// policy and policyVersion identify Default in stored reasons. Raise the version when the same input may lead to
// another decision.
const (
	policy        = "default"
	policyVersion = 3
)

// Decide implements Decider.
func (Default) Decide(in Input) Decision {
	done := in.Task.AttemptCount
	if task.Counts(in.Outcome, in.Error.Kind) {
		done++
	}
	reason := task.Reason{
		Policy:  policy,
		Version: policyVersion,
		Evidence: map[string]any{
			"attempt_no":    in.Task.AttemptNo,
			"attempt_count": done,
			"max_attempts":  in.Task.MaxAttempts,
			"error_kind":    string(in.Error.Kind),
		},
	}
	if in.TimeLeft > 0 {
		reason.Evidence["left"] = in.TimeLeft.Truncate(time.Millisecond).String()
	}
	decide := func(kind task.DecisionKind, delay time.Duration, change, format string, args ...any) Decision {
		reason.Text = fmt.Sprintf(format, args...)
		reason.Change = change
		return Decision{Kind: kind, Delay: delay, Reason: reason}
	}

	switch in.Outcome {
	case task.OutcomeBlocked:
		return decide(task.DecideBlock, 0, "", "the attempt needs a person: %s", in.Error.Message)
	case task.OutcomeDecodeFailed:
		if in.CanRepair {
			reason.Evidence["repair_count"], reason.Evidence["max_repairs"] = in.Task.RepairCount+1, in.Task.MaxRepairs
			return decide(task.DecideRepair, 0, "another input", "the input cannot be decoded: repair %d of %d", in.Task.RepairCount+1, in.Task.MaxRepairs)
		}
		return decide(task.DecideBlock, 0, "", "the input cannot be decoded%s; a person has to look: `weaver task repair %s --input FILE` gives it another one, `weaver task unblock %[2]s` runs it again as it is", unrepaired(&in.Task), in.Task.ID)
	}
	switch {
	case in.Permanent:
		return decide(task.DecideMarkDead, 0, "", "the error is permanent: retrying cannot help")
	case done >= in.Task.MaxAttempts:
		return decide(task.DecideMarkDead, 0, "", "attempt %d of %d failed: no attempts are left", done, in.Task.MaxAttempts)
	}
	if limit := cmp.Or(in.Task.MaxNoProgress, task.DefaultMaxNoProgress); in.IdleAttempts >= limit {
		reason.Evidence["idle_attempts"], reason.Evidence["max_no_progress"] = in.IdleAttempts, limit
		dec := decide(task.DecideBlock, 0, "", "%d consecutive attempts recorded nothing new (max_no_progress is %d): a person has to look", in.IdleAttempts, limit)
		dec.Waiting = task.WaitBudget
		return dec
	}
	delay, how := in.RetryAfter, "as the handler asked"
	if delay <= 0 {
		delay, how = Backoff(in.Task, done), "by exponential backoff"
	}
	if in.TimeLeft > 0 && delay >= in.TimeLeft {
		return decide(task.DecideMarkDead, 0, "", "the next attempt, %s from now, would start after the deadline, %s from now", round(delay), round(in.TimeLeft))
	}
	return decide(task.DecideRetry, delay, fmt.Sprintf("attempt %d after %s", done+1, round(delay)),
		"attempt %d of %d failed: retry after %s, %s", done, in.Task.MaxAttempts, round(delay), how)
}

// unrepaired explains why an input is not repaired, or returns "" if repairs do not apply.
func unrepaired(t *task.Task) string {
	if t.RepairCount == 0 || t.RepairCount < t.MaxRepairs {
		return ""
	}
	return fmt.Sprintf(", and %d of %d repairs (max_repairs) did not help", t.RepairCount, t.MaxRepairs)
}

// Backoff returns the delay after the n-th failed attempt: base · 2^(n−1), ±10 % by a hash of task and attempt,
// limited by the task's maximum backoff.
func Backoff(t task.Task, n int) time.Duration {
	base, limit := t.Backoff, t.BackoffMax
	if base <= 0 {
		base = task.DefaultBackoff
	}
	if limit <= 0 {
		limit = task.DefaultBackoffMax
	}
	delay := base
	for i := 1; i < n && delay < limit; i++ {
		delay *= 2
	}
	delay = min(delay, limit)

	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%d", t.ID, t.AttemptNo) // a hash never returns an error
	spread := float64(h.Sum64()%2001)/1000 - 1        // −1 … +1
	return min(delay+time.Duration(float64(delay)*0.1*spread), limit)
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
