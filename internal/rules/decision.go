package rules

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A Decider may answer a failure with decompose or add_dependency: what a handler
// can ask for by its outcome, a decision asks for here (ADR 0026). The attempt keeps
// the outcome and the error that it reported, and counts as that outcome does.

// Asks says what a finish has its task wait for, because its handler asked for it or
// because it was decided: children (decompose; a repair is one), or another task (add_dependency).
// [task.OutcomeNone]: neither.
func Asks(f *store.Finish) task.Outcome {
	if f.Outcome == task.OutcomeDecompose || f.Outcome == task.OutcomeAddDependency {
		return f.Outcome
	}
	switch decidedKind(f) {
	case task.DecideDecompose, task.DecideRepair:
		return task.OutcomeDecompose
	case task.DecideAddDependency:
		return task.OutcomeAddDependency
	}
	return task.OutcomeNone
}

// decidedKind is the kind of a finish's decision, "" without one.
func decidedKind(f *store.Finish) task.DecisionKind {
	switch f.Outcome {
	case task.OutcomeFailure, task.OutcomeBlocked, task.OutcomeDecodeFailed:
		if f.Decision != nil {
			return f.Decision.Kind
		}
	}
	return ""
}

// childIDs are the first children of a decompose.
func childIDs(f *store.Finish) []task.ID {
	ids := make([]task.ID, min(len(f.Children), task.MaxDecisionChildren))
	for i := range ids {
		ids[i] = f.Children[i].ID
	}
	return ids
}

// refused is what becomes of a task that asks for what it cannot have: it fails, for
// good. Of a decision the attempt keeps its outcome, and the decision says what was
// refused: no Decider can be asked inside of a transaction.
func refused(f *store.Finish, why *task.Error) Transition {
	t := Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: why}
	kind := decidedKind(f)
	if kind == "" {
		return t
	}
	failure := task.Error{Kind: why.Kind, Message: "the decider chose " + string(kind) + ", which cannot be done: " + why.Message}
	if f.Error != nil {
		failure.Message += "; the attempt had ended with: " + f.Error.Message
		failure.Code, failure.Step = f.Error.Code, f.Error.Step
	}
	d := *f.Decision
	d.Kind = task.DecideMarkDead
	d.Reason.Text = string(kind) + " cannot be done: " + why.Message + "; it was chosen because: " + d.Reason.Text
	t.Outcome, t.Failure, t.Decision = f.Outcome, &failure, &d
	return t
}

// refusedBefore reports whether a recorded finish was [refused].
func refusedBefore(f *store.Finish, was Recorded) bool {
	switch kind := decidedKind(f); {
	case Asks(f) == task.OutcomeNone:
		return false
	case kind != "":
		return was.Decision == task.DecideMarkDead
	}
	return was.Outcome == task.OutcomeFailure
}
