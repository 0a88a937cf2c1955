package task

import (
	"errors"
	"fmt"
)

// Join says how a task that decomposed goes on when its children have ended.
type Join string

// The joins.
const (
	JoinNone     Join = ""
	JoinRerun    Join = "rerun"    // its handler runs again, and reads what they gave
	JoinComplete Join = "complete" // it ends with them: with the output that it gave, or failed if one of them did not succeed
)

// JoinDependency is the [Task.Join] of a task that waits for another one because its
// handler asked for it: the handler runs again when that has succeeded.
const JoinDependency Join = "dependency"

// Limits of decompositions.
const (
	MaxDepth    = 8      // children below a task that is no child itself
	MaxChildren = 10_000 // of one task, over all of its decompositions
)

// CheckChildren refuses to give a task at a depth, which has so many children, n
// more: there are too many, or too deep, or none.
func CheckChildren(depth, have, n int) error {
	switch {
	case n == 0:
		return errors.New("decompose: no child is named: give it drafts, or return the output if there is nothing to do")
	case depth >= MaxDepth:
		return fmt.Errorf("decompose: the task is itself a child at depth %d, and children of children are allowed to a depth of %d: do the work of the last ones in the handler", depth, MaxDepth)
	case have+n > MaxChildren:
		return fmt.Errorf("decompose: the task has %d children and asks for %d more, and %d are allowed: give each child more of the work", have, n, MaxChildren)
	}
	return nil
}

// KindParentEnded is the [Task.CancelKind] of a child that is cancelled because its
// parent ended while it waited for it, or with their job: it comes back when its
// parent is retried. Its error has the kind [KindCancelled].
const KindParentEnded ErrorKind = "parent_ended"
