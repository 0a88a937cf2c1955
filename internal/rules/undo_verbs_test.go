package rules_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	undoes    = &task.UndoPhase{EndsAs: task.Failed, Error: errorOf(task.KindHandler)}
	gaveUp    = &task.UndoPhase{EndsAs: task.Failed, Error: errorOf(task.KindHandler), GaveUp: true}
	abandoned = &task.UndoPhase{EndsAs: task.Failed, Error: errorOf(task.KindHandler), GaveUp: true, Abandoned: true}
)

func TestUndoVerbs(t *testing.T) {
	t.Parallel()
	id := task.NewIDs(nil).New()
	cancel := func(force, abandon, spare bool) func(task.State, *task.UndoPhase) error {
		return func(s task.State, p *task.UndoPhase) error {
			return rules.CheckCancel(&store.CancelTask{Task: id, Force: force, Abandon: abandon, Spare: spare}, s, p)
		}
	}
	again := func(s task.State, p *task.UndoPhase) error {
		return rules.CheckUndoRetry(&store.RetryTask{Task: id, Cleanup: true}, s, task.WaitNone, p)
	}
	retry := func(s task.State, p *task.UndoPhase) error { return rules.CheckUndone(id, s, p) }
	leave := func(s task.State, p *task.UndoPhase) error { return rules.CheckStands(id, s, p) }
	for _, c := range []struct {
		verb  string
		check func(task.State, *task.UndoPhase) error
		state task.State
		phase *task.UndoPhase
		want  string // part of the refusal; "": accepted
	}{
		{"retry", retry, task.Failed, nil, ""},
		{"retry", retry, task.Pending, undoes, "is being undone before it ends failed"},
		{"retry", retry, task.Failed, gaveUp, "its undo was given up: try that again with weaver task retry " + id.String() + " --cleanup"},
		{"retry", retry, task.Failed, abandoned, "its undo was abandoned: try that again with"},
		{"retry --cleanup", again, task.Failed, nil, "nothing is to be undone"},
		{"retry --cleanup", again, task.Running, nil, "nothing is to be undone"},
		{"retry --cleanup", again, task.Running, undoes, "its undo is being tried now"},
		{"retry --cleanup", again, task.Pending, undoes, ""},
		{"retry --cleanup", again, task.Blocked, undoes, ""},
		{"retry --cleanup", again, task.Failed, gaveUp, ""},
		{"retry --cleanup", again, task.Failed, abandoned, ""},
		{"cancel", cancel(false, false, false), task.Running, undoes, ""},
		{"cancel", cancel(false, false, false), task.Failed, gaveUp, "its undo was given up"},
		{"force", cancel(true, false, false), task.Blocked, undoes, ""},
		{"force of many", cancel(true, false, true), task.Pending, undoes, "weaver task cancel " + id.String() + " --abandon-undo"},
		{"force of many", cancel(true, false, true), task.Running, nil, ""},
		{"abandon", cancel(false, true, false), task.Running, nil, "it has no undo to abandon"},
		{"abandon", cancel(false, true, false), task.Cancelled, nil, "it has no undo to abandon"},
		{"abandon", cancel(false, true, false), task.Running, undoes, ""},
		{"abandon", cancel(false, true, false), task.Failed, gaveUp, ""},
		{"abandon", cancel(false, true, false), task.Failed, abandoned, "was abandoned already"},
		{"delete", leave, task.Failed, nil, ""},
		{"delete", leave, task.Failed, abandoned, ""},
		{"delete", leave, task.Failed, gaveUp, "accept it with weaver task cancel " + id.String() + " --abandon-undo"},
	} {
		err := c.check(c.state, c.phase)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s of a %s task, phase %+v: %v, want %q", c.verb, c.state, c.phase, err, c.want)
		}
	}
	for _, cmd := range []store.RetryTask{{KeepSteps: true}, {AddAttempts: 1}, {AddCost: 1}} {
		if err := rules.CheckUndoRetry(&cmd, task.Failed, task.WaitNone, gaveUp); !errors.Is(err, store.ErrState) {
			t.Errorf("%+v: %v", cmd, err)
		}
	}
	if err := rules.CheckChildUndone(task.ID{1}, task.Failed, id); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), id.String()) {
		t.Errorf("a child whose undo was given up: %v", err)
	}
	if err := rules.CheckChildUndone(task.ID{1}, task.Failed, task.ID{}); err != nil {
		t.Errorf("no such child: %v", err)
	}
}

