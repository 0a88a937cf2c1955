package weaver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	page  = weaver.Define[string, string]("engine.overview.page.v1")
	other = weaver.Define[weaver.None, int]("engine.overview.other.v1")
)

// noLists fails the test when tasks are listed.
type noLists struct {
	store.Store
	fx *fixture
}

func (s noLists) List(context.Context, string, store.Filter) ([]task.Task, string, error) {
	s.fx.Error("the tasks were listed")
	return nil, "", nil
}

// onlyStore has no capabilities.
type onlyStore struct{ store.Store }

func (onlyStore) Capabilities() store.Capabilities { return 0 }

func TestJobOverview(t *testing.T) {
	subtest(t, "numbers per state, and the bottleneck in words", func(fx *fixture) {
		g := newGate()
		j := weaver.NewJob("all", weaver.Budget{MaxDuration: time.Hour})
		runs := j.Add("runs", page.With("gate"))
		j.Add("waits", page.With(""), weaver.Needs(runs))
		j.Add("person", page.With("block"))
		j.Add("later", page.With("", weaver.Delay(50*time.Minute)))
		j.Add("unserved", other.With(weaver.None{}))
		j.Add("done", page.With(""))
		h := submit(fx, j)
		read := func(want string) weaver.JobStatus {
			fx.Helper()
			st, err := fx.client.JobStatus(fx.Context(), h.ID())
			fx.must(err)
			equal(fx, "the bottleneck", st.Bottleneck, want)
			return st
		}
		read(`3 tasks are due, and no worker handles the type ` + page.Name() + ` (queue "default"); ` +
			`1 is due, and no worker handles the type ` + other.Name() + ` (queue "default"); 1 waits for a retry, a sleep or a delay, due at 2000-01-01T00:50:00Z; 1 waits for other tasks`)

		fx.run(page.Handler(func(ctx context.Context, in string) (string, error) {
			switch in {
			case "gate":
				return "", g.pass(ctx)
			case "block":
				return "", weaver.Blocked("is it right?")
			}
			return "out", nil
		}))
		<-g.in
		time.Sleep(time.Minute)
		st := read(`1 task is due, and no worker handles the type ` + other.Name() + ` (queue "default"); 1 waits for a person; 1 runs; ` +
			`1 waits for a retry, a sleep or a delay, due at 2000-01-01T00:50:00Z; 1 waits for other tasks`)
		for state, n := range map[weaver.State]int{
			weaver.StateRunning: 1, weaver.StatePending: 2, weaver.StateBlocked: 1, weaver.StateReady: 1, weaver.StateSucceeded: 1, weaver.StateFailed: 0,
		} {
			equal(fx, "tasks that are "+string(state), st.States[state], n)
		}
		equal(fx, "tasks that wait for others", st.Waiting[task.WaitDeps], 1)
		tasks, err := fx.client.JobTasks(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "tasks of JobTasks", len(tasks), 6)
		equal(fx, "the first of them", tasks[0].Node, "runs")

		time.Sleep(55 * time.Minute)
		g.open()
		time.Sleep(time.Minute)
		st = read(`1 task is due, and no worker handles the type ` + other.Name() + ` (queue "default"); 1 waits for a person; its time is nearly spent: 3m0s left of 1h0m0s`)
		equal(fx, "tasks that succeeded", st.States[weaver.StateSucceeded], 4)

		res, err := fx.client.JobResult(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the output of one", string(named(fx, res.Completed, "done").Output), `"out"`)
		equal(fx, "the attempts of one that waits for a person", named(fx, res.Incomplete, "person").Reason, "is it right?")
		time.Sleep(time.Hour)
		read("")
	})
	subtest(t, "a job that cannot go on by itself", func(fx *fixture) {
		j := weaver.NewJob("stuck")
		a := j.Add("a", page.With(""))
		j.Add("b", page.With(""), weaver.Needs(a))
		h := submit(fx, j)
		fx.idle(page.Handler(func(context.Context, string) (string, error) { return "", weaver.Blocked("is it right?") }))
		st, err := fx.client.JobStatus(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the state", st.State, task.JobBlocked)
		equal(fx, "the bottleneck", st.Bottleneck, "1 task waits for a person; 1 waits for other tasks")
		blocked, _, err := fx.client.List(fx.Context(), weaver.Filter{Job: h.ID(), States: []weaver.State{weaver.StateBlocked}})
		fx.must(err)
		fx.must(fx.client.Unblock(fx.Context(), blocked[0].ID, nil))
		st, err = fx.client.JobStatus(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the state when it is unblocked", st.State, task.JobRunning)
	})
	subtest(t, "no task is read, however many there are", func(fx *fixture) {
		j := weaver.NewJob("large")
		for i := range 3000 {
			j.Add(strings.Repeat("n", 1+i%7)+string(rune('0'+i%10))+time.Duration(i).String(), page.With(""))
		}
		h := submit(fx, j)
		for name, s := range map[string]store.Store{"counted by the store": noLists{fx.store, fx}, "page by page": onlyStore{fx.store}} {
			c, err := weaver.NewClient(s, weaver.ClientConfig{})
			fx.must(err)
			st, err := c.JobStatus(fx.Context(), h.ID())
			fx.must(err)
			equal(fx, name, st.States[weaver.StateReady], 3000)
			equal(fx, name, st.Bottleneck, `3000 tasks are due, and no worker handles the type `+page.Name()+` (queue "default")`)
		}
	})
}
