package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// now is the store's clock.
func (e *env) now() time.Time { return store.Now() }

// check reports an error unless ok.
func (e *env) check(ok bool, format string, args ...any) {
	e.Helper()
	if !ok {
		e.Errorf(format, args...)
	}
}

// require stops the case unless ok.
func (e *env) require(ok bool, format string, args ...any) {
	e.Helper()
	if !ok {
		e.Fatalf(format, args...)
	}
}

// near compares instants, up to slack.
func (e *env) near(what string, got, want time.Time) {
	e.Helper()
	d := got.Sub(want)
	e.check(!got.IsZero() && d.Abs() <= slack, "%s = %v, want %v (%v apart)", what, got, want, d)
	e.check(got.Equal(got.UTC().Truncate(time.Microsecond)) && got.Location() == time.UTC, "%s = %v is not UTC with microseconds", what, got)
}

// nearly compares durations, up to slack.
func (e *env) nearly(what string, got, want time.Duration) {
	e.Helper()
	e.check((got-want).Abs() <= slack, "%s = %v, want %v", what, got, want)
}

// equal compares values deeply.
func (e *env) equal(what string, got, want any) {
	e.Helper()
	e.check(reflect.DeepEqual(got, want), "%s = %+v, want %+v", what, got, want)
}

// sameJSON compares the JSON encodings of two values.
func (e *env) sameJSON(what string, got, want any) {
	e.Helper()
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(want)
	e.check(err1 == nil && err2 == nil && bytes.Equal(g, w), "%s = %s, want %s", what, g, w)
}

// contains expects a text to contain all parts.
func (e *env) contains(what, text string, parts ...string) {
	e.Helper()
	for _, p := range parts {
		e.check(strings.Contains(text, p), "%s %q does not contain %q", what, text, p)
	}
}

// wantErr compares errors.
func (e *env) wantErr(what string, got, want error) {
	e.Helper()
	e.require(errors.Is(got, want), "%s: %v, want %q", what, got, want)
}

// unchanged expects that do writes nothing that a snapshot shows.
func (e *env) unchanged(what string, do func()) {
	e.Helper()
	before := e.snap()
	do()
	after := e.snap()
	before.Now, after.Now = time.Time{}, time.Time{}
	e.check(reflect.DeepEqual(before, after), "%s changed the store:\nbefore %+v\n after %+v", what, before, after)
}

// tasks reads tasks, all of which must exist.
func (e *env) tasks(ids ...task.ID) []task.Task {
	e.Helper()
	got, err := e.s.Tasks(e.Context(), e.ns, ids...)
	e.require(err == nil, "Tasks: %v", err)
	e.require(len(got) == len(ids), "Tasks of %d ids returned %d", len(ids), len(got))
	return got
}

// task reads one task.
func (e *env) task(id task.ID) task.Task {
	e.Helper()
	return e.tasks(id)[0]
}

// is reads one task and expects a state.
func (e *env) is(id task.ID, state task.State, why task.Waiting) task.Task {
	e.Helper()
	t := e.task(id)
	e.require(t.State == state && t.Waiting == why, "task %v is %s/%s (error %v), want %s/%s", id, t.State, t.Waiting, t.Error, state, why)
	return t
}

// ended reads one task and expects a terminal state with an error kind.
func (e *env) ended(id task.ID, state task.State, kind task.ErrorKind) task.Task {
	e.Helper()
	t := e.is(id, state, task.WaitNone)
	got := task.KindNone
	if t.Error != nil {
		got = t.Error.Kind
	}
	e.check(got == kind, "task %v ended %s with %v, want kind %q", id, state, t.Error, kind)
	e.check(!t.FinishedAt.IsZero(), "task %v ended %s without FinishedAt", id, state)
	return t
}

// all expects every one of the tasks to be in a state.
func (e *env) all(state task.State, why task.Waiting, ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		e.is(id, state, why)
	}
}

// dispatch returns the dispatch rows of a task.
func (e *env) dispatch(id task.ID) []store.DispatchRow {
	e.Helper()
	return of(e.snap().Dispatch, func(d store.DispatchRow) bool { return d.Task == id })
}

