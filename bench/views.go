package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// Views: the duration of operators' queries on a store with many tasks (a million by default: twenty times -n), most
// of them ended.

type viewInput struct {
	Order int    `json:"order"`
	Note  string `json:"note"`
}

// viewTypes are the types of the tasks. The last type is not served, so that its tasks are ready.
var viewTypes = func() (list []*weaver.Type[viewInput, int]) {
	for i := range 11 {
		list = append(list, weaver.Define[viewInput, int](fmt.Sprintf("bench.views.t%d.v1", i), weaver.MaxAttempts(1)))
	}
	return list
}()

const (
	viewQueues = 5
	viewNodes  = 5000 // of a job
)

var errViews = errors.New("no such card")

// fillViews enqueues n tasks and runs the served ones: one of twenty fails, one of a hundred is blocked.
func fillViews(ctx context.Context, db store.Store, n int) (job weaver.JobID, err error) {
	queues := make(map[string]int, viewQueues)
	for q := range viewQueues {
		queues[fmt.Sprint("q", q)] = 200
	}
	cfg := weaver.Config{Concurrency: 1000, Queues: queues, Logger: quiet}
	for _, typ := range viewTypes[:len(viewTypes)-1] {
		cfg.Handlers = append(cfg.Handlers, typ.Handler(func(_ context.Context, in viewInput) (int, error) {
			switch {
			case in.Order%100 == 7:
				return 0, weaver.Blocked("which card?")
			case in.Order%20 == 0:
				return 0, errViews
			}
			return in.Order, nil
		}))
	}
	eng, err := weaver.New(db, cfg)
	if err != nil {
		return job, err
	}
	j := weaver.NewJob("views")
	for i := range viewNodes {
		j.Add(fmt.Sprint("node", i), viewTypes[0].With(viewInput{Order: i, Note: "of a job"}, weaver.Queue("q0")), weaver.AllowFailure())
	}
	h, err := eng.Submit(ctx, j)
	if err != nil {
		return job, err
	}
	const batch = 10_000
	for done := 0; done < n; done += batch {
		drafts := make([]weaver.Draft, 0, batch)
		for i := done; i < min(done+batch, n); i++ {
			typ := viewTypes[i%1000%len(viewTypes)]
			opts := []weaver.EnqueueOption{weaver.Queue(fmt.Sprint("q", i%viewQueues)), weaver.Label("team", fmt.Sprint("team", i%50))}
			if i%100 == 3 {
				opts = append(opts, weaver.Delay(24*time.Hour))
			}
			drafts = append(drafts, typ.With(viewInput{Order: i, Note: fmt.Sprint("order ", i)}, opts...))
		}
		if _, err := eng.EnqueueTasks(ctx, drafts...); err != nil {
			return job, err
		}
		if err := eng.RunUntilIdle(ctx); err != nil {
			return job, err
		}
	}
	return h.ID(), nil
}

// viewQueries are the queries of the views.
var viewQueries = []string{
	"", "state:failed", "state:blocked", "state:ready", "state:cancelled", "type:bench.views.t3.v1", "type:bench.views.*", "type:bench.none.*",
	"queue:q2", "queue:none", "state:failed queue:q2 type:bench.views.t3.v1", "state:succeeded type:bench.views.none.v1", "waiting:retry", "waiting:delay",
	"error:handler_error", "error:timeout", "label.team=team7", "label.team=none", "state:failed label.team=team7", "created>-1h", "created<-1h", "job:JOB", "parent:JOB", "key:none",
}

// viewScans are queries without an index: a call is limited by time.
var viewScans = []string{`"no such text"`, "input.order=-1", `state:failed input.note="order 20"`}

func (r *report) views(ctx context.Context) error { return r.viewsOn(ctx, "SQLite", inFile(full)) }

func (r *report) pgViews(ctx context.Context) error {
	pg, err := r.postgres()
	if err != nil {
		return err
	}
	return r.viewsOn(ctx, "PostgreSQL", pg.weaver)
}

func (r *report) viewsOn(ctx context.Context, name string, where place) error {
	return where(ctx, func(db store.Store) error {
		n := 20 * r.n
		job, err := fillViews(ctx, db, n)
		if err != nil {
			return err
		}
		c, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
		if err != nil {
			return err
		}
		r.row(fmt.Sprintf("views of %s tasks on %s, ms", human(float64(n)), name), "p50", "p95", "")
		show := func(what string, times int, do func() error) error {
			took := make(figure, times)
			for i := range took {
				began := time.Now()
				if err := do(); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				took[i] = float64(time.Since(began).Microseconds()) / 1000
			}
			slices.Sort(took)
			r.row("  "+what, human(took[times/2]), human(took[times*95/100]), "")
			return nil
		}
		for _, text := range append(slices.Clone(viewQueries), viewScans...) {
			times := 40
			if slices.Contains(viewScans, text) {
				times = 3
			}
			text = strings.ReplaceAll(text, "JOB", job.String())
			err := show("tasks "+text, times, func() error {
				q, err := ops.ParseQuery(text, time.Now())
				if err != nil {
					return err
				}
				_, err = c.Search(ctx, q)
				return err
			})
			if err != nil {
				return err
			}
		}
		for _, v := range []struct {
			what string
			do   func() error
		}{
			{"counts", func() error { _, err := c.Counts(ctx); return err }},
			{"queues", func() error { _, err := c.Queues(ctx); return err }},
			{"workers", func() error { _, err := c.Workers(ctx); return err }},
			{"jobs", func() error { _, _, err := c.Jobs(ctx, store.JobFilter{}); return err }},
			{"job", func() error { _, err := c.JobStatus(ctx, job); return err }},
			{fmt.Sprintf("graph of %d tasks", viewNodes), func() error { _, err := c.Graph(ctx, store.GraphRequest{Job: job}); return err }},
			{"audit", func() error { _, _, err := c.Audit(ctx, store.AuditFilter{}); return err }},
		} {
			if err := show(v.what, 40, v.do); err != nil {
				return err
			}
		}
		return nil
	})
}
