package task

import (
	"errors"
	"fmt"
)

// Join is the event that a suspended task waits for, and its continuation.
type Join string

// The joins of a task that decomposed.
const (
	JoinNone     Join = ""
	JoinRerun    Join = "rerun"    // the handler runs again and reads the outputs of the children
	JoinComplete Join = "complete" // the task ends with its children: with its recorded output, or failed if a child did not succeed
)

// The joins of a task whose handler asked to wait for another task. The handler runs again after that task has
// succeeded.
const (
	JoinDependency Join = "dependency" // a task of the same job; of no job if the waiting task has no job
	JoinOutside    Join = "outside"    // a task of another job or of no job: it can progress although this job cannot
)

// JoinRepair is the Join of a task that waits for the repair of its input. The handler runs again when the repair has
// ended, in success or failure.
const JoinRepair Join = "repair"

// Asked reports whether the task waits for a dependency that its handler asked for.
func (j Join) Asked() bool { return j == JoinDependency || j == JoinOutside }

// Waiting returns the waiting reason of a task with this join.
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

// Limits of children, from decompositions and calls together.
const (
	MaxDepth    = 8      // levels of children below a task that is not itself a child
	MaxChildren = 10_000 // per task

	MaxCallTasks        = 1000 // children of a call stored by one record
	MaxDecisionChildren = 1000 // children that a decision lists; their edges list all
)

// CheckChildren returns an error unless a task at a depth with so many children may add n children by a decompose. It
// refuses too many, too deep and zero children.
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

// MaxRerunSteps is the maximum number of steps that a rerun takes over from the original task.
const MaxRerunSteps = 1000

// MaxSignals is the maximum number of unconsumed signals of a task.
const MaxSignals = 1000

// KindParentEnded is the [Task.CancelKind] of a child cancelled because its parent ended while waiting for it, or
// ended with the job. A retry of the parent reopens the child. Its error has the kind [KindCancelled].
const KindParentEnded ErrorKind = "parent_ended"
