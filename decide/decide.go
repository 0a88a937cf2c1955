// Package decide chooses what follows an attempt that did not succeed, from
// what it reported and what is known of its task. Deciders do no I/O and read
// no clock and no randomness, so that the same input always gives the same
// decision. They are asked after a failure, a block or a failed decode; never
// after a success.
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
	Task    task.Task // as it was claimed: AttemptCount does not count this attempt yet
	Outcome task.Outcome
	Error   task.Error // with its kind, and the code that the handler may have attached

	Permanent  bool          // the handler said that retrying is useless
	RetryAfter time.Duration // the handler's wish for the delay; 0: none
	// IdleAttempts is how many attempts of the task in a row, this one included, have
	// recorded nothing new: no step, no child, no other input.
	IdleAttempts int

	// CanRepair says that the decision repair can be carried out: the worker has a
	// Repair function of the task's type, and the task has repairs left
	// (task.Task.MaxRepairs).
	CanRepair bool

	TimeLeft time.Duration // to the task's deadline, by the store's clock; 0: no deadline
}

// Decision is what a Decider chose. The zero value means "no opinion".
type Decision struct {
	Kind    task.DecisionKind
	Delay   time.Duration   // retry
	Waiting task.Waiting    // block: manual, or none, or budget
	Output  json.RawMessage // succeed: the task's output, for a Decider that overrules a failure; decompose with JoinComplete
	Reason  task.Reason

	// Decompose: the task waits for these children, which are stored with the
	// decision. With task.JoinRerun, the default, its handler runs again when they
	// have ended; with task.JoinComplete the task ends with them, with Output. A
	// Decider can name the task types that its worker handles.
	Children []task.Draft
	Join     task.Join

	// Add_dependency: the handler runs again when this task has succeeded.
	DependsOn task.ID
}

// Decider chooses what follows an attempt that did not succeed.
// Implementations must be pure and safe for concurrent use. A decision that cannot
// be carried out (a repair that CanRepair rules out, children of an unknown type, too many or too deep; a task that
// does not exist) is replaced by Default's, whose reason says so.
type Decider interface {
	Decide(in Input) Decision
}

// Func lets a function be a Decider.
type Func func(Input) Decision

// Decide implements Decider.
func (f Func) Decide(in Input) Decision { return f(in) }

// Chain asks deciders in turn and takes the first opinion, or Default's when
// none has one.
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

// Default is the policy of a task's own limits: retry with exponential
// backoff until MaxAttempts, give up at once on a permanent error, repair an input
// that cannot be read, block when that cannot be done or the handler asks for a
// person, and, for the budget,
// when so many attempts in a row recorded nothing new as the task may have
// (task.Task.MaxNoProgress).
type Default struct{}

// policy and version name Default in stored reasons; raise the version when
// the same input may lead to another decision.
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
		dec := decide(task.DecideBlock, 0, "", "%d attempts in a row recorded nothing new, of %d that may (max_no_progress): a person has to look", in.IdleAttempts, limit)
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

// unrepaired says why an input is not repaired, "" if nothing repairs it here.
func unrepaired(t *task.Task) string {
	if t.RepairCount == 0 || t.RepairCount < t.MaxRepairs {
		return ""
	}
	return fmt.Sprintf(", and %d of %d repairs (max_repairs) did not help", t.RepairCount, t.MaxRepairs)
}

// Backoff returns the delay after the n-th failed attempt: base · 2^(n−1),
// ±10 % by a hash of task and attempt, at most the task's cap.
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
	_, _ = fmt.Fprintf(h, "%s/%d", t.ID, t.AttemptNo) // a hash takes every write
	spread := float64(h.Sum64()%2001)/1000 - 1        // −1 … +1
	return min(delay+time.Duration(float64(delay)*0.1*spread), limit)
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
