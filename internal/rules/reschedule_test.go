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

func TestCheckReschedule(t *testing.T) {
	t.Parallel()
	id := task.ID{1}
	for _, s := range task.States() {
		for _, why := range []task.Waiting{task.WaitNone, task.WaitDelay, task.WaitRetry, task.WaitSleep, task.WaitDeps, task.WaitManual, task.WaitSignal, task.WaitChildren} {
			waits := why == task.WaitNone || why == task.WaitDelay || why == task.WaitRetry || why == task.WaitSleep
			allowed := waits && (s == task.Pending || s == task.Ready)
			if err := rules.CheckReschedule(id, s, why, true); err == nil {
				t.Errorf("reschedule a task that is %s/%s and is being undone", s, why)
			}
			err := rules.CheckReschedule(id, s, why, false)
			if (err == nil) != allowed || err != nil && (!errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "is "+string(s))) {
				t.Errorf("reschedule a task that is %s/%s: %v", s, why, err)
			}
		}
	}
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago, soon, later := now.Add(-time.Minute), now.Add(time.Minute), now.Add(time.Hour)
	pending := func(why task.Waiting, at time.Time) rules.Rescheduled {
		return rules.Rescheduled{State: task.Pending, Waiting: why, NotBefore: at, Due: at}
	}
	dueNow := rules.Rescheduled{State: task.Ready, Due: now}
	for _, c := range []struct {
		why     task.Waiting
		due, at time.Time
		want    rules.Rescheduled
		ok      bool
	}{
		{task.WaitDelay, soon, later, pending(task.WaitDelay, later), true},
		{task.WaitRetry, later, soon, pending(task.WaitRetry, soon), true},
		{task.WaitSleep, later, soon, pending(task.WaitSleep, soon), true},
		{task.WaitNone, ago, soon, pending(task.WaitDelay, soon), true},
		{task.WaitSleep, later, time.Time{}, dueNow, true},
		{task.WaitSleep, later, now, dueNow, true},
		{task.WaitRetry, later, ago, dueNow, true},
		{task.WaitDelay, ago, time.Time{}, dueNow, false},
		{task.WaitNone, now, ago, dueNow, false},
	} {
		if got, ok := rules.Reschedule(c.why, c.due, c.at, now); got != c.want || ok != c.ok {
			t.Errorf("Reschedule(%q, %v, %v) = %+v, %v; want %+v, %v", c.why, c.due, c.at, got, ok, c.want, c.ok)
		}
	}
}
