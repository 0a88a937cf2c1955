package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// jobOf returns a job with the given tasks and the counters and state that follow from them.
func jobOf(change func(*task.Job), hs ...store.History) book {
	j := task.Job{ID: id(99), Name: "nightly", CreatedAt: ago(time.Hour)}
	var tasks []task.Task
	for _, h := range hs {
		tasks = append(tasks, h.Task)
		j.Counters = j.Counters.Add(task.Count(h.Task.End(), h.Task.Waiting, h.Task.Join, !h.Task.ReadyAt.IsZero()))
	}
	if change != nil {
		change(&j)
	}
	if j.State = task.JobStateOf(j.Counters, j.CancelRequested); j.State.Terminal() {
		j.FinishedAt = ago(time.Minute)
	}
	return book{tasks: hs, job: j, inJob: tasks}
}

func TestWhyJob(t *testing.T) {
	t.Parallel()
	extract := a(1, task.Blocked, named("extract"), waits(task.WaitManual, time.Time{}), failed(task.KindHandler, "who pays?"))
	load := a(2, task.Succeeded, named("load"))
	sum := a(3, task.Pending, named("sum"), waits(task.WaitDeps, time.Time{}), needs(need(extract, false), need(load, true)))
	broken := a(4, task.Failed, named("extract"), failed(task.KindHandler, "no such host"))
	gone := a(5, task.Cancelled, named("sum"), failed(task.KindDependencyFailed, ""), needs(need(broken, true)))
	unneeded := a(6, task.Cancelled, named("alarm"), failed(task.KindNotNeeded, ""))
	runner := a(7, task.Running, named("long"), runs(1, "web1:7", ago(time.Minute), in(time.Second)))
	given := a(8, task.Cancelled, named("given"), failed(task.KindCancelled, ""), with(func(k *task.Task) { k.CancelBy = "ops" }))
	mayFail := a(9, task.Failed, named("lint"), failed(task.KindHandler, "untidy"), with(func(k *task.Task) { k.AllowFailure = true }))
	spent := a(10, task.Failed, named("flaky"), failed(task.KindBudget, "the budget is used up: its job used 4 of 3 attempts"))
	never := a(11, task.Cancelled, named("never"), failed(task.KindBudget, "the budget is used up: its job used 4 of 3 attempts"))
	retried := a(12, task.Pending, named("post"), waits(task.WaitRetry, in(time.Minute)), failed(task.KindHandler, "refused"))
	budgeted := func(j *task.Job) {
		j.Budget, j.AttemptsUsed, j.Cost, j.ExhaustedAt = task.Budget{MaxTotalAttempts: 3, MaxCost: 10}, 4, 20, ago(2*time.Minute)
	}
	asked := func(j *task.Job) { j.CancelRequested, j.CancelBy, j.CancelReason = true, "ops", "wrong day" }

	for _, tt := range []struct {
		name string
		b    book
		want []string
	}{
		{"running", jobOf(nil, runner, sum, extract, load), []string{
			`Job 00000000000000000000000033 "nightly"`,
			"It is running: 3 of its 4 tasks have not ended, 1 of them can go on without help.",
			`  Task "long" (00000000000000000000000007) is running on web1:7, in its attempt 1, which began 1m ago (2026-11-20T11:59:00Z).`,
			`Waiting for others of its tasks: "sum".`,
			"  weaver job cancel 00000000000000000000000033",
		}},
		{"blocked", jobOf(func(j *task.Job) { j.DeadlineAt = in(time.Hour) }, sum, extract, load), []string{
			"It is blocked: 2 of its 3 tasks have not ended, and none of them can go on without a person.",
			`  Task "extract" (00000000000000000000000001) is blocked and waits for a person: who pays?`,
			"What has not ended in 1h (2026-11-20T13:00:00Z), its deadline, is cancelled.",
			"  weaver task unblock 00000000000000000000000001",
		}},
		{"failed", jobOf(nil, load, broken, gone), []string{
			"It failed 1m ago (2026-11-20T11:59:00Z): 1 of 3 tasks failed, 1 was cancelled.",
			`  Task "extract" (00000000000000000000000004) failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.`,
			`Cancelled because of what they need: "sum".`,
			"  weaver task retry 00000000000000000000000004",
		}},
		{"running with losses", jobOf(nil, runner, broken, gone, unneeded), []string{
			"It is running: 1 of its 4 tasks have not ended, 1 of them can go on without help; 1 failed, 1 was cancelled, 1 was not needed.",
		}},
		{"blocked with losses", jobOf(nil, extract, broken, gone), []string{
			"It is blocked: 1 of its 3 tasks have not ended, and none of them can go on without a person; 1 failed, 1 was cancelled.",
		}},
		{"running beside a question", jobOf(nil, runner, extract, retried, broken), []string{
			"extract is blocked: who pays?",
			"It is running: 3 of its 4 tasks have not ended, 2 of them can go on without help; 1 failed.",
			`  Task "extract" (00000000000000000000000001) is blocked and waits for a person: who pays?`,
			`  Task "extract" (00000000000000000000000004) failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.`,
			`  Task "post" (0000000000000000000000000C) waits for its retry, due in 1m (2026-11-20T12:01:00Z): refused.`,
			"  weaver task unblock 00000000000000000000000001",
			"  weaver task retry 00000000000000000000000004",
		}},
		{"blocked beside a failure", jobOf(nil, extract, sum, broken, gone), []string{
			"extract is blocked: who pays?; 1 task needs it; extract failed: no such host.",
			`  Task "extract" (00000000000000000000000004) failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.`,
			"  weaver task retry 00000000000000000000000004",
		}},
		{"succeeded", jobOf(nil, load, unneeded), []string{
			"It succeeded 1m ago (2026-11-20T11:59:00Z): 1 of its 2 tasks succeeded, the others were not needed.",
		}},
		{"succeeded with a failure that is allowed", jobOf(nil, load, mayFail, unneeded), []string{
			"It succeeded 1m ago (2026-11-20T11:59:00Z): 1 of its 3 tasks succeeded, 1 failed, which the job allows, the others were not needed.",
		}},
		{"failed beside one that is allowed", jobOf(nil, mayFail, broken), []string{
			"It failed 1m ago (2026-11-20T11:59:00Z): 1 of 2 tasks failed, 1 failed, which the job allows.",
			`  Task "extract" (00000000000000000000000004) failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.`,
		}},
		{"failed because its budget is used up", jobOf(budgeted, load, spent, never), []string{
			"It failed 1m ago (2026-11-20T11:59:00Z): 1 of 3 tasks failed, 1 was cancelled.",
			`  Task "flaky" (0000000000000000000000000A) failed 1m ago (2026-11-20T11:59:00Z): budget: the budget is used up: its job used 4 of 3 attempts.`,
			"Of its budget it has used 4 of 3 attempts (max_total_attempts) and 20 of 10 micro-units (max_cost): that was all 2m ago (2026-11-20T11:58:00Z), and what had not begun ended.",
			"  weaver job retry 00000000000000000000000033 --add-attempts 2 --add-cost 15",
		}},
		{"all succeeded", jobOf(nil, load), []string{
			"It succeeded 1m ago (2026-11-20T11:59:00Z), with its 1 task.",
		}},
		{"cancelled", jobOf(asked, load, given), []string{
			"It was cancelled 1m ago (2026-11-20T11:59:00Z) by ops: wrong day; 1 of 2 tasks succeeded, 1 was cancelled.",
			`  Task "given" (00000000000000000000000008) was cancelled 1m ago (2026-11-20T11:59:00Z) by ops.`,
		}},
		{"asked to cancel", jobOf(asked, runner), []string{
			"It was asked to cancel by ops: wrong day: what runs still has to end.",
		}},
		{"past its deadline", jobOf(func(j *task.Job) { j.DeadlineAt = ago(time.Second) }, sum, extract), []string{
			"Its deadline passed 1s ago (2026-11-20T11:59:59Z): a worker that is up cancels what has not ended.",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			says(t, shown(tt.b.explain(t, task.ID{}, 10)), tt.want...)
		})
	}
}

