package storetest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// readsAsDerived compares the Reader with store.Derive over the snapshot.
func (e *env) readsAsDerived(snap *store.Snapshot) {
	e.Helper()
	available := make(map[task.ID]store.Availability, len(snap.Dispatch))
	for _, d := range snap.Dispatch {
		available[d.Task] = store.Availability{Dispatch: d.AvailableAt, Paused: slices.Contains(snap.Paused, d.Queue)}
	}
	for _, w := range snap.Waiters {
		s := available[w.Task]
		s.Waiter = w.DueAt
		available[w.Task] = s
	}
	var ids []task.ID
	for _, t := range snap.Tasks {
		ids = append(ids, t.ID)
	}
	for i, got := range e.tasks(ids...) {
		want := snap.Tasks[i]
		store.Derive(&want, available[want.ID], snap.Now)
		if !reflect.DeepEqual(got, want) {
			e.Errorf("Tasks and Snapshot with Derive differ:\n got %s\nwant %s", show(got), show(want))
			return
		}
	}
}

// show prints a task for a message, without its bulk.
func show(t task.Task) string {
	if len(t.Input) > 100 {
		t.Input = nil
	}
	return fmt.Sprintf("%+v", t)
}

// readersAgree compares what readers say about one task with the snapshot.
func (e *env) readersAgree(snap *store.Snapshot, id task.ID) {
	e.Helper()
	h := e.history(id)
	e.sameJSON("the history's task", h.Task, e.task(id))
	ended := slices.DeleteFunc(h.Attempts, func(a task.Attempt) bool { return a.FinishedAt.IsZero() })
	e.sameRows("attempts", ended, of(snap.Attempts, func(a task.Attempt) bool { return a.TaskID == id }))
	e.sameRows("decisions", h.Decisions, of(snap.Decisions, func(d task.Decision) bool { return d.TaskID == id }))
	e.sameRows("steps", h.Steps, of(snap.Steps, func(s task.Step) bool { return s.TaskID == id }))
	e.sameRows("audit", h.Audit, of(snap.Audit, func(a store.AuditEntry) bool { return a.Target == id.String() }))
	e.equal("the number of needs", len(h.Needs), len(of(snap.Edges, func(r store.EdgeRow) bool { return r.Task == id })))
	e.equal("the number of dependents", len(h.Dependents), len(of(snap.Edges, func(r store.EdgeRow) bool { return r.Needs == id })))
	e.listsAgree(snap, h.Task)
}

// listsAgree asks for lists that show a task and compares them with the snapshot.
func (e *env) listsAgree(snap *store.Snapshot, t task.Task) {
	e.Helper()
	list := func(f store.Filter, belongs func(o task.Task) bool) {
		e.Helper()
		f.Limit = store.MaxLimit
		got, _ := e.list(f)
		var want []task.ID
		for _, o := range slices.Backward(snap.Tasks) {
			if belongs(o) && len(want) < store.MaxLimit {
				want = append(want, o.ID)
			}
		}
		e.check(slices.Equal(got, want), "List(%+v) = %v, the snapshot says %v", f, got, want)
	}
	list(store.Filter{Types: []string{t.Type}}, func(o task.Task) bool { return o.Type == t.Type })
	list(store.Filter{Queue: t.Queue}, func(o task.Task) bool { return o.Queue == t.Queue })
	if !t.JobID.IsZero() {
		list(store.Filter{Job: t.JobID}, func(o task.Task) bool { return o.JobID == t.JobID })
	}
	for k, v := range t.Labels {
		list(store.Filter{Labels: map[string]string{k: v}}, func(o task.Task) bool { w, ok := o.Labels[k]; return ok && w == v })
	}
	// Whatever is not about to run reads in the state that is stored.
	if t.State != task.Pending && t.State != task.Ready {
		list(store.Filter{States: []task.State{t.State}}, func(o task.Task) bool { return o.State == t.State })
	}
}

// of returns the rows for which keep holds.
func of[T any](rows []T, keep func(T) bool) []T {
	var out []T
	for _, r := range rows {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// sameRows compares two lists, of which the empty one may be nil.
func (e *env) sameRows(what string, got, want any) {
	e.Helper()
	if reflect.ValueOf(got).Len()+reflect.ValueOf(want).Len() > 0 {
		e.sameJSON("the history's "+what, got, want)
	}
}
