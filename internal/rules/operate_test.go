package rules_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestCheckOperations(t *testing.T) {
	t.Parallel()
	id := task.ID{1}
	retry := func(list ...rules.EndedNeed) func(task.State) error {
		return func(s task.State) error {
			return rules.CheckRetry(id, s, task.KindHandler, task.JoinNone, edges(list...))
		}
	}
	retryable := []task.State{task.Failed, task.Cancelled}
	for _, tc := range []struct {
		name  string
		check func(task.State) error
		allow []task.State
	}{
		{"cancel", func(s task.State) error { return rules.CheckCancel(&store.CancelTask{Task: id}, s, nil) }, []task.State{task.Pending, task.Ready, task.Running, task.Blocked}},
		{"retry", retry(), retryable},
		{"retry with a failed need", retry(needs(failed)), nil},
		{"retry with a failed need that may", retry(needs(allowed)), retryable},
		{"retry with an open need", retry(needs(open)), retryable},
		{"retry with a failed need whose end counts", retry(ifDone(failed)), retryable},
		{"retry with a failed need whose failure counts", retry(ifFailed(failed)), retryable},
		{"retry with one of two failed needs whose failure counts", retry(ifFailed(succeeded), ifFailed(expired)), retryable},
		{"retry with a cancelled need whose failure would count", retry(ifFailed(cancelled)), nil},
		{"retry with successful needs whose failure would count", retry(ifFailed(succeeded), ifFailed(succeeded)), nil},
		{"retry with an open need whose failure would count", retry(ifFailed(succeeded), ifFailed(open)), retryable},
		{"pause", func(s task.State) error { return rules.CheckPause(id, s) }, []task.State{task.Pending, task.Ready, task.Running, task.Blocked}},
		{"unblock", func(s task.State) error {
			return rules.CheckUnblock(&store.UnblockTask{Task: id}, s, task.WaitManual, nil)
		}, []task.State{task.Blocked}},
		{"delete", func(s task.State) error {
			return rules.CheckDelete(id, s, task.ID{}, task.ID{}, rules.Awaiter{}, task.ID{})
		}, []task.State{task.Succeeded, task.Failed, task.Cancelled}},
		{"delete a task of a job", func(s task.State) error {
			return rules.CheckDelete(id, s, task.ID{2}, task.ID{}, rules.Awaiter{}, task.ID{})
		}, nil},
		{"delete a task whose child has not ended", func(s task.State) error {
			return rules.CheckDelete(id, s, task.ID{}, task.ID{}, rules.Awaiter{}, task.ID{2})
		}, nil},
		{"delete a task that is waited for", func(s task.State) error {
			return rules.CheckDelete(id, s, task.ID{}, task.ID{2}, rules.Awaiter{}, task.ID{})
		}, nil},
		{"delete a task whose parent goes on", func(s task.State) error {
			return rules.CheckDelete(id, s, task.ID{}, task.ID{}, rules.Awaiter{task.ID{2}, task.Ready}, task.ID{})
		}, nil},
		{"delete a task whose parent may be retried", func(s task.State) error {
			return rules.CheckDelete(id, s, task.ID{}, task.ID{}, rules.Awaiter{task.ID{2}, task.Failed}, task.ID{})
		}, nil},
	} {
		for _, s := range task.States() {
			allowed := false
			for _, a := range tc.allow {
				allowed = allowed || a == s
			}
			err := tc.check(s)
			if (err == nil) != allowed {
				t.Errorf("%s a %s task: %v", tc.name, s, err)
			}
			if err != nil && (!errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "is "+string(s)) && !strings.Contains(err.Error(), string(s)+" already;")) {
				t.Errorf("%s a %s task: %v", tc.name, s, err)
			}
		}
	}
	for want, verb := range map[string]string{
		"cancel":        rules.CancelVerb(&store.CancelTask{}, rules.EndsNow),
		"force_cancel":  rules.CancelVerb(&store.CancelTask{Force: true}, rules.ForcesUndo),
		"abandon_undo":  rules.CancelVerb(&store.CancelTask{Force: true}, rules.AbandonsUndo),
		"retry":         rules.RetryVerb(&store.RetryTask{}),
		"retry_cleanup": rules.RetryVerb(&store.RetryTask{Cleanup: true}),
	} {
		if verb != want {
			t.Errorf("the audit says %q, want %q", verb, want)
		}
	}
	if err := rules.UnknownCommand(nil); err == nil {
		t.Error("a command that stores do not know is accepted")
	}
	for _, err := range []error{rules.NotFound(id), rules.JobNotFound(id)} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("not found: %v", err)
		}
	}
}

