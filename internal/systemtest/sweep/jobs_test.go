package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

// byInput is a handler controlled by its input.
func byInput(ctx context.Context, fx *fixture, in string) (string, error) {
	switch in {
	case "fail":
		return "", weaver.Permanent(errors.New("as the input says"))
	case "fail until fixed":
		select {
		case <-fx.marked("fixed"):
			return in, nil
		default:
			return "", weaver.Permanent(errors.New("not fixed"))
		}
	case "block":
		answer, ok, err := weaver.UnblockInput[string](ctx)
		if err != nil || !ok {
			return "", errors.Join(err, weaver.Blocked("an operator has to answer"))
		}
		return answer, nil
	case "wait":
		fx.mark("running")
		return "", rest(ctx, 24*time.Hour)
	}
	return in, nil
}

// splitter is a Decider that splits tasks that are too large. A task that needs an index waits for the task that
// builds it.
var splitter = decide.Func(func(in decide.Input) decide.Decision {
	reason := task.Reason{Policy: "sweep", Version: 1, Text: in.Error.Message}
	switch in.Error.Message {
	case "too large":
		children := []task.Draft{{Type: typeN.Name(), Input: json.RawMessage("0")}, {Type: typeN.Name(), Input: json.RawMessage("2")}}
		return decide.Decision{Kind: task.DecideDecompose, Children: children, Reason: reason}
	case "no index":
		on, err := task.ParseID(in.Task.Metadata["index"])
		if err != nil {
			return decide.Decision{}
		}
		return decide.Decision{Kind: task.DecideAddDependency, DependsOn: on, Reason: reason}
	}
	return decide.Decision{}
})

