package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Which tasks and ends take the short way, which writes many of them with one statement.
// A field that these functions do not know must exclude the task: TestShortWay checks
// each field of a new task and of an end.

// plain reports whether claims and ends have nothing to do for a task but with its row
// and its dispatch row.
func (in *insertion) plain(n *task.New, deadline time.Time) bool {
	return in.job.IsZero() && in.parent.IsZero() && n.Node == "" && len(n.Needs) == 0 && deadline.IsZero() &&
		n.ConcurrencyKey == "" && len(n.Expire) == 0
}

// immediate reports whether nothing about a new task but its time depends on when it is
// stored, or on what is stored.
func immediate(n *task.New) bool {
	return !n.Coalesce && n.At.IsZero() && n.Delay == 0 && n.ExpireAfter == 0 && n.IdempotencyKey == "" && len(n.Needs) == 0
}

// alike reports whether a task can be stored together with others.
func alike(n *task.New, inlineMax int) bool {
	_, blob := task.BlobOf(n.Input)
	return !blob && len(n.Input) <= inlineMax && !n.Coalesce && len(n.Expire) == 0 && rules.FirstPhase(n.Needs, time.Time{}) == nil
}

// chunkable reports whether a finish may be the good end of a plain task's first
// attempt, of a claim whose worker and time are known: most are. Those are
// written in chunks; whether the task is plain is for their guard to find out.
func (f *finishing) chunkable(fin *store.Finish) bool {
	if !shortEnd(fin, f.moves.tx.inlineMax()) {
		return false
	}
	_, known := f.moves.tx.fx.Claim(fin.Lease.ID)
	return known
}

// shortEnd reports whether a finish is the good end of a first attempt, with nothing that
// SetPlainGoodEnd and PlainAttempt do not write. Its events are written before.
func shortEnd(f *store.Finish, inlineMax int) bool {
	return inlineSuccess(f, inlineMax) && f.Lease.Epoch == 1 && f.Progress == nil && f.Handler == "" &&
		f.Error == nil && f.Decision == nil && f.Delay == 0 && f.WakeAt.IsZero() && f.Waiting == "" && f.WakeSeq == 0 &&
		len(f.Children) == 0 && f.Join == "" && f.DependsOn.IsZero() && !f.Unclean && !f.Panicked && f.EndsAs == ""
}

// inlineSuccess reports whether a finish is a good end whose output is on the task's row.
func inlineSuccess(f *store.Finish, inlineMax int) bool {
	_, large := task.BlobOf(f.Output)
	return f.Outcome == task.OutcomeSuccess && !large && len(f.Output) <= inlineMax
}
