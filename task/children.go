package task

// Join says how a task that decomposed goes on when its children have ended.
type Join string

// The joins.
const (
	JoinNone     Join = ""
	JoinRerun    Join = "rerun"    // its handler runs again, and reads what they gave
	JoinComplete Join = "complete" // it ends with them: with the output that it gave, or failed if one of them did not succeed
)

// Limits of decompositions.
const (
	MaxDepth    = 8      // children below a task that is no child itself
	MaxChildren = 10_000 // of one task, over all of its decompositions
)

// KindParentEnded is the [Task.CancelKind] of a task that is cancelled because its
// parent, which waits for it, has ended. Its error has the kind [KindCancelled].
const KindParentEnded ErrorKind = "parent_ended"
