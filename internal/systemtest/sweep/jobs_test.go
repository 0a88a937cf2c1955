package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// fate is a handler that does what its input says.
func fate(ctx context.Context, w *sweepWorld, in string) (string, error) {
	switch in {
	case "fail":
		return "", weaver.Permanent(errors.New("as told"))
	case "fail until told":
		select {
		case <-w.marked("mended"):
			return in, nil
		default:
			return "", weaver.Permanent(errors.New("not mended"))
		}
	case "block":
		answer, ok, err := weaver.UnblockInput[string](ctx)
		if err != nil || !ok {
			return "", errors.Join(err, weaver.Blocked("somebody has to say"))
		}
		return answer, nil
	case "wait":
		w.mark("running")
		return "", rest(ctx, 24*time.Hour)
	}
	return in, nil
}

// sweepJobs are scenes of jobs.
var sweepJobs = []sweepScene{
	{
		name:   "a job whose tasks pass on their outputs",
		loose:  "needs that cannot be read end the attempt",
		onFile: true,
		handlers: both(runs(sweepN, func(_ context.Context, _ *sweepWorld, n int) (int, error) { return n, nil }),
			runs(sweepB, func(ctx context.Context, _ *sweepWorld, in string) (string, error) {
				left, err := sweepN.Output(ctx, "left")
				if err != nil {
					return "", err
				}
				right, err := sweepN.Output(ctx, "right")
				if err != nil {
					return "", err
				}
				return string(rune('a'+left)) + string(rune('a'+right)), nil
			})),
		play: func(w *sweepWorld) {
			j := weaver.NewJob("diamond")
			top := j.Add("top", sweepN.With(0))
			left, right := j.Add("left", sweepN.With(1), weaver.Needs(top)), j.Add("right", sweepN.With(2), weaver.Needs(top))
			j.Add("bottom", sweepB.With("x"), weaver.Needs(left, right))
			h, err := w.client.Submit(w.ctx, j)
			w.must(err)
			jobEnds(w, h, weaver.JobSucceeded)
			st, err := w.client.JobStatus(w.ctx, h.ID())
			w.must(err)
			if out := string(st.Tasks[3].Output); out != `"bc"` {
				w.wrong("the last task gave %s", out)
			}
		},
	},
	{
		name:     "edges of all kinds",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			id := w.submit("edges", []rawNode{
				{name: "good", in: "x"},
				{name: "bad", in: "fail"},
				{name: "after good", in: "x", needs: map[string]task.EdgeKind{"good": task.OnSuccess}},
				{name: "after bad", in: "x", needs: map[string]task.EdgeKind{"bad": task.OnSuccess}},
				{name: "after that", in: "x", needs: map[string]task.EdgeKind{"after bad": task.OnSuccess}},
				{name: "mend bad", in: "x", needs: map[string]task.EdgeKind{"bad": task.OnFailed}},
				{name: "mend good", in: "x", needs: map[string]task.EdgeKind{"good": task.OnFailed}},
				{name: "in any case", in: "x", needs: map[string]task.EdgeKind{"good": task.OnDone, "bad": task.OnDone, "after that": task.OnDone}},
				{name: "in the end", in: "x", needs: map[string]task.EdgeKind{"mend bad": task.OnSuccess, "mend good": task.OnDone, "in any case": task.OnSuccess}},
			})
			res, err := w.client.WaitJob(w.ctx, id)
			w.must(err)
			got := map[string]weaver.ErrorKind{}
			for _, t := range append(res.Failed, res.Incomplete...) {
				got[t.Name] = t.Kind
			}
			want := map[string]weaver.ErrorKind{
				"bad": task.KindHandler, "after bad": task.KindDependencyFailed, "after that": task.KindDependencyFailed, "mend good": task.KindNotNeeded,
			}
			if !sameMap(got, want) || res.State != weaver.JobFailed {
				w.wrong("the job is %s, and what did not succeed is %v, want %v", res.State, got, want)
			}
		},
	},
	{
		name:     "a failed job that an operator retries",
		loose:    "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			j := weaver.NewJob("retry")
			bad := j.Add("bad", sweepA.With("fail until told"))
			next := j.Add("next", sweepA.With("x"), weaver.Needs(bad))
			j.Add("last", sweepA.With("x"), weaver.Needs(next))
			h, err := w.client.Submit(w.ctx, j)
			w.must(err)
			jobEnds(w, h, weaver.JobFailed)
			res, err := w.client.JobResult(w.ctx, h.ID())
			w.must(err)
			w.mark("mended")
			w.must(w.client.Retry(w.ctx, res.Failed[0].ID, weaver.By("ann")))
			jobEnds(w, h, weaver.JobSucceeded)
		},
	},
	{
		name:     "a job that blocks",
		loose:    "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			j := weaver.NewJob("block")
			stuck := j.Add("stuck", sweepA.With("block"))
			j.Add("next", sweepA.With("x"), weaver.Needs(stuck))
			h, err := w.client.Submit(w.ctx, j)
			w.must(err)
			res, err := h.Wait(w.ctx)
			if !errors.Is(err, weaver.ErrBlocked) {
				w.giveUp("the job must block, and is %s: %v", res.State, err)
			}
			for _, t := range res.Incomplete {
				if t.State == weaver.StateBlocked {
					w.must(w.client.Unblock(w.ctx, t.ID, "go on"))
				}
			}
			jobEnds(w, h, weaver.JobSucceeded)
		},
	},
	{
		name:     "a job that is cancelled",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			j := weaver.NewJob("cancel")
			done := j.Add("done", sweepA.With("x"))
			running := j.Add("running", sweepA.With("wait"), weaver.Needs(done))
			j.Add("never", sweepA.With("x"), weaver.Needs(running))
			j.Add("later", sweepA.With("x", weaver.Delay(time.Hour)))
			h, err := w.client.Submit(w.ctx, j)
			w.must(err)
			w.await("running")
			_, err = w.client.CancelJob(w.ctx, h.ID(), weaver.Reason("enough"))
			w.must(err)
			jobEnds(w, h, weaver.JobCancelled)
		},
	},
	{
		name:     "a job with a deadline",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			j := weaver.NewJob("deadline", weaver.Budget{MaxDuration: 20 * time.Second})
			j.Add("running", sweepA.With("wait"))
			j.Add("later", sweepA.With("x", weaver.Delay(time.Hour)))
			j.Add("done", sweepA.With("x"))
			h, err := w.client.Submit(w.ctx, j)
			w.must(err)
			jobEnds(w, h, weaver.JobFailed)
		},
	},
}

// rawNode is a task of a job below the public API, which has no edges but
// Needs yet.
type rawNode struct {
	name, in string
	needs    map[string]task.EdgeKind
}

// submit stores a job.
func (w *sweepWorld) submit(name string, nodes []rawNode) weaver.JobID {
	ids := task.NewIDs(nil)
	sub := store.Submission{Job: &task.NewJob{ID: ids.New(), Name: name}}
	byName := map[string]task.ID{}
	for _, n := range nodes {
		in, err := json.Marshal(n.in)
		w.must(err)
		t := task.New{
			ID: ids.New(), Type: sweepA.Name(), Queue: task.DefaultQueue, Input: in, SchemaVersion: 1, Priority: task.DefaultPriority,
			MaxAttempts: task.DefaultMaxAttempts, Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax, Node: n.name,
		}
		for need, kind := range n.needs {
			t.Needs = append(t.Needs, task.Edge{Needs: byName[need], Kind: kind})
		}
		byName[n.name] = t.ID
		sub.Tasks = append(sub.Tasks, t)
	}
	_, err := w.client.Store().Enqueue(w.ctx, w.client.Namespace(), nil, sub)
	w.must(err)
	return sub.Job.ID
}

func sameMap[K, V comparable](a, b map[K]V) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}
