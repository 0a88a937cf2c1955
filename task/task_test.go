package task_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/task"
)

// legal repeats the table of transitions, written independently of the code.
const legal = `
pending   > ready running failed cancelled blocked
ready     > running pending cancelled blocked
running   > succeeded failed cancelled blocked pending ready
blocked   > pending ready failed cancelled
failed    > pending ready
cancelled > pending ready
succeeded >
`

func TestMoves(t *testing.T) {
	allowed := make(map[string]bool)
	for line := range strings.Lines(strings.TrimSpace(legal)) {
		from, tos, _ := strings.Cut(line, ">")
		for _, to := range strings.Fields(tos) {
			allowed[strings.TrimSpace(from)+">"+to] = true
		}
	}
	for _, from := range task.States() {
		for _, to := range task.States() {
			want := allowed[string(from)+">"+string(to)]
			if got := task.CanMove(from, to); got != want {
				t.Errorf("CanMove(%s, %s) = %v, want %v", from, to, got, want)
			}
		}
	}
	if task.CanMove("pending", "nonsense") || task.State("nonsense").Valid() {
		t.Error("a state that does not exist is valid")
	}
}

func TestCheckTypeName(t *testing.T) {
	for _, good := range []string{"acme.billing.charge.v1", "a.b.c.v10", "a_1.2.3_.v999"} {
		if err := task.CheckTypeName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "sync-users", "acme.billing.charge", "acme.billing.charge.v0", "acme.billing.charge.v01", "Acme.billing.charge.v1",
		"1acme.billing.charge.v1", "acme..charge.v1", "a.b.c.d.v1", "acme.billing.charge.v1 ", "acme.billing.charge.v1\n",
		"a.b." + strings.Repeat("c", 255) + ".v1",
	} {
		err := task.CheckTypeName(bad)
		if err == nil {
			t.Errorf("%q is accepted", bad)
			continue
		}
		if !strings.Contains(err.Error(), "bytes long") && !strings.Contains(err.Error(), "acme.billing.charge.v1") {
			t.Errorf("%q: the error gives no example: %v", bad, err)
		}
	}
}

func TestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := task.NewIDs(nil)
		var all []task.ID
		for i := range 5000 {
			if i%1000 == 999 {
				time.Sleep(time.Millisecond)
			}
			all = append(all, ids.New())
		}
		if !slices.IsSortedFunc(all, task.ID.Compare) {
			t.Error("ids are not in the order of their creation")
		}
		if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
			t.Errorf("%d of %d ids are distinct", n, len(all))
		}
		if got := all[0].Time(); !got.Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("the first id's time is %s", got)
		}
	})
}

func TestIDsAreRepeatableFromASeed(t *testing.T) {
	make5 := func() (ids []task.ID) {
		synctest.Test(t, func(*testing.T) {
			src := task.NewIDs(rand.NewChaCha8([32]byte{7}))
			for range 5 {
				ids = append(ids, src.New())
			}
		})
		return ids
	}
	if a, b := make5(), make5(); !slices.Equal(a, b) {
		t.Errorf("the same seed gave %v, then %v", a, b)
	}
}

func TestIDText(t *testing.T) {
	id := task.NewIDs(nil).New()
	back, err := task.ParseID(strings.ToLower(id.String()))
	if err != nil || back != id {
		t.Errorf("ParseID(%s) = %v, %v", id, back, err)
	}
	var in struct{ A, B task.ID }
	raw, err := json.Marshal(map[string]any{"A": id, "B": task.ID{}})
	if err != nil || json.Unmarshal(raw, &in) != nil || in.A != id || !in.B.IsZero() {
		t.Errorf("JSON round trip of %s: %s, %+v, %v", id, raw, in, err)
	}
	for _, bad := range []string{"", "x", "01K", id.String() + "0", strings.Repeat("U", 26)} {
		if _, err := task.ParseID(bad); err == nil || !strings.Contains(err.Error(), "26 characters") {
			t.Errorf("ParseID(%q): %v", bad, err)
		}
	}
	if a, b := task.NewLeaseID(), task.NewLeaseID(); a == b {
		t.Error("two lease ids are equal")
	}
}

