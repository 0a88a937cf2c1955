package weaver_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// elsewhere is a Caller implemented in another package.
type elsewhere struct{ *weaver.Client }

// List returns no values, like List over HTTP.
func (e elsewhere) List(ctx context.Context, f weaver.Filter) ([]weaver.TaskInfo, string, error) {
	list, next, err := e.Client.List(ctx, f)
	for i := range list {
		list[i].Input, list[i].Output = nil, nil
	}
	return list, next, err
}

func TestHandlesBindToAnyCaller(t *testing.T) {
	typ := weaver.Define[string, string]("engine.carry.wait.v1")
	inBubble(t, func(fx *fixture) {
		e := elsewhere{fx.client}
		h, err := typ.Enqueue(fx.Context(), e, "x")
		fx.must(err)
		j := weaver.NewJob("carried")
		j.Add("one", typ.With("y"))
		made, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		fx.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return in + in, nil }))
		equal(fx, "output", result(fx, h), "xx")
		info, err := h.Get(fx.Context())
		fx.must(err)
		equal(fx, "state", info.State, weaver.StateSucceeded)

		list, _, err := typ.List(fx.Context(), e, weaver.Filter{})
		fx.must(err)
		equal(fx, "tasks", len(list), 2)
		wantError(fx, list[0].DecodeError, nil, "were not read", "Get")
		out, err := typ.JobOutput(fx.Context(), e, made.ID(), "one")
		fx.must(err)
		equal(fx, "output of the job's task", out, "yy")

		bound := j.Submitted(fx.client, made.ID(), made.Disposition())
		res, err := bound.Wait(fx.Context())
		fx.must(err)
		equal(fx, "job", res.State, task.JobSucceeded)
		_, err = j.Submitted(nil, made.ID(), made.Disposition()).Wait(fx.Context())
		wantError(fx, err, weaver.ErrUnbound)
	})
}

func TestPlainForms(t *testing.T) {
	typ := weaver.Define[string, string]("engine.carry.plain.v1", weaver.Queue("q"), weaver.Label("team", "pay"))
	d := typ.With("x", weaver.Priority(2), weaver.IdempotencyKey("k"))
	n, err := d.Task()
	if err != nil || n.Type != typ.Name() || string(n.Input) != `"x"` || n.Queue != "q" || n.Priority != 2 || n.IdempotencyKey != "k" || n.Labels["team"] != "pay" || !n.ID.IsZero() {
		t.Errorf("Task: %+v, %v", n, err)
	}
	n.Labels["team"] = "other"
	if again, _ := d.Task(); again.Labels["team"] != "pay" {
		t.Error("what Task returns is the draft's own")
	}
	_, err = weaver.Draft{}.Task()
	wantError(t, err, weaver.ErrInvalidInput)
	_, err = typ.With("x", weaver.Priority(10)).Task()
	wantError(t, err, weaver.ErrInvalidOption)

	j := weaver.NewJob("plain", weaver.Budget{MaxTotalAttempts: 7})
	a := j.Add("a", typ.With("1"))
	j.Add("b", typ.With("2"), weaver.Needs(a), weaver.AllowFailure())
	job, tasks, err := j.Plain(weaver.IdempotencyKey("nightly"))
	if err != nil {
		t.Fatal(err)
	}
	if job.Name != "plain" || job.Budget.MaxTotalAttempts != 7 || job.IdempotencyKey != "nightly" || len(tasks) != 2 {
		t.Errorf("Plain: %+v, %d tasks", job, len(tasks))
	}
	if b := tasks[1]; b.Node != "b" || !b.AllowFailure || !slices.Equal(b.Needs, []task.Edge{{Needs: tasks[0].ID, Kind: task.OnSuccess}}) {
		t.Errorf("the second task: %+v", b)
	}
	j.Add("a", typ.With("3"))
	j.Add("c", weaver.Draft{})
	_, _, err = j.Plain(nil)
	wantError(t, err, weaver.ErrInvalidJob, `two tasks are named "a"`, "the draft is empty", "an option is nil")
}

func TestReadOperateOptions(t *testing.T) {
	seen := time.Unix(1, 0)
	o, err := weaver.ReadOperateOptions(store.RerunTask{}, weaver.By("ops"), weaver.Reason("why"), weaver.SeenEpoch(3, seen), weaver.RerunInput(7), weaver.RerunWith(weaver.Priority(1)))
	if err != nil || o.By != "ops" || o.Reason != "why" || o.SeenEpoch != 3 || !o.SeenUpdatedAt.Equal(seen) || string(o.RerunInput) != "7" || len(o.RerunWith) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = weaver.ReadOperateOptions(store.RetryTask{}, weaver.AddAttempts(2), weaver.AddCost(3), weaver.KeepSteps())
	if err != nil || o.AddAttempts != 2 || o.AddCost != 3 || !o.KeepSteps {
		t.Errorf("%+v, %v", o, err)
	}
	_, err = weaver.ReadOperateOptions(store.RetryTask{}, weaver.Force())
	wantError(t, err, weaver.ErrInvalidOption, "Force")
	_, err = weaver.ReadOperateOptions(store.RetryTask{}, nil)
	wantError(t, err, weaver.ErrInvalidOption)
	_, err = weaver.ReadOperateOptions(store.RerunTask{}, weaver.RerunInput(func() {}))
	wantError(t, err, weaver.ErrInvalidInput)
}