// An input answers only the question that the task waits with.
func TestUnblockFor(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`"yes"`)
	for name, tc := range map[string]struct {
		cmd     store.UnblockTask
		failure *task.Error
		want    string
		refused bool
	}{
		"a question":                 {store.UnblockTask{Input: input}, &task.Error{Ask: "a"}, "a", false},
		"a question by name":         {store.UnblockTask{Input: input, Ask: "a"}, &task.Error{Ask: "a"}, "a", false},
		"another question":           {store.UnblockTask{Input: input, Ask: "a"}, &task.Error{Ask: "b"}, "b", true},
		"no question":                {store.UnblockTask{Input: input}, &task.Error{Step: "a"}, "", false},
		"no question, asked by name": {store.UnblockTask{Input: input, Ask: "a"}, &task.Error{Step: "a"}, "", true},
		"no error":                   {store.UnblockTask{Input: input}, nil, "", false},
		"no input":                   {store.UnblockTask{}, &task.Error{Ask: "a"}, "", false},
	} {
		if got := rules.UnblockFor(&tc.cmd, tc.failure); got != tc.want {
			t.Errorf("%s: the input is for %q, want %q", name, got, tc.want)
		}
		if err := rules.CheckUnblock(&tc.cmd, task.Blocked, task.WaitManual, tc.failure); errors.Is(err, store.ErrChanged) != tc.refused || err != nil && !tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckSeen(t *testing.T) {
	t.Parallel()
	for seen, want := range map[int64]error{0: nil, 7: nil, 6: store.ErrChanged, 8: store.ErrChanged} {
		if err := rules.CheckSeen(task.ID{}, store.Seen{Epoch: seen}, 7, time.Unix(5, 0)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("seen %d of 7: %v", seen, err)
		}
	}
	for at, want := range map[time.Time]error{{}: nil, time.Unix(5, 0).UTC(): nil, time.Unix(4, 0): store.ErrChanged, time.Unix(5, 1000): store.ErrChanged} {
		if err := rules.CheckSeen(task.ID{}, store.Seen{Epoch: 7, UpdatedAt: at}, 7, time.Unix(5, 0)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("seen when it had changed at %v: %v", at, err)
		}
	}
}

func TestExtendedDeadline(t *testing.T) {
	t.Parallel()
	minute := task.Budget{MaxDuration: time.Minute}
	for _, tc := range []struct {
		budget         task.Budget
		deadline, want time.Time
	}{
		{task.Budget{}, time.Time{}, time.Time{}},
		{minute, now.Add(1), now.Add(1)},
		{minute, now, now.Add(time.Minute)},
		{minute, now.Add(-time.Hour), now.Add(time.Minute)},
	} {
		if got := rules.ExtendedDeadline(tc.budget, tc.deadline, now); !got.Equal(tc.want) {
			t.Errorf("%s after %s: %s, want %s", tc.deadline, tc.budget.MaxDuration, got, tc.want)
		}
	}
}

func TestRevive(t *testing.T) {
	t.Parallel()
	const none = rules.NoIfFailed
	for _, tc := range []struct {
		name     string
		needs    []rules.Need
		deadline time.Time
		job      time.Time
		want     rules.Revival
	}{
		{"without needs", nil, time.Time{}, time.Time{}, rules.Revival{State: task.Ready}},
		{"its needs succeeded", edges(needs(succeeded), needs(allowed)), time.Time{}, time.Time{}, rules.Revival{State: task.Ready}},
		{"a need is under way", edges(needs(succeeded), needs(open), needs(open)), time.Time{}, time.Time{}, rules.Revival{State: task.Pending, Waiting: task.WaitDeps, Waits: rules.Waits{Open: 2}}},
		{"an end that counts", edges(ifDone(failed), ifFailed(failed), ifFailed(open)), time.Time{}, time.Time{}, rules.Revival{State: task.Ready}},
		{"a deadline ahead", nil, now.Add(1), now.Add(9), rules.Revival{State: task.Ready, Deadline: now.Add(1)}},
		{"a deadline that passed", nil, now, time.Time{}, rules.Revival{State: task.Ready}},
		{"a deadline that passed, in a job with time again", nil, now, now.Add(9), rules.Revival{State: task.Ready, Deadline: now.Add(9)}},
	} {
		tc.want.Waits.IfFailed = none
		if got := rules.Revive(&rules.Revived{Needs: tc.needs, Deadline: tc.deadline, Job: tc.job}, now); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
	for _, tc := range []struct {
		name  string
		state task.State
		kind  task.ErrorKind
		needs []rules.Need
		want  bool
	}{
		{"ended for a need", task.Cancelled, task.KindDependencyFailed, edges(needs(open)), true},
		{"ended for a need, another one is dead", task.Cancelled, task.KindDependencyFailed, edges(needs(open), needs(cancelled)), false},
		{"ended for a need, another one failed, which is allowed", task.Cancelled, task.KindDependencyFailed, edges(needs(open), needs(allowed)), true},
		{"not needed, because a need was cancelled", task.Cancelled, task.KindNotNeeded, edges(ifFailed(open)), true},
		{"not needed, and another need succeeded", task.Cancelled, task.KindNotNeeded, edges(ifFailed(open), ifFailed(succeeded)), true},
		{"not needed, and it stays so", task.Cancelled, task.KindNotNeeded, edges(ifFailed(cancelled), ifFailed(succeeded)), false},
		{"ended for a need, and will not be needed", task.Cancelled, task.KindDependencyFailed, edges(needs(open), ifFailed(succeeded)), true},
		{"cancelled by a person", task.Cancelled, task.KindCancelled, edges(needs(open)), false},
		{"failed by itself", task.Failed, task.KindDependencyFailed, edges(needs(open)), false},
	} {
		if got := rules.RevivesDependent(tc.state, tc.kind, task.JoinNone, tc.needs); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	for count, want := range map[int]int{0: 0, 2: 2, 3: 2, 9: 2} {
		if got := rules.UnblockedAttempts(count, 3); got != want {
			t.Errorf("UnblockedAttempts(%d, 3) = %d, want %d", count, got, want)
		}
	}
	if got := rules.UnblockedAttempts(0, 0); got != 0 {
		t.Errorf("UnblockedAttempts(0, 0) = %d", got)
	}
}

func TestReopensEdge(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		state    task.State
		why      task.Waiting
		attempts int
		want     bool
	}{
		{"it waits for another need", task.Pending, task.WaitDeps, 0, true},
		{"revived, it waits for another need", task.Pending, task.WaitDeps, 2, true},
		{"ready", task.Ready, task.WaitNone, 0, true},
		{"it waits for its own delay", task.Pending, task.WaitDelay, 0, true},
		{"ready to run again", task.Ready, task.WaitNone, 1, false},
		{"asleep", task.Pending, task.WaitSleep, 1, false},
		{"running", task.Running, task.WaitNone, 1, false},
		{"blocked", task.Blocked, task.WaitManual, 1, false},
		{"ended", task.Succeeded, task.WaitNone, 1, false},
		{"cancelled before it started", task.Cancelled, task.WaitNone, 0, false},
	} {
		if got := rules.ReopensEdge(tc.state, tc.why, tc.attempts, task.JoinNone, false); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