func TestFindCycle(t *testing.T) {
	graph := func(edges ...string) ([]string, map[string][]string) {
		needs := make(map[string][]string)
		var order []string
		for _, e := range edges {
			from, to, _ := strings.Cut(e, ">")
			needs[from] = append(needs[from], to)
			order = append(order, from, to)
		}
		return order, needs
	}
	for _, tc := range []struct {
		edges []string
		want  string
	}{
		{[]string{"b>a", "c>a", "d>b", "d>c"}, ""},
		{[]string{"a>a"}, "a → a"},
		{[]string{"a>b", "b>c", "c>a"}, "a → b → c → a"},
		{[]string{"x>a", "a>b", "b>a"}, "a → b → a"},
	} {
		if got := task.CycleString(task.FindCycle(graph(tc.edges...))); got != tc.want {
			t.Errorf("%v: cycle %q, want %q", tc.edges, got, tc.want)
		}
	}
	// A long chain must not overflow the stack, and the cycle through its last edge is found.
	needs := make(map[string][]string)
	var order []string
	for i := range 200_000 {
		order = append(order, fmt.Sprint(i))
		needs[fmt.Sprint(i)] = []string{fmt.Sprint(i + 1)}
	}
	if c := task.FindCycle(order, needs); c != nil {
		t.Errorf("a chain has a cycle of %d", len(c))
	}
	needs["200000"] = []string{"0"}
	if c := task.FindCycle(order, needs); len(c) != 200_002 {
		t.Errorf("the cycle has %d nodes", len(c))
	}
}

func TestEdgesHold(t *testing.T) {
	for _, tc := range []struct {
		kind  task.EdgeKind
		end   task.End
		holds bool
		ok    bool
	}{
		{task.OnSuccess, task.End{State: task.Running}, false, false},
		{task.OnSuccess, task.End{State: task.Blocked}, false, false},
		{task.OnSuccess, task.End{State: task.Succeeded}, true, true},
		{task.OnSuccess, task.End{State: task.Failed}, false, true},
		{task.OnSuccess, task.End{State: task.Failed, AllowFailure: true}, true, true},
		{task.OnSuccess, task.End{State: task.Cancelled, Kind: task.KindDeadline}, false, true},
		{task.OnSuccess, task.End{State: task.Cancelled, Kind: task.KindDeadline, AllowFailure: true}, true, true},
		{task.OnSuccess, task.End{State: task.Cancelled, Kind: task.KindDependencyFailed, AllowFailure: true}, false, true},
		{task.OnSuccess, task.End{State: task.Cancelled, Kind: task.KindCancelled, AllowFailure: true}, false, true},
		{task.OnFailed, task.End{State: task.Failed}, true, true},
		{task.OnFailed, task.End{State: task.Failed, AllowFailure: true}, true, true},
		{task.OnFailed, task.End{State: task.Cancelled, Kind: task.KindCancelled}, false, true},
		{task.OnFailed, task.End{State: task.Cancelled, Kind: task.KindNotNeeded}, false, true},
		{task.OnFailed, task.End{State: task.Cancelled, Kind: task.KindDependencyFailed}, true, true},
		{task.OnFailed, task.End{State: task.Cancelled, Kind: task.KindDeadline}, true, true},
		{task.OnFailed, task.End{State: task.Cancelled, Kind: task.KindBudget}, true, true},
		{task.OnFailed, task.End{State: task.Succeeded}, false, true},
		{task.OnDone, task.End{State: task.Cancelled}, true, true},
		{task.OnDone, task.End{State: task.Ready}, false, false},
	} {
		if holds, ok := tc.kind.Holds(tc.end); holds != tc.holds || ok != tc.ok {
			t.Errorf("%s.Holds(%+v) = %v, %v", tc.kind, tc.end, holds, ok)
		}
	}
}