// dueAt expects exactly one dispatch row, available at an instant.
func (e *env) dueAt(id task.ID, want time.Time) {
	e.Helper()
	rows := e.dispatch(id)
	e.require(len(rows) == 1, "task %v has %d dispatch rows, want one", id, len(rows))
	e.near("available_at", rows[0].AvailableAt, want)
}

// notDispatched expects that a task has no dispatch row.
func (e *env) notDispatched(id task.ID) {
	e.Helper()
	rows := e.dispatch(id)
	e.require(len(rows) == 0, "task %v has dispatch rows %v, want none", id, rows)
}

// waits reports whether a task is among the waiters of its key.
func (e *env) waits(id task.ID) bool {
	e.Helper()
	return slices.ContainsFunc(e.snap().Waiters, func(w store.WaiterRow) bool { return w.Task == id })
}

// history reads everything about a task.
func (e *env) history(id task.ID) store.History {
	e.Helper()
	h, err := e.s.History(e.Context(), e.ns, id)
	e.require(err == nil, "History of %v: %v", id, err)
	return h
}

// lastAttempt returns the newest attempt of a task.
func (e *env) lastAttempt(id task.ID) task.Attempt {
	e.Helper()
	h := e.history(id)
	e.require(len(h.Attempts) != 0, "task %v has no attempt", id)
	return h.Attempts[len(h.Attempts)-1]
}

// operate applies a command, which must succeed.
func (e *env) operate(cmd store.Command) store.CommandResult {
	e.Helper()
	got := e.command(cmd)
	e.require(got.Err == nil, "%T: %v", cmd, got.Err)
	if d, ok := cmd.(store.DeleteTask); ok {
		e.forget(d.Task)
	}
	return got
}

// command applies a command and returns its result.
func (e *env) command(cmd store.Command) store.CommandResult {
	e.Helper()
	got, err := e.s.Operate(e.Context(), e.ns, cmd)
	e.require(err == nil && len(got) == 1, "%T: %d answers, %v", cmd, len(got), err)
	return got[0]
}

// commandRefused expects a command to be refused, with nothing written, and
// returns the message.
func (e *env) commandRefused(cmd store.Command, want error) (message string) {
	e.Helper()
	e.unchanged("a refused command", func() {
		err := e.command(cmd).Err
		e.wantErr("Operate", err, want)
		message = err.Error()
	})
	return message
}

// admin is the operator of the suite.
var admin = store.Audit{By: "ada", Reason: "looks wrong"}

func cancelOf(id task.ID) store.CancelTask { return store.CancelTask{Audit: admin, Task: id} }
func forceOf(id task.ID) store.CancelTask {
	return store.CancelTask{Audit: admin, Task: id, Force: true}
}
func retryOf(id task.ID) store.RetryTask     { return store.RetryTask{Audit: admin, Task: id} }
func deleteOf(id task.ID) store.DeleteTask   { return store.DeleteTask{Audit: admin, Task: id} }
func cancelJobOf(id task.ID) store.CancelJob { return store.CancelJob{Audit: admin, Job: id} }
func pauseOf(queue string) store.PauseQueue  { return store.PauseQueue{Audit: admin, Queue: queue} }
func resumeOf(queue string) store.ResumeQueue {
	return store.ResumeQueue{Audit: admin, Queue: queue}
}

func pauseTypeOf(name string) store.PauseType {
	return store.PauseType{Audit: admin, Type: name}
}

func resumeTypeOf(name string) store.ResumeType {
	return store.ResumeType{Audit: admin, Type: name}
}
func pauseTaskOf(id task.ID) store.PauseTask   { return store.PauseTask{Audit: admin, Task: id} }
func resumeTaskOf(id task.ID) store.ResumeTask { return store.ResumeTask{Audit: admin, Task: id} }

