package task

import (
	"errors"
	"fmt"
)

// Join says what the last attempt of a task had it wait for, and how it goes on then.
type Join string

// The joins of a task that decomposed.
const (
	JoinNone     Join = ""
	JoinRerun    Join = "rerun"    // its handler runs again, and reads what they gave
	JoinComplete Join = "complete" // it ends with them: with the output that it gave, or failed if one of them did not succeed
)

// The Join of a task that waits for another one because its handler asked for it:
// the handler runs again when that has succeeded.
const (
	JoinDependency Join = "dependency" // a task of the same job, or of none as the task itself
	JoinOutside    Join = "outside"    // another job, or none, has it: it may move whatever stands still here
)

// JoinRepair is the Join of a task that waits for the repair of its input: its handler
// runs again when the repair has ended, however it did.
const JoinRepair Join = "repair"

// Asked reports whether a task waits for one that its handler asked for.
func (j Join) Asked() bool { return j == JoinDependency || j == JoinOutside }

// Waiting is the reason for which a task with the join waits.
func (j Join) Waiting() Waiting {
	switch j {
	case JoinNone:
		return WaitNone
	case JoinDependency, JoinOutside:
		return WaitDeps
	case JoinRepair:
		return WaitRepair
	}
	return WaitChildren
}

// Limits of children, those of decompositions and calls together.
const (
	MaxDepth    = 8      // children below a task that is no child itself
	MaxChildren = 10_000 // of one task

	MaxCallTasks        = 1000 // children of a call that one record stores
	MaxDecisionChildren = 1000 // children that a decision names; their edges name all
)

// CheckChildren refuses to give a task at a depth, which has so many children, n
// more by a decompose: there are too many, or too deep, or none.
func CheckChildren(depth, have, n int) error {
	if n == 0 {
		return errors.New("decompose: no child is named: give it drafts, or return the output if there is nothing to do")
	}
	return checkLimits("decompose", depth, have, n)
}

// CheckCall is [CheckChildren] for the n children of a call.
func CheckCall(depth, have, n int) error {
	if n <= 0 {
		return errors.New("call: no child is named: give it drafts")
	}
	return checkLimits("call", depth, have, n)
}

func checkLimits(what string, depth, have, n int) error {
	switch {
	case depth >= MaxDepth:
		return fmt.Errorf("%s: the task is itself a child at depth %d, and children of children are allowed to a depth of %d: do the work of the last ones in the handler", what, depth, MaxDepth)
	case have+n > MaxChildren:
		return fmt.Errorf("%s: the task has %d children and asks for %d more, and %d are allowed: give each child more of the work", what, have, n, MaxChildren)
	}
	return nil
}

// MaxRerunSteps is how many steps of a task its rerun takes over at most.
const MaxRerunSteps = 1000

// MaxSignals is how many signals that no wait took a task keeps.
const MaxSignals = 1000

// KindParentEnded is the [Task.CancelKind] of a child that is cancelled because its
// parent ended while it waited for it, or with their job: it comes back when its
// parent is retried. Its error has the kind [KindCancelled].
const KindParentEnded ErrorKind = "parent_ended"
