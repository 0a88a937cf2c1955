package decide_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

func failing(count, limit int) decide.Input {
	return decide.Input{
		Task:    task.Task{ID: task.ID{1}, AttemptNo: count + 1, AttemptCount: count, MaxAttempts: limit, Backoff: 2 * time.Second, BackoffMax: time.Hour},
		Outcome: task.OutcomeFailure,
		Error:   task.Error{Kind: task.KindHandler, Message: "no"},
	}
}

func TestDefault(t *testing.T) {
	with := func(in decide.Input, change func(*decide.Input)) decide.Input { change(&in); return in }
	for _, tc := range []struct {
		name string
		in   decide.Input
		want task.DecisionKind
	}{
		{"first of five fails", failing(0, 5), task.DecideRetry},
		{"fourth of five fails", failing(3, 5), task.DecideRetry},
		{"last fails", failing(4, 5), task.DecideMarkDead},
		{"no retries", failing(0, 1), task.DecideMarkDead},
		{"permanent", with(failing(0, 5), func(in *decide.Input) { in.Permanent = true }), task.DecideMarkDead},
		{"deadline before the retry", with(failing(0, 5), func(in *decide.Input) { in.TimeLeft = time.Second }), task.DecideMarkDead},
		{"deadline after the retry", with(failing(0, 5), func(in *decide.Input) { in.TimeLeft = time.Minute }), task.DecideRetry},
		{"blocked", with(failing(0, 5), func(in *decide.Input) { in.Outcome = task.OutcomeBlocked }), task.DecideBlock},
		{"idle for long", with(failing(8, 100), func(in *decide.Input) { in.IdleAttempts = task.DefaultMaxNoProgress }), task.DecideBlock},
		{"idle for less long", with(failing(8, 100), func(in *decide.Input) { in.IdleAttempts = task.DefaultMaxNoProgress - 1 }), task.DecideRetry},
		{"idle for as long as it may be", with(failing(8, 100), func(in *decide.Input) { in.IdleAttempts, in.Task.MaxNoProgress = 9, 9 }), task.DecideBlock},
		{"idle, and no attempts are left", with(failing(99, 100), func(in *decide.Input) { in.IdleAttempts, in.Task.MaxNoProgress = 9, 9 }), task.DecideMarkDead},
		{"undecodable", with(failing(0, 5), func(in *decide.Input) { in.Outcome = task.OutcomeDecodeFailed }), task.DecideBlock},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decide.Default{}.Decide(tc.in)
			if got.Kind != tc.want {
				t.Errorf("got %s, want %s (%s)", got.Kind, tc.want, got.Reason.Text)
			}
			if got.Reason.Text == "" || got.Reason.Policy == "" || got.Reason.Version == 0 {
				t.Errorf("a decision without its reason: %+v", got.Reason)
			}
			if again := (decide.Default{}).Decide(tc.in); !reflect.DeepEqual(got, again) {
				t.Errorf("the same input was decided twice: %+v, then %+v", got, again)
			}
		})
	}
}

func TestBackoffDoublesWithinTenPercentUpToTheCap(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 3: 8 * time.Second, 4: 16 * time.Second, 40: time.Hour} {
		for i := range 200 {
			in := failing(n-1, 100).Task
			in.ID = task.ID{byte(i)}
			got := decide.Backoff(in, n)
			if got < want*9/10 || got > min(want*11/10, time.Hour) {
				t.Fatalf("backoff after %d failures = %s, want %s ± 10%%", n, got, want)
			}
		}
	}
}

func TestHandlersWishWins(t *testing.T) {
	in := failing(0, 5)
	in.RetryAfter = 7 * time.Minute
	if got := (decide.Default{}).Decide(in); got.Delay != 7*time.Minute {
		t.Errorf("delay = %s, want the handler's 7m", got.Delay)
	}
}