// jobCases test jobs.
var jobCases = []testCase{
	{
		name:      "a Decider splits a task, and lets another wait",
		tolerates: "children that cannot be read end the attempt",
		onFile:    true,
		cfg:       weaver.Config{Decider: splitter},
		handlers: handleBoth(handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
			if in == "wait" && weaver.Current(ctx).AttemptCount == 0 {
				return "", errors.New("no index")
			}
			return in, nil
		}), handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			if n < 5 {
				return n, nil
			}
			children, err := weaver.Children(ctx)
			if err == nil && len(children) == 0 {
				err = errors.New("too large")
			}
			return len(children), err
		})),
		run: func(fx *fixture) {
			large := enqueue(fx, typeN, 9)
			wait := enqueue(fx, typeA, "wait", weaver.Metadata("index", large.ID().String()))
			succeeds(fx, large, 2)
			succeeds(fx, wait, "wait")
		},
	},
	{
		name:      "an input that is repaired",
		tolerates: "a decision that cannot be carried out now is another one",
		onFile:    true,
		handlers: func(fx *fixture) []weaver.Handler {
			return []weaver.Handler{typeN.Handler(func(_ context.Context, n int) (int, error) { return n, nil },
				weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
					if err := started(ctx, "repair"); err != nil {
						return nil, err
					}
					return json.RawMessage(fmt.Sprint(r.No)), nil
				}))}
		},
		run: func(fx *fixture) {
			h := enqueue(fx, weaver.Define[string, int](typeN.Name()), "one")
			succeeds(fx, h, 1)
			t, err := fx.client.Get(fx.ctx, h.ID())
			fx.must(err)
			if string(t.Input) != "1" || t.RepairCount != 1 || t.AttemptCount != 1 {
				fx.errorf("the input is %s after %d repairs and %d attempts that count", t.Input, t.RepairCount, t.AttemptCount)
			}
			fx.children(weaver.Define[string, string](task.RepairType), 1)
		},
	},
	{
		name:      "a task of a job whose children decompose too",
		tolerates: "children that cannot be read end the attempt",
		onFile:    true,
		handlers: handleBoth(handles(typeA, byInput),
			handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
				if n == 0 {
					return 7, weaver.Decompose(weaver.JoinComplete, typeA.With("a"), typeA.With("b"))
				}
				children, err := weaver.Children(ctx)
				switch {
				case err != nil:
					return 0, err
				case len(children) == 0:
					return 0, weaver.Decompose(weaver.JoinRerun, typeN.With(0), typeA.With("fail"))
				}
				return typeN.OutputOf(children[0])
			}, weaver.CodeVersion(2))),
		run: func(fx *fixture) {
			j := weaver.NewJob("tree")
			top := j.Add("top", typeN.With(1))
			j.Add("after", typeA.With("after"), weaver.Needs(top))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			jobEnds(fx, h, task.JobFailed) // because of the child that fails
		},
	},
	{
		name:      "a job whose tasks pass on their outputs",
		tolerates: "needs that cannot be read end the attempt",
		onFile:    true,
		handlers: handleBoth(handles(typeN, func(_ context.Context, _ *fixture, n int) (int, error) { return n, nil }),
			handles(typeB, func(ctx context.Context, _ *fixture, in string) (string, error) {
				left, err := typeN.Output(ctx, "left")
				if err != nil {
					return "", err
				}
				right, err := typeN.Output(ctx, "right")
				if err != nil {
					return "", err
				}
				return string(rune('a'+left)) + string(rune('a'+right)), nil
			})),
		run: func(fx *fixture) {
			j := weaver.NewJob("diamond")
			top := j.Add("top", typeN.With(0))
			left, right := j.Add("left", typeN.With(1), weaver.Needs(top)), j.Add("right", typeN.With(2), weaver.Needs(top))
			j.Add("bottom", typeB.With("x"), weaver.Needs(left, right))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			jobEnds(fx, h, task.JobSucceeded)
			tasks, err := fx.client.JobTasks(fx.ctx, h.ID())
			fx.must(err)
			if out := string(tasks[3].Output); out != `"bc"` {
				fx.errorf("the last task gave %s", out)
			}
		},
	},
	{
		name:     "edges of all kinds",
		handlers: handles(typeA, byInput),
		run: func(fx *fixture) {
			j := weaver.NewJob("edges")
			good, bad := j.Add("good", typeA.With("x")), j.Add("bad", typeA.With("fail"))
			may := j.Add("may fail", typeA.With("fail"), weaver.AllowFailure())
			j.Add("after good", typeA.With("x"), weaver.Needs(good, may))
			afterBad := j.Add("after bad", typeA.With("x"), weaver.Needs(bad))
			afterThat := j.Add("after that", typeA.With("x"), weaver.Needs(afterBad))
			mendAny := j.Add("mend any", typeA.With("x"), weaver.IfFailed(good, afterThat))
			mendGood := j.Add("mend good", typeA.With("x"), weaver.IfFailed(good))
			j.Add("after mending", typeA.With("x"), weaver.Needs(mendGood))
			anyCase := j.Add("in any case", typeA.With("x"), weaver.IfDone(good, bad, afterThat))
			j.Add("in the end", typeA.With("x"), weaver.Needs(mendAny, anyCase), weaver.IfDone(mendGood))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			res, err := h.Wait(fx.ctx)
			fx.must(err)
			got := map[string]task.ErrorKind{}
			for _, t := range append(res.Failed, res.Incomplete...) {
				got[t.Name] = t.Kind
			}
			want := map[string]task.ErrorKind{
				"bad": task.KindHandler, "may fail": task.KindHandler, "after bad": task.KindDependencyFailed, "after that": task.KindDependencyFailed,
				"mend good": task.KindNotNeeded, "after mending": task.KindNotNeeded,
			}
			if !sameMap(got, want) || res.State != task.JobFailed {
				fx.errorf("the job is %s, and what did not succeed is %v, want %v", res.State, got, want)
			}
		},
	},
	{
		name:      "a failed job that an operator retries",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeA, byInput),
		run: func(fx *fixture) {
			j := weaver.NewJob("retry")
			bad := j.Add("bad", typeA.With("fail until fixed"))
			next := j.Add("next", typeA.With("x"), weaver.Needs(bad))
			j.Add("last", typeA.With("x"), weaver.Needs(next))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			jobEnds(fx, h, task.JobFailed)
			res, err := fx.client.JobResult(fx.ctx, h.ID())
			fx.must(err)
			fx.mark("fixed")
			fx.must(fx.client.Retry(fx.ctx, res.Failed[0].ID, weaver.By("ann")))
			jobEnds(fx, h, task.JobSucceeded)
		},
	},
	{
		name:      "a job that blocks",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeA, byInput),
		run: func(fx *fixture) {
			j := weaver.NewJob("block")
			stuck := j.Add("stuck", typeA.With("block"))
			j.Add("next", typeA.With("x"), weaver.Needs(stuck))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			res, err := h.Wait(fx.ctx)
			if !errors.Is(err, weaver.ErrBlocked) {
				fx.fatal("the job must block, and is %s: %v", res.State, err)
			}
			for _, t := range res.Incomplete {
				if t.State == weaver.StateBlocked {
					fx.must(fx.client.Unblock(fx.ctx, t.ID, "go on"))
				}
			}
			jobEnds(fx, h, task.JobSucceeded)
		},
	},
	{
		name:     "a job that is cancelled",
		handlers: handles(typeA, byInput),
		run: func(fx *fixture) {
			j := weaver.NewJob("cancel")
			done := j.Add("done", typeA.With("x"))
			running := j.Add("running", typeA.With("wait"), weaver.Needs(done))
			j.Add("never", typeA.With("x"), weaver.Needs(running))
			j.Add("later", typeA.With("x", weaver.Delay(time.Hour)))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			fx.await("running")
			_, err = fx.client.CancelJob(fx.ctx, h.ID(), weaver.Reason("enough"))
			fx.must(err)
			jobEnds(fx, h, task.JobCancelled)
		},
	},
	{
		name:     "a job with a deadline",
		handlers: handles(typeA, byInput),
		run: func(fx *fixture) {
			j := weaver.NewJob("deadline", weaver.Budget{MaxDuration: 20 * time.Second})
			j.Add("running", typeA.With("wait"))
			j.Add("later", typeA.With("x", weaver.Delay(time.Hour)))
			j.Add("done", typeA.With("x"))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			jobEnds(fx, h, task.JobFailed)
		},
	},
}

func sameMap[K, V comparable](a, b map[K]V) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}
