package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var bulkType = weaver.Define[int, int]("acme.bulk.run.v1", weaver.NoRetry())

// bulkWork succeeds for inputs from 100 on, blocks for negative ones, and fails for others.
func (fx *fixture) bulkWork(c store.Store) {
	fx.Helper()
	e, err := weaver.New(c, weaver.Config{Handlers: []weaver.Handler{bulkType.Handler(func(ctx context.Context, in int) (int, error) {
		switch {
		case in == -1:
			return weaver.Ask[int](ctx, "how many", "How many?")
		case in < 0:
			return 0, weaver.Blocked("look at it")
		case in < 100:
			return 0, fmt.Errorf("no luck with %d", in)
		}
		return in, nil
	})}})
	fx.must(err)
	fx.must(e.RunUntilIdle(fx.Context()))
}

func (fx *fixture) bulkTasks(inputs ...int) (ids []task.ID) {
	fx.Helper()
	for _, in := range inputs {
		h, err := bulkType.Enqueue(fx.Context(), fx.client, in)
		fx.must(err)
		ids = append(ids, h.ID())
	}
	return ids
}

func bulkCounts(r ops.BulkResult) string {
	return fmt.Sprintf("%d done, %d asked, %d before, %d refused, %d samples, more %t", r.Done, r.Asked, r.AlreadyDone, len(r.Refused), len(r.Samples), r.Next != "")
}

