package rules_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

const ttl = 30 * time.Second

func TestReaperEligibleAt(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tc := range []struct {
		name  string
		w     *rules.Worker
		stall rules.Stall
		want  time.Duration // from now
	}{
		{"unknown", nil, rules.Stall{}, ttl},
		{"has just joined", &rules.Worker{LastSeen: now, Since: now}, rules.Stall{}, ttl},
		{"in its warm-up", &rules.Worker{LastSeen: ago(time.Second), Since: ago(10 * time.Second)}, rules.Stall{}, 20 * time.Second},
		{"seen for a TTL", &rules.Worker{LastSeen: now, Since: ago(ttl)}, rules.Stall{}, 0},
		{"seen for long", &rules.Worker{LastSeen: ago(ttl / 2), Since: ago(10 * ttl)}, rules.Stall{}, -9 * ttl},
		{"silent for more than half of a TTL", &rules.Worker{LastSeen: ago(ttl/2 + 1), Since: ago(10 * ttl)}, rules.Stall{}, ttl},
		{"the clock went back", &rules.Worker{LastSeen: now.Add(1), Since: ago(10 * ttl)}, rules.Stall{}, ttl},
		{"the write lock was waited for", &rules.Worker{LastSeen: now, Since: ago(10 * ttl)}, rules.Stall{Waited: ttl/3 + 1, Ago: time.Second}, ttl - time.Second},
		{"the write lock was waited for briefly", &rules.Worker{LastSeen: now, Since: ago(10 * ttl)}, rules.Stall{Waited: ttl / 3}, -9 * ttl},
		{"the write lock was waited for long ago", &rules.Worker{LastSeen: now, Since: ago(2 * ttl)}, rules.Stall{Waited: ttl, Ago: 3 * ttl}, -ttl},
	} {
		if got := rules.ReaperEligibleAt(tc.w, ttl, tc.stall, now); got != now.Add(tc.want) {
			t.Errorf("%s: eligible in %v, want %v", tc.name, got.Sub(now), tc.want)
		}
	}
}

func TestWorkerSeen(t *testing.T) {
	t.Parallel()
	since := now.Add(-time.Hour)
	for gap, want := range map[time.Duration]time.Time{
		0: since, ttl / 3: since, ttl / 2: since, ttl/2 + 1: now, 10 * ttl: now, -1: now,
	} {
		w := rules.Worker{TTL: ttl, LastSeen: now.Add(-gap), Since: since}
		if got := w.Seen(ttl, now); got.Since != want || got.LastSeen != now || got.TTL != ttl {
			t.Errorf("after %v: %+v, want since %v", gap, got, want)
		}
	}
	if got := (&rules.Worker{}).Seen(ttl, now); got.Since != now {
		t.Errorf("a new worker is seen since %v", got.Since)
	}
}

func TestWorkerStopped(t *testing.T) {
	t.Parallel()
	end := now
	for silent, want := range map[time.Duration]bool{ttl: true, ttl/2 + 1: true, ttl / 2: false, 0: false, -ttl: false} {
		w := &rules.Worker{TTL: ttl, LastSeen: end.Add(-silent)}
		if got := w.Stopped(end); got != want {
			t.Errorf("last seen %v before the end of its lease: %v", silent, got)
		}
	}
	if (*rules.Worker)(nil).Stopped(end) {
		t.Error("a worker that is not known did not crash")
	}
	for silent, want := range map[time.Duration]bool{10 * ttl: false, 10*ttl + 1: true} {
		w := &rules.Worker{TTL: time.Second, LastSeen: now.Add(-silent)}
		if got := w.Forgettable(ttl, now); got != want {
			t.Errorf("silent for %v: forgettable %v", silent, got)
		}
	}
}

func TestResolveLoss(t *testing.T) {
	t.Parallel()
	past := now.Add(-time.Second)
	ask := rules.CancelRequest{Kind: task.KindCancelled, By: "ops"}
	for _, tc := range []struct {
		name        string
		lost        rules.LostLease
		budget      int
		state       task.State
		kind        task.ErrorKind
		crash, loss bool
	}{
		{"by a worker that lives", rules.LostLease{Crashes: 9}, 3, task.Ready, "", false, false},
		{"by a worker that stopped", rules.LostLease{Stopped: true}, 3, task.Ready, "", true, false},
		{"the second time", rules.LostLease{Stopped: true, Crashes: 1}, 3, task.Ready, "", true, false},
		{"in quarantine beside others", rules.LostLease{Stopped: true, Crashes: 2}, 3, task.Ready, "", false, true},
		{"alone", rules.LostLease{Stopped: true, Crashes: 2, Alone: true}, 3, task.Failed, task.KindPoison, true, false},
		{"alone without a budget", rules.LostLease{Stopped: true, Crashes: 7, Alone: true}, -1, task.Ready, "", true, false},
		{"with a budget of one", rules.LostLease{Stopped: true}, 1, task.Failed, task.KindPoison, true, false},
		{"with a budget of none", rules.LostLease{Stopped: true}, 0, task.Failed, task.KindPoison, true, false},
		{"asked to cancel", rules.LostLease{Stopped: true, Cancel: ask, Deadline: past}, 1, task.Cancelled, task.KindCancelled, false, false},
		{"past its deadline", rules.LostLease{Stopped: true, Deadline: past}, 1, task.Cancelled, task.KindDeadline, false, false},
		{"before its deadline", rules.LostLease{Stopped: true, Deadline: now.Add(1)}, 3, task.Ready, "", true, false},
	} {
		got := rules.ResolveLoss(&tc.lost, tc.budget, now)
		if got.State != tc.state || rules.KindOf(got.Failure) != tc.kind || got.Crash != tc.crash || got.QuarantineLoss != tc.loss {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if got.Outcome != task.OutcomeLeaseLost || got.CountsAttempt() {
			t.Errorf("%s: the attempt is recorded as %s, counted %v", tc.name, got.Outcome, got.CountsAttempt())
		}
		tc.lost.Created = now.Add(-time.Hour) // an interrupted task comes before younger tasks, a crashed one does not
		if early := rules.ResolveLoss(&tc.lost, tc.budget, now); early.State == task.Ready && early.ReadyAt.Equal(now) != (tc.lost.Crashes > 0) {
			t.Errorf("%s: enqueued an hour ago, it is ready at %v", tc.name, early.ReadyAt)
		}
		if ready := got.State == task.Ready; got.KeepError != ready || ready && got.ReadyAt != now {
			t.Errorf("%s: keeps its error: %v, ready at %v", tc.name, got.KeepError, got.ReadyAt)
		}
	}
}
