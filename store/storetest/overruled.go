package storetest

import (
	"reflect"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkOverruled checks the overruled part of the answer to a finish: the recorded end if it differs from the
// requested end, empty otherwise.
func (e *env) checkOverruled(f *store.Finish, got *store.FinishResult) {
	e.Helper()
	h := e.history(f.Lease.Task)
	var at *task.Attempt
	for i := range h.Attempts {
		if h.Attempts[i].LeaseID == f.Lease.ID {
			at = &h.Attempts[i]
		}
	}
	if at == nil {
		e.Errorf("no attempt has the lease of the finish with %s", f.Outcome)
		return
	}
	want := store.Overruled{Outcome: at.Outcome, Error: at.Error}
	for i := range h.Decisions {
		if h.Decisions[i].AttemptNo == at.No {
			want.Decision = h.Decisions[i].Kind
		}
	}
	t := &h.Task
	switch {
	case t.Undo != nil && t.Undo.Began.Equal(at.FinishedAt) && got.Waiting == task.WaitUndo && f.EndsAs == "" &&
		at.Outcome != task.OutcomeUndoFailed && at.Outcome != task.OutcomeSuspended: // reported by programs that did not know of the phase
		want.EndsAs, want.Error = t.Undo.EndsAs, t.Undo.Error
	case t.FinishedAt.Equal(at.FinishedAt) && t.Error != nil:
		want.Error = t.Error
	}
	said := store.Overruled{Outcome: f.Outcome, Error: f.Error}
	if f.Decision != nil {
		said.Decision = f.Decision.Kind
	}
	if got.Overruled == nil {
		e.check(reflect.DeepEqual(said, want), "the answer to a finish with %s/%s and %v says that this was recorded, not %+v", said.Outcome, said.Decision, said.Error, want)
	} else {
		e.check(!reflect.DeepEqual(said, want), "the answer to a finish with %s says that it was overruled: it was recorded", f.Outcome)
		e.check(reflect.DeepEqual(*got.Overruled, want), "the answer to a finish with %s says that %+v was recorded, with %v; it is %+v, with %v",
			f.Outcome, *got.Overruled, got.Overruled.Error, want, want.Error)
	}
}
