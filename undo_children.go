package weaver

import (
	"slices"

	"github.com/goweaver/weaver/internal/option"
)

// UndoChildren has the children of a [Call] or [CallAll] undone with the task that called
// them: if that ends in any way but success, each child that succeeded, and has steps with an
// [Undo], is undone too.
//
//	room, err := weaver.Call(ctx, "room", BookRoom, trip, weaver.UndoChildren())
//
// The call takes its place among the steps of the task: what began after it is undone first.
// The last child is undone first, and the one before when that is done. Each has a task
// of its own for it, of the child's type ([task.Task.UndoOf]), which calls the handler as
// Undo says it, and undoes the steps of the child under its StepKeys. Current shows it the
// child. The child stays succeeded; its steps count as never run. So do the calls in it that
// have UndoChildren, whose children are undone with it. A child that failed has undone
// itself, and one without an Undo is left alone: no [Cleanup] runs for a child that
// succeeded.
//
// If such a task gives up, so does the one that waits for it: it fails with the kind
// undo_failed, and names the call. A retry of either with [Cleanups] tries both again. After
// a Retry the call begins anew, with new children.
//
// It is refused, as ErrInvalidOption, where no caller waits for the task: with Enqueue,
// Start, Decompose and the like; and with [Each] and [Race].
func UndoChildren() EnqueueOption { return undoChildren{} }

type undoChildren struct{}

func (undoChildren) ApplyEnqueue(s *option.Settings) {
	s.Problem("UndoChildren: only Call and CallAll take it, whose task is undone with its children")
}

// cutUndoChildren returns options without UndoChildren, and whether it was among them.
func cutUndoChildren(opts []EnqueueOption) (rest []EnqueueOption, undo bool) {
	is := func(o EnqueueOption) bool { _, ok := o.(undoChildren); return ok }
	if !slices.ContainsFunc(opts, is) {
		return opts, false
	}
	return slices.DeleteFunc(slices.Clone(opts), is), true
}