// unblockOf returns an unblock, with raw as the input unless it is empty.
func unblockOf(id task.ID, raw string) store.UnblockTask {
	cmd := store.UnblockTask{Audit: admin, Task: id}
	if raw != "" {
		cmd.Input = json.RawMessage(raw)
	}
	return cmd
}

// readsAsDerived compares the Reader with store.Derive over the snapshot.
func (e *env) readsAsDerived(snap *store.Snapshot) {
	e.Helper()
	available := make(map[task.ID]store.Availability, len(snap.Dispatch))
	for _, d := range snap.Dispatch {
		s := store.Availability{Dispatch: d.AvailableAt}
		if slices.Contains(snap.Paused, d.Queue) {
			s.Pause = task.PauseQueue
		}
		if slices.Contains(snap.PausedTypes, d.Type) {
			s.Pause = task.PauseType
		}
		available[d.Task] = s
	}
	for _, p := range snap.PausedTasks {
		available[p.Task] = store.Availability{Pause: task.PauseTask, Parked: p.DueAt}
	}
	for _, w := range snap.Waiters {
		s := available[w.Task]
		s.Waiter = w.DueAt
		available[w.Task] = s
	}
	for i, got := range e.tasks(mapped(snap.Tasks, idOf)...) {
		want := snap.Tasks[i]
		store.Derive(&want, available[want.ID], snap.Now)
		if !reflect.DeepEqual(got, want) {
			e.Errorf("Tasks and Snapshot with Derive differ:\n got %s\nwant %s", show(got), show(want))
			return
		}
	}
}

// show formats a task for a message, without its large fields.
func show(t task.Task) string {
	if len(t.Input) > 100 {
		t.Input = nil
	}
	return fmt.Sprintf("%+v", t)
}

// readersAgree compares the views of all readers on one task with the snapshot.
func (e *env) readersAgree(snap *store.Snapshot, id task.ID) {
	e.Helper()
	h := e.history(id)
	e.sameJSON("the history's task", h.Task, e.task(id))
	ended := slices.DeleteFunc(h.Attempts, func(a task.Attempt) bool { return a.FinishedAt.IsZero() })
	e.sameRows("attempts", ended, of(snap.Attempts, func(a task.Attempt) bool { return a.TaskID == id }))
	e.sameRows("decisions", h.Decisions, of(snap.Decisions, func(d task.Decision) bool { return d.TaskID == id }))
	e.sameRows("steps", h.Steps, of(snap.Steps, func(s task.Step) bool { return s.TaskID == id }))
	e.sameRows("signals", h.Signals, of(snap.Signals, func(s task.Signal) bool { return s.TaskID == id }))
	e.sameRows("checkpoints", h.Checkpoints, of(snap.Checkpoints, func(c task.Checkpoint) bool { return c.TaskID == id }))
	e.sameRows("audit", h.Audit, of(snap.Audit, func(a store.AuditEntry) bool { return a.Target == id.String() }))
	e.equal("the number of needs", len(h.Needs), len(of(snap.Edges, func(r store.EdgeRow) bool { return r.Task == id })))
	e.equal("the number of dependents", len(h.Dependents), len(of(snap.Edges, func(r store.EdgeRow) bool { return r.Needs == id })))
	e.listsAgree(snap, h.Task)
}

// listsAgree reads lists that contain a task and compares them with the snapshot.
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
	// A task that is not due reads in its stored state.
	if t.State != task.Pending && t.State != task.Ready {
		list(store.Filter{States: []task.State{t.State}}, func(o task.Task) bool { return o.State == t.State })
	}
}

func idOf(t task.Task) task.ID   { return t.ID }
func draftID(n task.New) task.ID { return n.ID }

// mapped applies f to each row.
func mapped[T, U any](rows []T, f func(T) U) []U {
	var out []U
	for _, r := range rows {
		out = append(out, f(r))
	}
	return out
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

// sameRows compares two lists; an empty list may be nil.
func (e *env) sameRows(what string, got, want any) {
	e.Helper()
	if reflect.ValueOf(got).Len()+reflect.ValueOf(want).Len() > 0 {
		e.sameJSON("the history's "+what, got, want)
	}
}