func TestWhyJobTellsAFewTasks(t *testing.T) {
	t.Parallel()
	var hs []store.History
	for n := range byte(8) {
		hs = append(hs, a(n+1, task.Failed, named(fmt.Sprintf("n%d", n)), failed(task.KindHandler, "boom")))
	}
	text := shown(jobOf(nil, hs...).explain(t, task.ID{}, 10))
	says(t, text, "  3 tasks more like these: `weaver job show 00000000000000000000000033` lists them.")
}

func TestJobResult(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		states        string // task states: s f a(llowed to fail) c n(ot needed) b p
		job           task.JobState
		state, detail string
	}{
		{"sssssss", task.JobSucceeded, "succeeded in", "7 tasks"},
		{"s", task.JobSucceeded, "succeeded in", "1 task"},
		{"ssn", task.JobSucceeded, "succeeded in", "2 of 3 tasks succeeded, 1 was not needed"},
		{"ssa", task.JobSucceeded, "succeeded in", "2 of 3 tasks succeeded, 1 failed, which the job allows"},
		{"sfa", task.JobFailed, "failed after", "1 of 3 tasks failed, 1 failed, which the job allows"},
		{"ssssfcc", task.JobFailed, "failed after", "1 of 7 tasks failed, 2 were cancelled"},
		{"f", task.JobFailed, "failed after", "1 of 1 task failed"},
		{"sc", task.JobFailed, "failed after", "1 of 2 tasks was cancelled"},
		{"sscc", task.JobCancelled, "was cancelled after", "2 of 4 tasks succeeded, 2 were cancelled (ops: too late)"},
		{"sbpp", task.JobBlocked, "is blocked after", "1 of 4 tasks waits for a person, 2 are left"},
		{"sbbp", task.JobBlocked, "is blocked after", "2 of 4 tasks wait for a person, 1 is left"},
		{"sfcpp", task.JobRunning, "is not finished after", "1 of 5 tasks succeeded, 1 failed, 2 are left, 1 was cancelled"},
		{"", task.JobRunning, "is not finished after", ""},
	} {
		tasks := make([]task.Task, len(tc.states))
		for i, c := range tc.states {
			switch k := &tasks[i]; c {
			case 's':
				k.State = task.Succeeded
			case 'f':
				k.State = task.Failed
			case 'a':
				k.State, k.AllowFailure = task.Failed, true
			case 'c':
				k.State, k.Error = task.Cancelled, &task.Error{Kind: task.KindDependencyFailed}
			case 'n':
				k.State, k.Error = task.Cancelled, &task.Error{Kind: task.KindNotNeeded}
			case 'b':
				k.State = task.Blocked
			case 'p':
				k.State = task.Pending
			}
		}
		j := task.Job{State: tc.job, CancelBy: "ops", CancelReason: "too late"}
		if state, detail := explain.JobResult(&j, tasks); state != tc.state || detail != tc.detail {
			t.Errorf("%s: %q, %q; want %q, %q", tc.states, state, detail, tc.state, tc.detail)
		}
	}
}