func TestChainTakesTheFirstOpinion(t *testing.T) {
	silent := decide.Func(func(decide.Input) decide.Decision { return decide.Decision{} })
	block := decide.Func(func(decide.Input) decide.Decision { return decide.Decision{Kind: task.DecideBlock} })
	if got := decide.Chain(silent, block).Decide(failing(0, 5)); got.Kind != task.DecideBlock {
		t.Errorf("got %s, want block", got.Kind)
	}
	if got := decide.Chain(silent).Decide(failing(0, 5)); got.Kind != task.DecideRetry {
		t.Errorf("got %s, want the default's retry", got.Kind)
	}
}

// The reason lists the evidence and the change, which `weaver why` shows.
func TestDefaultGivesItsReason(t *testing.T) {
	in := failing(1, 5)
	in.RetryAfter, in.TimeLeft = 1234*time.Millisecond, time.Minute+999*time.Microsecond
	want := task.Reason{
		Policy: "default", Version: 3,
		Text:   "attempt 2 of 5 failed: retry after 1.2s, as the handler asked",
		Change: "attempt 3 after 1.2s",
		Evidence: map[string]any{
			"attempt_no": 2, "attempt_count": 2, "max_attempts": 5, "error_kind": "handler_error", "left": "1m0s",
		},
	}
	if got := (decide.Default{}).Decide(in).Reason; !reflect.DeepEqual(got, want) {
		t.Errorf("reason %+v, want %+v", got, want)
	}
	in.TimeLeft = 0
	if _, there := (decide.Default{}).Decide(in).Reason.Evidence["left"]; there {
		t.Error("a task without a deadline has time left")
	}
	in.RetryAfter, in.TimeLeft = time.Second, time.Second
	if got := (decide.Default{}).Decide(in); got.Kind != task.DecideMarkDead ||
		got.Reason.Text != "the next attempt, 1s from now, would start after the deadline, 1s from now" {
		t.Errorf("a retry at the very deadline: %s: %s", got.Kind, got.Reason.Text)
	}
	in.RetryAfter, in.TimeLeft = 1234*time.Microsecond, 0
	if got := (decide.Default{}).Decide(in).Reason.Change; got != "attempt 3 after 1ms" {
		t.Errorf("a short delay: %q", got)
	}
}

func TestBackoffDefaultsAndSpread(t *testing.T) {
	plain := task.Task{ID: task.ID{1}, AttemptNo: 1}
	given := plain
	given.Backoff, given.BackoffMax = task.DefaultBackoff, task.DefaultBackoffMax
	for _, n := range []int{1, 5, 40} {
		if a, b := decide.Backoff(plain, n), decide.Backoff(given, n); a != b {
			t.Errorf("after %d failures: %s by default, %s with the defaults given", n, a, b)
		}
	}
	given.Backoff = 5 * time.Second
	if got := decide.Backoff(given, 1); got < 4500*time.Millisecond || got > 5500*time.Millisecond {
		t.Errorf("a base of 5s gives %s", got)
	}
	given.Backoff = task.DefaultBackoff
	// Delays vary in both directions, never exceed the cap, and are sometimes below it.
	below, above, capped := false, false, false
	for i := range 100 {
		in := given
		in.AttemptNo = i
		d := decide.Backoff(in, 1)
		below, above = below || d < task.DefaultBackoff, above || d > task.DefaultBackoff
		in.BackoffMax = task.DefaultBackoff
		if d := decide.Backoff(in, 2); d > task.DefaultBackoff || d < task.DefaultBackoff*9/10 {
			t.Errorf("%s with a cap of %s", d, task.DefaultBackoff)
		} else if d < task.DefaultBackoff {
			capped = true
		}
	}
	if !below || !above || !capped {
		t.Errorf("delays below the base: %v, above: %v, below the cap: %v", below, above, capped)
	}
}

func TestDirectRoutesByType(t *testing.T) {
	if got := (decide.Direct{}).Route(task.Task{Type: "acme.a.b.v1"}); got != (decide.Route{}) {
		t.Errorf("routed to %q", got)
	}
}
