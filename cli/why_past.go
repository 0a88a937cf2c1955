package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// happening is one thing of a task's past: an attempt with what was decided
// after it, or an operator's verb.
type happening struct {
	At       time.Time         `json:"at"`
	Attempt  *task.Attempt     `json:"attempt,omitempty"`
	Decision *task.Decision    `json:"decision,omitempty"`
	Audit    *store.AuditEntry `json:"audit,omitempty"`
	Sentence string            `json:"sentence"`
}

// past tells what happened, in order.
func (e *explainer) past(h *store.History) []happening {
	var past []happening
	for i := range h.Attempts {
		a := &h.Attempts[i]
		ha := happening{At: a.StartedAt, Attempt: a}
		if k := slices.IndexFunc(h.Decisions, func(d task.Decision) bool { return d.AttemptNo == a.No }); k >= 0 {
			ha.Decision = &h.Decisions[k]
		}
		ha.Sentence = e.attempt(a, ha.Decision, h.Steps)
		past = append(past, ha)
	}
	for i := range h.Audit {
		entry := &h.Audit[i]
		past = append(past, happening{At: entry.At, Audit: entry, Sentence: e.clock.operated(entry)})
	}
	slices.SortStableFunc(past, func(a, b happening) int { return a.At.Compare(b.At) })
	return past
}

func (e *explainer) attempt(a *task.Attempt, d *task.Decision, steps []task.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Attempt %d began %s", a.No, e.clock.when(a.StartedAt))
	if a.Worker != "" {
		fmt.Fprintf(&b, " on %s", oneLine(a.Worker, maxNote))
	}
	if a.FinishedAt.IsZero() {
		b.WriteString(" and is running" + ranSteps(a) + ".")
		return b.String()
	}
	b.WriteString(text.Stop(fmt.Sprintf(" and %s after %s%s%s", outcome(a), took(a.StartedAt, a.FinishedAt), reasonOf(a), ranSteps(a))))
	if n := failedTries(a, steps); n > 1 {
		fmt.Fprintf(&b, " %d tries of its steps failed.", n)
	}
	if d != nil {
		b.WriteString(" " + e.decision(d))
	}
	return b.String()
}

// outcome is the verb for how an attempt ended.
func outcome(a *task.Attempt) string {
	switch a.Outcome {
	case task.OutcomeSuccess:
		return "succeeded"
	case task.OutcomeFailure:
		if a.Error != nil && a.Error.Kind == task.KindInternal {
			return "was stopped by an error of the engine itself, which costs no attempt,"
		}
		return "failed"
	case task.OutcomeBlocked:
		return "asked for a person"
	case task.OutcomeSuspended:
		return "left its worker to wait"
	case task.OutcomeCancelled:
		return "was cancelled"
	case task.OutcomeDecodeFailed:
		return "could not read its input"
	case task.OutcomeReleased:
		return "was given back because its worker stopped, at no cost,"
	case task.OutcomeLeaseLost:
		return "lost its lease because its worker died or was cut off"
	case task.OutcomeDecompose:
		return "split itself into tasks"
	case task.OutcomeAddDependency:
		return "asked for another task first"
	}
	return "ended (" + string(a.Outcome) + ")"
}

// reasonOf is the error of an attempt, unless its verb says all there is.
func reasonOf(a *task.Attempt) string {
	if a.Error == nil || a.Outcome == task.OutcomeLeaseLost {
		return ""
	}
	if a.Outcome == task.OutcomeFailure || a.Error.Step != "" {
		return ": " + failure(a.Error, maxMessage)
	}
	return ": " + oneLine(a.Error.Message, maxMessage)
}

func ranSteps(a *task.Attempt) string {
	if len(a.StepsRun) == 0 {
		return ""
	}
	return "; it ran " + names("step", a.StepsRun)
}

func failedTries(a *task.Attempt, steps []task.Step) int {
	n := 0
	for _, st := range steps {
		if st.AttemptNo == a.No && st.State == task.StepFailed {
			n++
		}
	}
	return n
}

// decision is what was chosen after an attempt, and why.
func (e *explainer) decision(d *task.Decision) string {
	said := ""
	switch d.Kind {
	case task.DecideRetry:
		said = "It was decided to retry"
		if !d.NextReadyAt.IsZero() {
			said += ", due " + e.clock.when(d.NextReadyAt)
		}
	case task.DecideMarkDead:
		said = "It was decided to give up"
	case task.DecideBlock:
		said = "It was decided to wait for a person"
	case task.DecideSucceed:
		said = "It was decided that the task succeeded all the same"
	default:
		said = "It was decided: " + string(d.Kind)
	}
	if d.Reason.Text != "" {
		said += ": " + oneLine(d.Reason.Text, maxMessage)
	}
	if d.Reason.Policy != "" && d.Reason.Policy != "default" {
		said += fmt.Sprintf(" (by the policy %q)", d.Reason.Policy)
	}
	return text.Stop(said)
}

// verbsDone is how the audited verbs read in the past tense.
var verbsDone = map[string]string{
	"cancel": "cancelled it", "force_cancel": "cancelled it by force", "retry": "retried it", "unblock": "unblocked it",
	"cancel_job": "cancelled its job", "pause": "paused its queue", "resume": "resumed its queue",
}

// operated is an operator's verb as a sentence.
func (c clock) operated(a *store.AuditEntry) string {
	who := a.Actor
	if who == "" {
		who = "somebody"
	}
	did := verbsDone[a.Verb]
	if did == "" {
		did = "did " + a.Verb
	}
	said := fmt.Sprintf("%s %s %s", oneLine(who, maxNote), did, c.when(a.At))
	if a.Reason != "" {
		said += ": " + oneLine(a.Reason, maxMessage)
	}
	return text.Stop(said)
}

// maxNames is how many names a sentence lists.
const maxNames = 8

// names lists things by name: `step "a"`, `steps "a", "b" and 3 more`.
func names(noun string, list []string) string {
	if len(list) > 1 {
		noun += "s"
	}
	return noun + " " + quoted(list)
}

func quoted(list []string) string {
	parts := make([]string, 0, maxNames)
	for _, n := range list[:min(len(list), maxNames)] {
		parts = append(parts, fmt.Sprintf("%q", oneLine(n, maxNote)))
	}
	said := strings.Join(parts, ", ")
	if more := len(list) - len(parts); more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}