func TestForceUndo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease, why := task.LeaseID{7}, errorOf(task.KindCancelled)
	held := &task.UndoPhase{EndsAs: task.Failed, Error: errorOf(task.KindHandler), HoldsKey: true}

	to := rules.ForceUndo(held, &rules.Revoked{Lease: lease, Until: now.Add(time.Minute), Key: true}, why, now)
	p := to.Undo
	if to.State != task.Pending || !to.Claimable() || !to.KeepError || !to.ReadyAt.Equal(now.Add(time.Minute)) || to.Failure != why {
		t.Errorf("a running attempt: %+v", to)
	}
	if !p.Forced || !p.HoldsKey || p.Hold != lease || !p.NotBefore.Equal(to.ReadyAt) || held.Forced {
		t.Errorf("a running attempt: %+v", p)
	}
	if to = rules.ForceUndo(held, &rules.Revoked{Lease: lease, Until: now, Key: true}, why, now); !to.ReadyAt.Equal(now) || !to.Undo.NotBefore.IsZero() {
		t.Errorf("a lease that has ended: %+v, %+v", to, to.Undo)
	}
	if p = rules.ForceUndo(held, new(rules.Revoked), why, now).Undo; !p.Forced || !p.HoldsKey || !p.Hold.IsZero() {
		t.Errorf("no attempt: %+v", p)
	}
}

func TestAbandonUndo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	to := rules.AbandonUndo(undoes, &rules.Revoked{Lease: task.LeaseID{7}, Until: now.Add(time.Minute)}, store.Audit{By: "ada", Reason: "paid back by hand"}, now)
	const want = "undo given up: abandoned by ada: paid back by hand; the task had ended failed: as handler_error"
	if to.State != task.Failed || to.EndKind() != task.KindUndoFailed || to.Failure.Message != want {
		t.Errorf("abandoned: %+v, %+v", to, to.Failure)
	}
	if p := to.Undo; !p.GaveUp || !p.Abandoned || p.Error != nil && p.Error.Kind != task.KindHandler || p.NotBefore.IsZero() || undoes.GaveUp {
		t.Errorf("abandoned: %+v", p)
	}
	again := rules.ResumeUndo(to.Undo, 3, now)
	if p := again.Undo; again.State != task.Pending || !again.ReadyAt.Equal(now.Add(time.Minute)) || p.GaveUp || p.Abandoned || p.Since != 3 {
		t.Errorf("tried again: %+v, %+v", again, p)
	}
	if text := rules.AbandonUndo(undoes, new(rules.Revoked), store.Audit{}, now).Failure.Message; !strings.HasPrefix(text, "undo given up: abandoned; ") {
		t.Errorf("by nobody: %s", text)
	}
	if accepted := rules.AcceptGivenUp(gaveUp); !accepted.Abandoned || gaveUp.Abandoned {
		t.Errorf("accepted: %+v of %+v", accepted, gaveUp)
	}
}

func TestGoes_GivenUp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := rules.Retained{State: task.Failed, Type: "t", At: now.Add(-time.Hour)}
	if retain := []store.Retention{{Age: time.Minute}}; !rules.Goes(retain, &of, now) {
		t.Error("a failed task stays")
	} else if of.Stands = true; rules.Goes(retain, &of, now) {
		t.Error("a task goes whose undo was given up")
	}
}