// Sentences and lists about a finished job count its failed and cancelled tasks the same way.
func TestJobsAreCountedAlike(t *testing.T) {
	t.Parallel()
	broken := a(1, task.Failed, named("extract"), failed(task.KindHandler, "no such host"))
	gone := a(2, task.Cancelled, named("sum"), failed(task.KindDependencyFailed, ""))
	unneeded := a(3, task.Cancelled, named("alarm"), failed(task.KindNotNeeded, ""))
	b := jobOf(nil, a(4, task.Succeeded), broken, gone, unneeded)
	const words = "1 of 4 tasks failed, 1 was cancelled, 1 was not needed"
	if _, detail := explain.JobResult(&b.job, b.inJob); detail != words {
		t.Errorf("the summary has %q", detail)
	}
	if said := clock.JobState(&b.job, b.inJob); !strings.HasSuffix(said, ": "+words) {
		t.Errorf("job show has %q", said)
	}
	var tally explain.Tally
	for i := range b.inJob {
		tally.Add(b.inJob[i].End(), b.inJob[i].Waiting)
	}
	if got := tally.Words(); got != "1 failed, 1 succeeded, 1 cancelled, 1 not needed" {
		t.Errorf("the live view has %q", got)
	}
	if b.job.Counters.Failed != tally.Failed+tally.Cancelled {
		t.Errorf("job ls has %d, want %d", b.job.Counters.Failed, tally.Failed+tally.Cancelled)
	}
}
