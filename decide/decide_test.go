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