func TestJobState(t *testing.T) {
	count := func(tasks ...task.JobCounters) (sum task.JobCounters) {
		for _, c := range tasks {
			sum = sum.Add(c)
		}
		return sum
	}
	done := task.Count(task.End{State: task.Succeeded}, "", "", false)
	for _, tc := range []struct {
		name   string
		of     task.JobCounters
		cancel bool
		want   task.JobState
	}{
		{"one runs", count(done, task.Count(task.End{State: task.Running}, "", "", false)), false, task.JobRunning},
		{"one retries later", count(done, task.Count(task.End{State: task.Pending}, task.WaitRetry, "", false)), false, task.JobRunning},
		{"one waits for a task of its job, which is blocked", count(task.Count(task.End{State: task.Blocked}, task.WaitManual, "", false), task.Count(task.End{State: task.Pending}, task.WaitDeps, task.JoinDependency, false)), false, task.JobBlocked},
		{"one waits for a task of another job", count(task.Count(task.End{State: task.Pending}, task.WaitDeps, task.JoinOutside, false)), false, task.JobRunning},
		{"one waits for a signal", count(task.Count(task.End{State: task.Pending}, task.WaitSignal, "", false)), false, task.JobBlocked},
		{"one waits for a signal, not for ever", count(task.Count(task.End{State: task.Pending}, task.WaitSignal, "", true)), false, task.JobRunning},
		{"one waits for the children of a call, not for ever", count(task.Count(task.End{State: task.Pending}, task.WaitChildren, "", true)), false, task.JobRunning},
		{"one decomposed, and its children are blocked", count(task.Count(task.End{State: task.Pending}, task.WaitChildren, task.JoinRerun, true)), false, task.JobBlocked},
		{"one waits for its key", count(task.Count(task.End{State: task.Pending}, task.WaitConcurrency, "", false)), false, task.JobRunning},
		{"one is blocked, one needs it", count(task.Count(task.End{State: task.Blocked}, task.WaitManual, "", false), task.Count(task.End{State: task.Pending}, task.WaitDeps, "", false)), false, task.JobBlocked},
		{"all succeeded", count(done, done), false, task.JobSucceeded},
		{"one failed", count(done, task.Count(task.End{State: task.Failed, Kind: task.KindHandler}, "", "", false)), false, task.JobFailed},
		{"one passed its deadline", count(done, task.Count(task.End{State: task.Cancelled, Kind: task.KindDeadline}, "", "", false)), false, task.JobFailed},
		{"one was not needed", count(done, task.Count(task.End{State: task.Cancelled, Kind: task.KindNotNeeded}, "", "", false)), false, task.JobSucceeded},
		{"one failed, which is allowed", count(done, task.Count(task.End{State: task.Failed, AllowFailure: true}, "", "", false)), false, task.JobSucceeded},
		{"one that may fail was cancelled by a person", count(done, task.Count(task.End{State: task.Cancelled, Kind: task.KindCancelled, AllowFailure: true}, "", "", false)), false, task.JobFailed},
		{"cancelled", count(done, task.Count(task.End{State: task.Cancelled, Kind: task.KindCancelled}, "", "", false)), true, task.JobCancelled},
	} {
		if got := task.JobStateOf(tc.of, tc.cancel); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if sum := done.Add(done).Sub(done).Sub(done); sum != (task.JobCounters{}) {
		t.Errorf("counters do not cancel out: %+v", sum)
	}
}

func TestCounts(t *testing.T) {
	counting := []task.Outcome{task.OutcomeSuccess, task.OutcomeFailure, task.OutcomeCancelled}
	free := []task.Outcome{task.OutcomeBlocked, task.OutcomeDecompose, task.OutcomeAddDependency, task.OutcomeSuspended, task.OutcomeReleased, task.OutcomeLeaseLost, task.OutcomeDecodeFailed}
	for _, o := range counting {
		if !task.Counts(o, task.KindHandler) || task.Counts(o, task.KindInternal) {
			t.Errorf("%s counts wrongly", o)
		}
	}
	for _, o := range free {
		if task.Counts(o, "") {
			t.Errorf("%s counts against MaxAttempts", o)
		}
	}
}

func TestTerminalJobs(t *testing.T) {
	for s, want := range map[task.JobState]bool{
		task.JobRunning: false, task.JobBlocked: false, task.JobSucceeded: true, task.JobFailed: true, task.JobCancelled: true,
	} {
		if got := s.Terminal(); got != want {
			t.Errorf("%s.Terminal() = %v", s, got)
		}
	}
	if c := task.Count(task.End{State: task.Failed, Kind: task.KindHandler}, "", "", false); c != (task.JobCounters{Total: 1, Failed: 1}) {
		t.Errorf("a failed task counts as %+v", c)
	}
	if c := task.Count(task.End{State: task.Failed, AllowFailure: true}, "", "", false); c != (task.JobCounters{Total: 1, Allowed: 1}) {
		t.Errorf("a failed task that may counts as %+v", c)
	}
}

func TestZeroIDs(t *testing.T) {
	if !(task.ID{}).IsZero() || (task.ID{1}).IsZero() || !(task.LeaseID{}).IsZero() || (task.LeaseID{1}).IsZero() {
		t.Error("an ID is zero if all its bytes are")
	}
	if len(task.States()) != 7 {
		t.Errorf("%d states", len(task.States()))
	}
}

func TestCheckChildren(t *testing.T) {
	for _, tc := range []struct {
		depth, have, n int
		want           string // part of the error; "": accepted
	}{
		{0, 0, 1, ""},
		{task.MaxDepth - 1, 1, task.MaxChildren - 1, ""},
		{0, 0, 0, "no child"},
		{task.MaxDepth, 0, 1, "at depth 8"},
		{0, 1, task.MaxChildren, "10000 are allowed"},
	} {
		err := task.CheckChildren(tc.depth, tc.have, tc.n)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

func TestFirstID(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	first, ok := task.FirstID(at)
	if !ok || !first.Time().Equal(at) || first.String()[10:] != "0000000000000000" {
		t.Errorf("the first id of %v is %v, %t", at, first, ok)
	}
	if next, _ := task.FirstID(at.Add(1)); !next.Time().Equal(at.Add(time.Millisecond)) {
		t.Errorf("the first id after %v has the time %v", at, next.Time())
	}
	for _, early := range []time.Time{time.UnixMilli(0), time.UnixMilli(-1), time.Date(1, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if id, ok := task.FirstID(early); !ok || !id.IsZero() {
			t.Errorf("the first id of %v is %v, %t", early, id, ok)
		}
	}
	last, _ := task.ParseID("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	if id, ok := task.FirstID(last.Time()); !ok || !id.Time().Equal(last.Time()) {
		t.Errorf("the first id of %v is %v, %t", last.Time(), id, ok)
	}
	for _, late := range []time.Time{last.Time().Add(1), time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if id, ok := task.FirstID(late); ok {
			t.Errorf("the first id of %v is %v", late, id)
		}
	}
}

func TestLeaseIDText(t *testing.T) {
	t.Parallel()
	for _, id := range []task.LeaseID{{}, {1}, task.NewLeaseID()} {
		text, err := id.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got := task.LeaseID{9}
		if err := got.UnmarshalText(text); err != nil || got != id {
			t.Errorf("%q is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "zz", "0g", task.LeaseID{1}.String() + "00", task.LeaseID{1}.String() + "0", task.LeaseID{1}.String()[1:]} {
		if got := (task.LeaseID{}); got.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
