package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Happening is one event in a task's past: an attempt with the decision after it, or an operator's command.
type Happening struct {
	At       time.Time         `json:"at"`
	Attempt  *task.Attempt     `json:"attempt,omitempty"`
	Decision *task.Decision    `json:"decision,omitempty"`
	Audit    *store.AuditEntry `json:"audit,omitempty"`
	Sentence string            `json:"sentence"`
}

// Past lists the past of a task in time order. The result refers to h.
func (c Clock) Past(h *store.History) []Happening {
	var past []Happening
	for i := range h.Attempts {
		a := &h.Attempts[i]
		ha := Happening{At: a.StartedAt, Attempt: a}
		if k := slices.IndexFunc(h.Decisions, func(d task.Decision) bool { return d.AttemptNo == a.No }); k >= 0 {
			ha.Decision = &h.Decisions[k]
		}
		ha.Sentence = c.Attempt(a, ha.Decision, h.Steps)
		past = append(past, ha)
	}
	for i := range h.Audit {
		entry := &h.Audit[i]
		past = append(past, Happening{At: entry.At, Audit: entry, Sentence: c.Operated(entry)})
	}
	slices.SortStableFunc(past, func(a, b Happening) int { return a.At.Compare(b.At) })
	return past
}

// Earlier counts happenings that are not listed one by one: "Before that: 4 attempts (4 suspended)".
func Earlier(past []Happening) string {
	counts := make(map[task.Outcome]int)
	var order []task.Outcome
	commands := 0
	for _, h := range past {
		if h.Attempt == nil {
			commands++
			continue
		}
		if counts[h.Attempt.Outcome]++; counts[h.Attempt.Outcome] == 1 {
			order = append(order, h.Attempt.Outcome)
		}
	}
	var parts []string
	for _, o := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[o], o))
	}
	line := fmt.Sprintf("Before that: %s (%s)", text.Plural(len(past)-commands, "attempt"), strings.Join(parts, ", "))
	if commands > 0 {
		line += fmt.Sprintf(" and %s of operators", text.Plural(commands, "command"))
	}
	return line
}

// Attempt describes one attempt: its worker, its outcome, and the decision after it. d may be nil; steps are the
// steps of the task.
func (c Clock) Attempt(a *task.Attempt, d *task.Decision, steps []task.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Attempt %d began %s", a.No, c.When(a.StartedAt))
	if a.Worker != "" {
		fmt.Fprintf(&b, " on %s", text.OneLine(a.Worker, MaxNote))
	}
	if routed := Routed(a); routed != "" {
		fmt.Fprintf(&b, " with the handler %s", routed)
	}
	if a.FinishedAt.IsZero() {
		b.WriteString(" and is running" + ranSteps(a, steps) + ".")
		return b.String()
	}
	b.WriteString(text.Stop(fmt.Sprintf(" and %s after %s%s%s", outcome(a), text.Took(a.FinishedAt.Sub(a.StartedAt)), reasonOf(a), ranSteps(a, steps))))
	if n := failedTries(a, steps); n > 1 {
		fmt.Fprintf(&b, " %d tries of its steps failed.", n)
	}
	if d != nil {
		d := *d
		if a.Error != nil { // the line above has the error
			d.Reason.Text = strings.TrimSuffix(d.Reason.Text, ": "+a.Error.Message)
		}
		b.WriteString(" " + c.Decision(&d))
	}
	return b.String()
}

// Routed returns the handler that a router chose for an attempt, with the reason; "" if there was no choice.
func Routed(a *task.Attempt) string {
	if a.Handler == "" && a.RouteReason == "" {
		return ""
	}
	said := "without a name"
	if a.Handler != "" {
		said = text.OneLine(a.Handler, MaxNote)
	}
	if a.RouteReason != "" {
		said += " (" + text.OneLine(a.RouteReason, MaxNote) + ")"
	}
	return said
}

// outcome returns the verb for the outcome of an attempt.
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
		if a.Error != nil {
			return "was released at no cost, because its worker could not run it,"
		}
		return "was given back because its worker stopped, at no cost,"
	case task.OutcomeLeaseLost:
		return "was interrupted, because its worker died or was cut off,"
	case task.OutcomeDecompose:
		return "split itself into tasks"
	case task.OutcomeAddDependency:
		return "asked for another task first"
	case task.OutcomeUndone:
		return "undid what it had to"
	case task.OutcomeUndoFailed:
		return "could not undo all"
	}
	return "ended (" + string(a.Outcome) + ")"
}

