package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// These functions decide which tasks and ends are written many at a time. A field that they do
// not know must exclude the task: TestShortWay checks each field of a new task and of an end.

// plain reports whether claims and ends of a task only write its row and its dispatch row.
func (in *insertion) plain(n *task.New, deadline time.Time) bool {
	return in.job.IsZero() && in.parent.IsZero() && n.Node == "" && len(n.Needs) == 0 && deadline.IsZero() &&
		n.ConcurrencyKey == "" && len(n.Expire) == 0
}

// immediate reports whether, apart from timestamps, nothing about a new task depends on the
// time of its insert or on stored rows.
func immediate(n *task.New) bool {
	return !n.Coalesce && n.At.IsZero() && n.Delay == 0 && n.ExpireAfter == 0 && n.IdempotencyKey == "" && len(n.Needs) == 0
}

// alike reports whether a task can be inserted together with others.
func alike(n *task.New, inlineMax int) bool {
	_, blob := task.BlobOf(n.Input)
	return !blob && len(n.Input) <= inlineMax && !n.Coalesce && len(n.Expire) == 0 && rules.FirstPhase(n.Needs, time.Time{}) == nil
}

// chunkable reports whether a finish may be the success of a plain task's first attempt, in a
// claim with known worker and time, as most are. These are written in chunks. Their guard
// checks that the task is plain.
func (f *finishing) chunkable(fin *store.Finish) bool {
	if !shortEnd(fin, f.moves.tx.inlineMax()) {
		return false
	}
	_, known := f.moves.tx.fx.Claim(fin.Lease.ID)
	return known
}

// shortEnd reports whether a finish is the success of a first attempt, without anything that
// SetPlainGoodEnd and PlainAttempt do not write. Its events are written before.
func shortEnd(f *store.Finish, inlineMax int) bool {
	return inlineSuccess(f, inlineMax) && f.Lease.Epoch == 1 && f.Progress == nil && f.Handler == "" &&
		f.Error == nil && f.Decision == nil && f.Delay == 0 && f.WakeAt.IsZero() && f.Waiting == "" && f.WakeSeq == 0 &&
		len(f.Children) == 0 && f.Join == "" && f.DependsOn.IsZero() && !f.Unclean && !f.Panicked && f.EndsAs == ""
}

// inlineSuccess reports whether a finish is a success with an output on the task's row.
func inlineSuccess(f *store.Finish, inlineMax int) bool {
	_, large := task.BlobOf(f.Output)
	return f.Outcome == task.OutcomeSuccess && !large && len(f.Output) <= inlineMax
}
