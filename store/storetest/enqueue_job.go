package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// keyed gives the job of a graph an idempotency key.
func (g *graph) keyed(key string) *graph {
	g.sub.Job.IdempotencyKey = key
	return g
}

// existsAs submits a graph whose key is taken and expects the existing job.
func (g *graph) existsAs(want task.ID) {
	g.e.Helper()
	g.e.unchanged("a job whose key is taken", func() {
		got, err := g.e.s.Enqueue(g.e.Context(), g.e.ns, nil, g.sub)
		g.e.require(err == nil, "Enqueue: %v", err)
		g.e.equal("the answer", got, existingJob(want, len(g.sub.Tasks)))
	})
}

// existingJob returns the answer for n tasks of an existing job.
func existingJob(id task.ID, n int) []store.Enqueued {
	return slices.Repeat([]store.Enqueued{{Job: id, Disposition: store.DispositionExisting}}, n)
}

var enqueueJobCases = []testCase{
	{"a job whose name and key exist is not stored again, in whichever state", func(e *env) {
		first := e.graph("a", "b: a").keyed("evt-1").submit()
		e.equal("the key as read", first.read().IdempotencyKey, "evt-1")
		again := e.graph("x").keyed("evt-1")
		again.existsAs(first.sub.Job.ID)
		e.succeed(first.id("a"), first.id("b"))
		again.existsAs(first.sub.Job.ID)
		_, err := store.JobOf(e.Context(), e.s, e.ns, again.sub.Job.ID)
		e.wantErr("Job that was not stored", err, store.ErrNotFound)
	}},
	{"the key of a job is its name's, and its namespace's", func(e *env) {
		e.graph("a").keyed("evt-1").submit()
		e.graph("a").keyed("evt-2").submit()
		e.job("a")
		e.job("a") // without a key
		other := e.graph("a").keyed("evt-1")
		other.sub.Job.Name = "other"
		other.submit()
		there := e.in(otherNamespace)
		there.graph("a").keyed("evt-1").submit()
		e.equal("the jobs", len(e.snap().Jobs), 5)
	}},
	{"R13 a job that an earlier try of the same call stored is created", func(e *env) {
		g := e.graph("a", "b: a").keyed("evt-1").submit()
		e.unchanged("the same submission", func() {
			for i, q := range e.submit(g.sub) {
				e.equal("the answer", q, store.Enqueued{ID: g.sub.Tasks[i].ID, Disposition: store.DispositionCreated})
			}
		})
	}},
	{"many callers with one key make one job", func(e *env) {
		var subs [4]store.Submission
		for i := range subs {
			subs[i] = e.graph("a").keyed("evt-1").sub
		}
		var answers [len(subs)]store.Enqueued
		var calls []func()
		for i := range subs {
			calls = append(calls, func() {
				got, err := e.s.Enqueue(e.Context(), e.ns, nil, subs[i])
				e.check(err == nil && len(got) == 1, "Enqueue = %v, %v", got, err)
				if len(got) == 1 {
					answers[i] = got[0]
				}
			})
		}
		e.together(calls...)
		jobs := e.snap().Jobs
		e.require(len(jobs) == 1, "there are %d jobs, want 1", len(jobs))
		created := 0
		for i, got := range answers {
			if got.Disposition == store.DispositionCreated {
				created++
				e.equal("the job stored", jobs[0].ID, subs[i].Job.ID)
				e.remember(got.ID)
				continue
			}
			e.equal("the answer", got, existingJob(jobs[0].ID, 1)[0])
		}
		e.equal("callers that created it", created, 1)
	}},
}

// stepTxJobCases test jobs submitted inside StepTx.
var stepTxJobCases = []testCase{
	{"a job that the function submits is stored with the step", func(e *env) {
		c := e.a.take(e.one())
		g, again := e.graph("a", "b: a").keyed("evt-1"), e.graph("a").keyed("evt-1")
		e.withTx(c, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			got, err := e.s.Enqueue(ctx, e.ns, tx, g.sub)
			e.check(err == nil && len(got) == 2 && got[0] == store.Enqueued{ID: g.id("a"), Disposition: store.DispositionCreated}, "Enqueue = %v, %v", got, err)
			got, err = e.s.Enqueue(ctx, e.ns, tx, again.sub)
			e.check(err == nil && slices.Equal(got, existingJob(g.sub.Job.ID, 1)), "Enqueue with the same key = %v, %v", got, err)
			return json.RawMessage(`1`), nil
		})
		e.remember(g.id("a"))
		e.remember(g.id("b"))
		e.equal("the job's state", g.read().State, task.JobRunning)
		again.existsAs(g.sub.Job.ID)
		e.succeed(g.id("a"), g.id("b"))
	}},
	{"a job of a function that fails does not exist", func(e *env) {
		c := e.a.take(e.one())
		g, failed := e.graph("a").keyed("evt-1"), errors.New("failed")
		e.unchanged("a step that failed", func() {
			_, err := e.stepTx(c, time.Second, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
				if _, err := e.s.Enqueue(ctx, e.ns, tx, g.sub); err != nil {
					return nil, err
				}
				return nil, failed
			})
			e.wantErr("StepTx", err, failed)
		})
		g.submit()
	}},
}