// reasonOf returns the error of an attempt, unless the verb of its outcome already states it.
func reasonOf(a *task.Attempt) string {
	if a.Error == nil || a.Outcome == task.OutcomeLeaseLost {
		return ""
	}
	if a.Outcome == task.OutcomeFailure || a.Error.Step != "" {
		return ": " + Failure(a.Error, MaxMessage)
	}
	return ": " + text.OneLine(a.Error.Message, MaxMessage)
}

// ranSteps names the steps that an attempt completed and those that it only tried.
func ranSteps(a *task.Attempt, steps []task.Step) string {
	var ran, tried, undone, standing []string
	for i := range slices.Backward(steps) { // approximately the order in which they were undone
		switch s := &steps[i]; {
		case s.Kind != task.KindUndo || s.AttemptNo != a.No:
		case s.State == task.StepCompleted:
			undone = append(undone, s.Name)
		default:
			standing = append(standing, s.Name)
		}
	}
	undid := ""
	if len(undone) > 0 {
		undid = "; it undid " + named("step", undone)
	}
	if len(standing) > 0 {
		undid += "; it could not undo " + named("step", standing)
	}
	for _, name := range a.StepsRun {
		switch {
		case slices.Contains(ran, name) || slices.Contains(tried, name): // name each step once per attempt
		case completedIn(a, name, steps):
			ran = append(ran, name)
		default:
			tried = append(tried, name)
		}
	}
	switch {
	case len(ran) > 0 && len(tried) > 0:
		return "; it ran " + named("step", ran) + " and tried " + named("step", tried) + undid
	case len(ran) > 0:
		return "; it ran " + named("step", ran) + undid
	case len(tried) > 0:
		return "; it tried " + named("step", tried) + undid
	}
	return undid
}

// completedIn reports whether an attempt recorded a value of a step. A step has no value if it failed, recorded its
// error, or was interrupted by the end of its attempt.
func completedIn(a *task.Attempt, name string, steps []task.Step) bool {
	for i := range steps {
		s := &steps[i]
		if s.Name == name && s.AttemptNo == a.No && s.Kind != task.KindUndo && s.State == task.StepCompleted {
			return s.Error == nil
		}
	}
	return false
}

func failedTries(a *task.Attempt, steps []task.Step) int {
	n := 0
	for i := range steps {
		if steps[i].AttemptNo == a.No && steps[i].State == task.StepFailed {
			n++
		}
	}
	return n
}

// maxNamed is the maximum number of children that a decision names.
const maxNamed = 1000

// Decision describes the decision after an attempt and its reason.
func (c Clock) Decision(d *task.Decision) string {
	said := ""
	switch d.Kind {
	case task.DecideRetry:
		said = "It was decided to retry"
		if !d.NextReadyAt.IsZero() {
			said += ", due " + c.When(d.NextReadyAt)
		}
	case task.DecideMarkDead:
		said = "It was decided to give up"
	case task.DecideBlock:
		said = "It was decided to wait for a person"
	case task.DecideSucceed:
		said = "It was decided that the task succeeded all the same"
	case task.DecideDecompose:
		said = "It was decided to split it into " + text.Plural(len(d.ChildIDs), "task")
		if len(d.ChildIDs) >= maxNamed {
			said += " or more"
		}
	case task.DecideRepair:
		said = "It was decided to repair its input"
	case task.DecideAddDependency:
		said = "It was decided to wait for another task"
	default:
		said = "It was decided: " + string(d.Kind)
	}
	if d.Reason.Text != "" {
		said += ": " + text.OneLine(d.Reason.Text, MaxMessage)
	}
	if d.Reason.Policy != "" && d.Reason.Policy != "default" {
		said += fmt.Sprintf(" (by the policy %q)", text.OneLine(d.Reason.Policy, MaxNote))
	}
	return text.Stop(said)
}

// operated maps audited commands to their past tense.
var operated = map[string]string{
	"cancel": "cancelled it", "force_cancel": "cancelled it by force", "retry": "retried it", "unblock": "unblocked it", "reschedule": "rescheduled it", "signal": "sent it a signal",
	"cancel_job": "cancelled its job", "pause": "paused its queue", "resume": "resumed its queue",
	"rerun": "reran it", "pause_task": "paused it", "resume_task": "resumed it",
	"forget": "had it forgotten", "retry_cleanup": "had its undo tried again", "abandon_undo": "abandoned its undo",
}

// Operated describes an operator's command.
func (c Clock) Operated(a *store.AuditEntry) string {
	actor := cmp.Or(text.OneLine(a.Actor, MaxNote), "An operator")
	said := fmt.Sprintf("%s %s %s", actor, cmp.Or(operated[a.Verb], "did "+a.Verb), c.When(a.At))
	if a.Reason != "" {
		said += ": " + text.OneLine(a.Reason, MaxMessage)
	}
	return text.Stop(said)
}
