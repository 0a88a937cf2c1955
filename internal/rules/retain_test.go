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

func TestGoes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	old := func(s task.State, typ string) rules.Retained {
		return rules.Retained{State: s, Type: typ, At: now.Add(-10 * day)}
	}
	week := store.Retention{Age: 7 * day}
	values := store.Retention{Age: 7 * day, Values: true}
	for _, c := range []struct {
		name        string
		retain      []store.Retention
		of          rules.Retained
		goes, drops bool
	}{
		{"no rule", nil, old(task.Succeeded, "a"), false, false},
		{"old enough", []store.Retention{week}, old(task.Succeeded, "a"), true, false},
		{"a job", []store.Retention{week}, old(task.Failed, ""), true, false},
		{"to the instant", []store.Retention{{Age: 10 * day}}, old(task.Failed, "a"), true, false},
		{"too young", []store.Retention{{Age: 10*day + 1}}, old(task.Failed, "a"), false, false},
		{"not ended", []store.Retention{{}}, old(task.Blocked, "a"), false, false},
		{"of another state", []store.Retention{{States: []task.State{task.Failed}}}, old(task.Succeeded, "a"), false, false},
		{"of another type", []store.Retention{{Types: []string{"b"}}}, old(task.Succeeded, "a"), false, false},
		{"a rule for types says nothing of jobs", []store.Retention{{Types: []string{""}}}, old(task.Succeeded, ""), false, false},
		{"the first that matches: for ever", []store.Retention{{Types: []string{"a"}, Age: -1}, week}, old(task.Succeeded, "a"), false, false},
		{"the first that matches: not yet", []store.Retention{{Types: []string{"a"}, Age: 20 * day}, week}, old(task.Succeeded, "a"), false, false},
		{"the first that matches: another", []store.Retention{{Types: []string{"b"}, Age: -1}, week}, old(task.Succeeded, "a"), true, false},
		{"values", []store.Retention{values}, old(task.Succeeded, "a"), false, true},
		{"values have rules of their own", []store.Retention{{Age: -1}, values}, old(task.Succeeded, "a"), false, true},
		{"values of what may be retried", []store.Retention{values}, old(task.Failed, "a"), false, false},
	} {
		if got := rules.Goes(c.retain, &c.of, now); got != c.goes {
			t.Errorf("%s: Goes = %v, want %v", c.name, got, c.goes)
		}
		if got := rules.DropsValues(c.retain, &c.of, now); got != c.drops {
			t.Errorf("%s: DropsValues = %v, want %v", c.name, got, c.drops)
		}
	}
}

func TestYoung(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if _, ok := rules.Young([]store.Retention{{Age: -1}}, now); ok {
		t.Error("rules that keep all have an age")
	}
	from, ok := rules.Young([]store.Retention{{Age: time.Hour}, {Age: time.Minute, Values: true}, {Age: -1}}, now)
	if !ok || !from.Equal(now.Add(-time.Minute)) {
		t.Errorf("Young = %v, %v, want a minute ago", from, ok)
	}
	ids := task.NewIDs(nil)
	id := ids.New()
	if first := rules.FirstID(id.Time()); first.Compare(id) > 0 || !first.Time().Equal(id.Time()) {
		t.Errorf("the first ID of %v is of %v", id.Time(), first.Time())
	}
	if first := rules.FirstID(id.Time().Add(time.Nanosecond)); first.Compare(id) < 0 {
		t.Error("an ID of the millisecond before is not below the first one")
	}
}

func TestCheckDeleteJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state              task.JobState
		busy, needed, base bool
		refused            bool
	}{
		{state: task.JobSucceeded},
		{state: task.JobFailed},
		{state: task.JobRunning, refused: true},
		{state: task.JobBlocked, refused: true},
		{state: task.JobCancelled, busy: true, refused: true},
		{state: task.JobCancelled, needed: true, refused: true},
		{state: task.JobSucceeded, base: true, refused: true},
	} {
		err := rules.CheckDeleteJob(&task.Job{State: c.state}, c.busy, c.needed, c.base, task.ID{})
		if c.refused != errors.Is(err, store.ErrState) || !c.refused && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCheckDeleteJob_GivenUp(t *testing.T) {
	t.Parallel()
	stands := task.NewIDs(nil).New()
	err := rules.CheckDeleteJob(&task.Job{State: task.JobFailed}, false, false, false, stands)
	if !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), stands.String()+" --abandon-undo") {
		t.Errorf("a job with an undo that was given up: %v", err)
	}
}

func TestCollectCursor(t *testing.T) {
	t.Parallel()
	id := task.NewIDs(nil).New()
	for _, c := range []rules.CollectCursor{{Stage: rules.CollectJobs, ID: id}, {Stage: rules.CollectTasks}, {Stage: rules.CollectSpace}} {
		if got, err := rules.ParseCollectCursor(c.String()); err != nil || got != c {
			t.Errorf("%q is read as %+v, %v", c.String(), got, err)
		}
	}
	for _, s := range []string{"x", ":", "jobs", "other:" + id.String(), "jobs:" + id.String() + "x"} {
		if _, err := rules.ParseCollectCursor(s); !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("%q: %v, want ErrBadCursor", s, err)
		}
	}
}