func TestBulk(t *testing.T) {
	subtest(t, "retry, cancel and delete by a query", func(fx *fixture) {
		ids := fx.bulkTasks(1, 2, 1, 100)
		fx.bulkWork(fx.store)
		q := fx.query("input=1")
		dry, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, DryRun: true})
		fx.must(err)
		equal(fx, "the dry run", bulkCounts(dry), "2 done, 0 asked, 0 before, 0 refused, 2 samples, more false")
		equal(fx, "its states", fmt.Sprint(dry.States), "map[failed:2]")
		equal(fx, "its newest", dry.Newest, ids[2])
		equal(fx, "its first sample", dry.Samples[0], ops.ManyTask{ID: ids[2], Type: bulkType.Name(), Queue: "default", State: task.Failed})
		equal(fx, "scanned", dry.Scanned, 3) // retryable tasks
		equal(fx, "what it changed", fx.get(ids[0]).State, task.Failed)

		late := fx.bulkTasks(1)
		fx.bulkWork(fx.store)
		res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, Newest: dry.Newest, By: "ops", Reason: "bank is up"})
		fx.must(err)
		equal(fx, "the retry", bulkCounts(res), "2 done, 0 asked, 0 before, 0 refused, 0 samples, more false")
		equal(fx, "its newest", res.Newest, dry.Newest)
		for i, want := range []task.State{task.Ready, task.Failed, task.Ready, task.Succeeded} {
			equal(fx, fmt.Sprintf("task %d", i), fx.get(ids[i]).State, want)
		}
		equal(fx, "the one that came later", fx.get(late[0]).State, task.Failed)
		audit := fx.history(ids[0]).Audit
		equal(fx, "the audit", fmt.Sprintf("%d %s %s", len(audit), audit[0].Actor, audit[0].Reason), "1 ops bank is up")

		every := ops.Query{}
		res, err = fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkCancel, Query: &every})
		fx.must(err)
		equal(fx, "the cancel", bulkCounts(res), "2 done, 0 asked, 0 before, 0 refused, 0 samples, more false")
		res, err = fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkDelete, Query: &every})
		fx.must(err)
		equal(fx, "the delete", bulkCounts(res), "5 done, 0 asked, 0 before, 0 refused, 0 samples, more false")
	})

	subtest(t, "in calls: each task once, in a dry run too", func(fx *fixture) {
		ids := fx.bulkTasks(make([]int, 25)...)
		fx.bulkWork(fx.store)
		for _, text := range []string{"state:failed", `"no luck"`} {
			q := fx.query(text)
			for _, dry := range []bool{true, false} {
				done, calls, listed := 0, 0, 0
				for after := ""; ; calls++ {
					res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, DryRun: dry, Limit: 10, After: after})
					fx.must(err)
					done, listed = done+res.Done, listed+len(res.Samples)
					if after = res.Next; after == "" {
						break
					}
				}
				equal(fx, "done", done, len(ids))
				equal(fx, "calls after the first", calls, 2)
				equal(fx, "samples", listed > 0, dry)
			}
			fx.bulkWork(fx.store) // they fail again
		}
		for _, id := range ids {
			equal(fx, "retries", len(fx.history(id).Audit), 2)
		}
		res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &ops.Query{}, DryRun: true})
		fx.must(err)
		equal(fx, "samples of many", bulkCounts(res), "25 done, 0 asked, 0 before, 0 refused, 20 samples, more false")
	})

	subtest(t, "by ids: each says why it was refused", func(fx *fixture) {
		ids := fx.bulkTasks(1, 100, 2, -2, -1)
		fx.bulkWork(fx.store)
		gone := ids[0]
		gone[15] ^= 1
		all := append(slices.Clone(ids), gone, ids[0])
		for _, dry := range []bool{true, false} {
			res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, IDs: all, DryRun: dry})
			fx.must(err)
			equal(fx, "done", fmt.Sprintf("%d %d %d %q", res.Done, res.AlreadyDone, res.Scanned, res.Next), `2 0 6 ""`)
			why := map[task.ID]error{}
			for _, r := range res.Refused {
				why[r.ID] = r.Err
			}
			equal(fx, "refused", len(why), 4)
			wantError(fx, why[ids[1]], weaver.ErrState, "is succeeded; the states are [failed cancelled]")
			wantError(fx, why[gone], weaver.ErrNotFound)
		}
		equal(fx, "the first", fx.get(ids[0]).State, task.Ready)
		res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkUnblock, IDs: ids[3:]})
		fx.must(err)
		equal(fx, "the unblock", bulkCounts(res), "1 done, 0 asked, 0 before, 1 refused, 0 samples, more false")
		wantError(fx, res.Refused[0].Err, weaver.ErrState, `waits for an answer to "how many"`)
		equal(fx, "the one that asks", fx.get(ids[4]).State, task.Blocked)

		calls, done := 0, 0
		for after := ""; ; calls++ {
			res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkCancel, IDs: all[:5], Limit: 2, After: after})
			fx.must(err)
			if done += res.Done; res.Next == "" {
				break
			}
			after = res.Next
		}
		equal(fx, "cancelled", fmt.Sprint(calls, done), "2 4")
	})

	subtest(t, "tasks of a job: what they need comes after them", func(fx *fixture) {
		j := weaver.NewJob("nightly")
		a := j.Add("a", bulkType.With(1))
		b := j.Add("b", bulkType.With(100), weaver.Needs(a))
		j.Add("c", bulkType.With(100), weaver.Needs(b))
		h, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		fx.bulkWork(fx.store)
		q := fx.query("job:" + h.ID().String())
		for _, dry := range []bool{true, false} {
			res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkDelete, Query: &q, DryRun: dry})
			fx.must(err)
			equal(fx, "the delete", bulkCounts(res), "0 done, 0 asked, 0 before, 3 refused, 0 samples, more false")
		}
		// Tasks left to a later call count as selected.
		res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, DryRun: true, Limit: 1})
		fx.must(err)
		equal(fx, "a dry run of one", bulkCounts(res), "1 done, 0 asked, 0 before, 0 refused, 1 samples, more true")
		cancelled := q.And(weaver.Filter{States: []weaver.State{task.Cancelled}})
		res, err = fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &cancelled, DryRun: true})
		fx.must(err)
		equal(fx, "a dry run without the first", bulkCounts(res), "1 done, 0 asked, 0 before, 1 refused, 1 samples, more false")
		res, err = fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q})
		fx.must(err)
		equal(fx, "the retry", bulkCounts(res), "1 done, 0 asked, 2 before, 0 refused, 0 samples, more false")
	})

	subtest(t, "older than", func(fx *fixture) {
		fx.bulkTasks(1)
		fx.bulkWork(fx.store)
		time.Sleep(time.Hour)
		fx.bulkTasks(1)
		fx.bulkWork(fx.store)
		q := fx.query("input=1")
		for d, want := range map[time.Duration]int{0: 2, time.Minute: 1, 2 * time.Hour: 0} {
			res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, OlderThan: d, DryRun: true})
			fx.must(err)
			equal(fx, "older than "+d.String(), res.Done, want)
		}
	})

	subtest(t, "a task that changes after it was selected is looked at again", func(fx *fixture) {
		for text, want := range map[string]string{
			"state:failed,cancelled": "1 done, 0 asked, 1 before, 0 refused, 0 samples, more false",
			"state:failed":           "0 done, 0 asked, 2 before, 0 refused, 0 samples, more false",
		} {
			ids := fx.bulkTasks(1, 2)
			fx.bulkWork(fx.store)
			changed := false
			c, err := weaver.NewClient(storehook.New(fx.store, &storehook.Hooks{Operate: func(_ context.Context, _ []store.Command, next func() ([]store.CommandResult, error)) ([]store.CommandResult, error) {
				if !changed {
					changed = true
					fx.must(fx.client.Retry(fx.Context(), ids[0]))
					fx.must(fx.client.Retry(fx.Context(), ids[1]))
					fx.must(fx.client.Cancel(fx.Context(), ids[1]))
				}
				return next()
			}}), weaver.ClientConfig{})
			fx.must(err)
			q := fx.query(text)
			res, err := c.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q})
			fx.must(err)
			equal(fx, text, bulkCounts(res), want)
			_, err = fx.client.CancelMany(fx.Context(), weaver.Filter{})
			fx.must(err)
			_, err = fx.client.DeleteMany(fx.Context(), weaver.Filter{})
			fx.must(err)
		}
	})

	subtest(t, "two seconds, and on from there; an error says how far it came", func(fx *fixture) {
		fx.bulkTasks(make([]int, 500)...)
		fx.bulkWork(fx.store)
		operates, fail := 0, errors.New("the store is away")
		c, err := weaver.NewClient(storehook.New(fx.store, &storehook.Hooks{
			Operate: func(_ context.Context, cmds []store.Command, next func() ([]store.CommandResult, error)) ([]store.CommandResult, error) {
				if operates++; operates == 4 {
					return nil, fail
				}
				time.Sleep(time.Second)
				return next()
			},
		}), weaver.ClientConfig{})
		fx.must(err)
		q := fx.query("state:failed")
		res, err := c.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q})
		fx.must(err)
		equal(fx, "the first call", bulkCounts(res), "200 done, 0 asked, 0 before, 0 refused, 0 samples, more true")
		res, err = c.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, After: res.Next})
		wantError(fx, err, fail, "retry tasks: ")
		equal(fx, "the one that failed", bulkCounts(res), "100 done, 0 asked, 0 before, 0 refused, 0 samples, more true")
		res, err = c.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, After: res.Next})
		fx.must(err)
		equal(fx, "the rest", bulkCounts(res), "200 done, 0 asked, 0 before, 0 refused, 0 samples, more false")
		hs, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: &q})
		fx.must(err)
		equal(fx, "what is left", hs.Done, 0)
	})

	subtest(t, "what is wrong", func(fx *fixture) {
		id := fx.bulkTasks(1)[0]
		q, states := ops.Query{}, fx.query("state:ready")
		for want, req := range map[string]ops.BulkRequest{
			`the verb "pause" is unknown to Bulk: use one of [retry`: {Verb: "pause", Query: &q},
			"want either a Query or IDs":                             {Verb: ops.BulkRetry},
			"retry tasks: invalid option: want either":               {Verb: ops.BulkRetry, Query: &q, IDs: []task.ID{id}},
			"Limit is 1001":                             {Verb: ops.BulkRetry, Query: &q, Limit: 1001},
			"Limit is -1":                               {Verb: ops.BulkRetry, Query: &q, Limit: -1},
			"1001 IDs: at most 1000":                    {Verb: ops.BulkRetry, IDs: make([]task.ID, 1001)},
			"Newest and OlderThan are for a Query":      {Verb: ops.BulkRetry, IDs: []task.ID{id}, Newest: id},
			"OlderThan is -1s":                          {Verb: ops.BulkRetry, Query: &q, OlderThan: -time.Second},
			"a task that is ready cannot be changed so": {Verb: ops.BulkRetry, Query: &states},
			"Force is an option of Cancel":              {Verb: ops.BulkRetry, Query: &q, Force: true},
			"By":                                        {Verb: ops.BulkRetry, Query: &q, By: "a\x00b"},
		} {
			_, err := fx.client.Bulk(fx.Context(), req)
			wantError(fx, err, weaver.ErrInvalidOption, want)
		}
		for _, req := range []ops.BulkRequest{
			{Verb: ops.BulkRetry, Query: &q, After: "odd"},
			{Verb: ops.BulkRetry, Query: &q, After: "odd", Newest: id},
			{Verb: ops.BulkRetry, IDs: []task.ID{id}, After: "odd"},
		} {
			_, err := fx.client.Bulk(fx.Context(), req)
			wantError(fx, err, store.ErrBadCursor)
		}
		none := states.And(weaver.Filter{States: []weaver.State{task.Failed}})
		res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkCancel, Query: &none})
		fx.must(err)
		equal(fx, "a query that selects nothing", bulkCounts(res), "0 done, 0 asked, 0 before, 0 refused, 0 samples, more false")
		equal(fx, "the task", fx.get(id).State, task.Ready)
	})
}
