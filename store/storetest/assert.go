package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// now is the store's clock.
func (e *env) now() time.Time { return store.Now() }

// near compares instants, up to slack.
func (e *env) near(what string, got, want time.Time) {
	e.Helper()
	if d := got.Sub(want); got.IsZero() || d < -slack || d > slack {
		e.Errorf("%s = %v, want %v (%v apart)", what, got, want, d)
	}
	if !got.Equal(got.UTC().Truncate(time.Microsecond)) || got.Location() != time.UTC {
		e.Errorf("%s = %v is not UTC with microseconds", what, got)
	}
}

// nearly compares durations, up to slack.
func (e *env) nearly(what string, got, want time.Duration) {
	e.Helper()
	if d := got - want; d < -slack || d > slack {
		e.Errorf("%s = %v, want %v", what, got, want)
	}
}

// equal compares values deeply.
func (e *env) equal(what string, got, want any) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Errorf("%s = %+v, want %+v", what, got, want)
	}
}

// sameJSON compares what two values look like as JSON.
func (e *env) sameJSON(what string, got, want any) {
	e.Helper()
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(want)
	if err1 != nil || err2 != nil || !bytes.Equal(g, w) {
		e.Errorf("%s = %s, want %s", what, g, w)
	}
}

// wantErr compares errors.
func (e *env) wantErr(what string, got, want error) {
	e.Helper()
	if !errors.Is(got, want) {
		e.Fatalf("%s: %v, want %q", what, got, want)
	}
}

// unchanged expects that do writes nothing that a snapshot shows.
func (e *env) unchanged(what string, do func()) {
	e.Helper()
	before := e.snap()
	do()
	after := e.snap()
	before.Now, after.Now = time.Time{}, time.Time{}
	if !reflect.DeepEqual(before, after) {
		e.Errorf("%s changed the store:\nbefore %+v\n after %+v", what, before, after)
	}
}

// tasks reads tasks, all of which exist.
func (e *env) tasks(ids ...task.ID) []task.Task {
	e.Helper()
	got, err := e.s.Tasks(e.Context(), e.ns, ids...)
	if err != nil {
		e.Fatalf("Tasks: %v", err)
	}
	if len(got) != len(ids) {
		e.Fatalf("Tasks of %d ids returned %d", len(ids), len(got))
	}
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
	if t.State != state || t.Waiting != why {
		e.Fatalf("task %v is %s/%s (error %v), want %s/%s", id, t.State, t.Waiting, t.Error, state, why)
	}
	return t
}

// ended reads one task and expects a terminal state with an error kind.
func (e *env) ended(id task.ID, state task.State, kind task.ErrorKind) task.Task {
	e.Helper()
	t := e.is(id, state, task.WaitNone)
	switch {
	case kind == task.KindNone && t.Error != nil:
		e.Errorf("task %v ended %s with %v, want no error", id, state, t.Error)
	case kind != task.KindNone && (t.Error == nil || t.Error.Kind != kind):
		e.Errorf("task %v ended %s with %v, want kind %s", id, state, t.Error, kind)
	}
	if t.FinishedAt.IsZero() {
		e.Errorf("task %v ended %s without FinishedAt", id, state)
	}
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
	var rows []store.DispatchRow
	for _, d := range e.snap().Dispatch {
		if d.Task == id {
			rows = append(rows, d)
		}
	}
	return rows
}

// dueAt expects exactly one dispatch row, available at an instant.
func (e *env) dueAt(id task.ID, want time.Time) {
	e.Helper()
	rows := e.dispatch(id)
	if len(rows) != 1 {
		e.Fatalf("task %v has %d dispatch rows, want one", id, len(rows))
	}
	e.near("available_at", rows[0].AvailableAt, want)
}

// notDispatched expects that a task has no dispatch row.
func (e *env) notDispatched(id task.ID) {
	e.Helper()
	if rows := e.dispatch(id); len(rows) != 0 {
		e.Fatalf("task %v has dispatch rows %v, want none", id, rows)
	}
}

// waits reports whether a task is among the waiters of its key.
func (e *env) waits(id task.ID) bool {
	e.Helper()
	for _, w := range e.snap().Waiters {
		if w.Task == id {
			return true
		}
	}
	return false
}

// history reads everything about a task.
func (e *env) history(id task.ID) store.History {
	e.Helper()
	h, err := e.s.History(e.Context(), e.ns, id)
	if err != nil {
		e.Fatalf("History of %v: %v", id, err)
	}
	return h
}

// lastAttempt returns the newest attempt of a task.
func (e *env) lastAttempt(id task.ID) task.Attempt {
	e.Helper()
	h := e.history(id)
	if len(h.Attempts) == 0 {
		e.Fatalf("task %v has no attempt", id)
	}
	return h.Attempts[len(h.Attempts)-1]
}

// operate applies one command, which must work.
func (e *env) operate(cmd store.Command) store.CommandResult {
	e.Helper()
	got := e.command(cmd)
	if got.Err != nil {
		e.Fatalf("%T: %v", cmd, got.Err)
	}
	if d, ok := cmd.(store.DeleteTask); ok {
		e.forget(d.Task)
	}
	return got
}

// command applies one command and returns the answer.
func (e *env) command(cmd store.Command) store.CommandResult {
	e.Helper()
	got, err := e.s.Operate(e.Context(), e.ns, cmd)
	if err != nil || len(got) != 1 {
		e.Fatalf("%T: %d answers, %v", cmd, len(got), err)
	}
	return got[0]
}

// turnedDown expects a command to be refused, with nothing written.
func (e *env) turnedDown(cmd store.Command, want error) error {
	e.Helper()
	var err error
	e.unchanged("a refused command", func() {
		err = e.command(cmd).Err
		e.wantErr("Operate", err, want)
	})
	return err
}

// admin is who acts in the suite.
var admin = store.Audit{By: "ada", Reason: "looks wrong"}

func cancelOf(id task.ID) store.CancelTask { return store.CancelTask{Audit: admin, Task: id} }
func forceOf(id task.ID) store.CancelTask {
	return store.CancelTask{Audit: admin, Task: id, Force: true}
}
func retryOf(id task.ID) store.RetryTask { return store.RetryTask{Audit: admin, Task: id} }
