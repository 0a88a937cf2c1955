package rules

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A Decider may answer a failure with decompose or add_dependency, the same requests that a
// handler makes by its outcome (ADR 0026). The attempt keeps its reported outcome and error,
// and counts as that outcome counts.

// Asks returns the request of a finish, made by its handler or by its decision:
// [task.OutcomeDecompose] (also for a repair), [task.OutcomeAddDependency], or
// [task.OutcomeNone].
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

// decidedKind returns the kind of a finish's decision, or "".
func decidedKind(f *store.Finish) task.DecisionKind {
	switch f.Outcome {
	case task.OutcomeFailure, task.OutcomeBlocked, task.OutcomeDecodeFailed:
		if f.Decision != nil {
			return f.Decision.Kind
		}
	}
	return ""
}

// childIDs returns the IDs of the first children of a decompose.
func childIDs(f *store.Finish) []task.ID {
	ids := make([]task.ID, min(len(f.Children), task.MaxDecisionChildren))
	for i := range ids {
		ids[i] = f.Children[i].ID
	}
	return ids
}

// refused returns the transition of a task whose request is refused: it fails permanently. For
// a requested decision the attempt keeps its outcome and the decision records the refusal,
// because no Decider can run inside of a transaction.
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
