package weaver

import (
	"slices"

	"github.com/goweaver/weaver/internal/option"
)

// UndoChildren undoes the children of a [Call] or [CallAll] with their calling task: if that ends
// without success, each succeeded child with [Undo] steps is undone, too.
//
//	room, err := weaver.Call(ctx, "room", BookRoom, trip, weaver.UndoChildren())
//
// The call has its place among the steps of the task: later steps are undone first. Children are
// undone one by one, the last first. Each has a separate undo task of the child's type
// ([task.Task.UndoOf]), which calls the handler as Undo describes, and undoes the steps of the child
// under its StepKeys. Current returns the child. The child stays succeeded; its steps count as never
// run. So do its calls with UndoChildren, whose children are undone with it. A failed child has undone
// itself, and one without an Undo is left alone: no [Cleanup] runs for a succeeded child.
//
// If an undo task gives up, so does the task that waits for it: it fails with the kind undo_failed and
// names the call. A retry of either with [Cleanups] retries both. After a Retry the call starts again,
// with new children.
//
// It is ErrInvalidOption if no caller waits for the task: with Enqueue, Start, Decompose and the like;
// and with [Each] and [Race].
func UndoChildren() EnqueueOption { return undoChildren{} }

type undoChildren struct{}

func (undoChildren) ApplyEnqueue(s *option.Settings) {
	s.Problem("UndoChildren: only Call and CallAll take it, whose task is undone with its children")
}

// cutUndoChildren returns options without UndoChildren, and whether they included it.
func cutUndoChildren(opts []EnqueueOption) (rest []EnqueueOption, undo bool) {
	is := func(o EnqueueOption) bool { _, ok := o.(undoChildren); return ok }
	if !slices.ContainsFunc(opts, is) {
		return opts, false
	}
	return slices.DeleteFunc(slices.Clone(opts), is), true
}
