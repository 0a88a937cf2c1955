package weaver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// alarms is a job of two tasks, one with AllowFailure, an alarm for both, and a clean-up.
func alarms(typ *weaver.Type[string, string], x, y string, opts ...weaver.NodeOption) *weaver.Job {
	j := weaver.NewJob("nightly")
	a, b := j.Add("x", typ.With(x), opts...), j.Add("y", typ.With(y))
	j.Add("after", typ.With("ok"), weaver.Needs(a))
	j.Add("alarm", typ.With("ok"), weaver.IfFailed(a, b))
	j.Add("clean", typ.With("ok"), weaver.IfDone(j.Nodes("x", "y")...))
	return j
}

func TestIfFailedAndAllowFailure(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("node.jobs.do.v1", weaver.NoRetry())
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		switch in {
		case "fail":
			return "", errors.New("no")
		case "ask":
			return typ.Output(ctx, "x")
		}
		return in, nil
	})
	ends := func(fx *fixture, j *weaver.Job, state task.JobState, counters task.JobCounters) weaver.JobResult {
		fx.Helper()
		h := submit(fx, j)
		fx.run(handler)
		res := jobResult(fx, h)
		equal(fx, "state", res.State, state)
		info, err := fx.client.Job(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "counters", info.Counters, counters)
		return res
	}

	for _, bad := range []string{"x", "y"} {
		subtest(t, "the alarm runs when only "+bad+" fails, and the failure stays", func(fx *fixture) {
			in := map[string]string{bad: "fail"}
			want := task.JobCounters{Total: 5, Failed: 1, Succeeded: 4}
			if bad == "x" { // and its dependents
				want = task.JobCounters{Total: 5, Failed: 2, Succeeded: 3}
			}
			res := ends(fx, alarms(typ, in["x"], in["y"]), task.JobFailed, want)
			named(fx, res.Completed, "alarm")
			named(fx, res.Completed, "clean")
		})
	}
	subtest(t, "the alarm is not needed when all goes well", func(fx *fixture) {
		res := ends(fx, alarms(typ, "ok", "ok"), task.JobSucceeded, task.JobCounters{Total: 5, Succeeded: 4})
		equal(fx, "the alarm", named(fx, res.Incomplete, "alarm").Kind, task.KindNotNeeded)
	})
	subtest(t, "a failure that is allowed", func(fx *fixture) {
		j := alarms(typ, "fail", "ok", weaver.AllowFailure())
		j.Add("reads", typ.With("ask"), weaver.Needs(j.Nodes("x")...), weaver.AllowFailure())
		res := ends(fx, j, task.JobSucceeded, task.JobCounters{Total: 6, Allowed: 2, Succeeded: 4})
		named(fx, res.Completed, "after")
		named(fx, res.Completed, "alarm")
		equal(fx, "x may fail", named(fx, res.Failed, "x").Allowed, true)
		reason := named(fx, res.Failed, "reads").Reason
		wantError(fx, errors.New(reason), nil, `"x" is failed, which the job allows`, weaver.ErrNotSucceeded.Error())
	})
}

// A need may be declared in one way only.
func TestNeedsInTwoWays(t *testing.T) {
	typ := weaver.Define[string, string]("node.jobs.twice.v1")
	subtest(t, "refused", func(fx *fixture) {
		j := weaver.NewJob("nightly")
		x := j.Add("x", typ.With(""))
		j.Add("a", typ.With(""), weaver.Needs(x, x), weaver.IfFailed(j.Nodes("x")...))
		j.Add("b", typ.With(""), weaver.IfFailed(x), weaver.IfDone(x))
		_, err := fx.client.Submit(fx.Context(), j)
		wantError(fx, err, weaver.ErrInvalidJob, `"a" has "x" both in Needs and in IfFailed`, `"b" has "x" both in IfFailed and in IfDone`)
	})
}
