package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// Operator commands on many tasks on PostgreSQL, in ms per task, compared with the same commands on one task each.

var verbType = weaver.Define[int, weaver.None]("bench.verbs.fail.v1", weaver.MaxAttempts(1))

var errVerbs = errors.New("no luck")

// verbTasks is the number of tasks changed by each command.
const verbTasks = 10_000

var verbNames = []string{"retry failed", "cancel queued", "delete ended", "cancel scheduled"}

func (r *report) pgVerbs(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	many, single := make([]figure, len(verbNames)), make([]figure, len(verbNames))
	for range r.runs {
		for _, m := range []struct {
			to []figure
			n  int
			do func(context.Context, *weaver.Engine, int) (int, error)
		}{{many, verbTasks, manyVerb}, {single, verbTasks / 20, singleVerb}} {
			took, err := s.verbs(ctx, m.n, m.do)
			if err != nil {
				return err
			}
			for i, t := range took {
				m.to[i] = append(m.to[i], float64(t.Microseconds())/1000/float64(m.n))
			}
		}
	}
	for i, name := range verbNames {
		r.row("Postgres: ms a task to "+name+", "+fmt.Sprint(verbTasks), many[i].String(), "one by one "+single[i].String(), ratio(many[i].median()/single[i].median()))
	}
	return nil
}

// verbs returns the duration of each command for n tasks.
func (s *server) verbs(ctx context.Context, n int, do func(context.Context, *weaver.Engine, int) (int, error)) (took []time.Duration, err error) {
	err = s.weaver(ctx, func(db store.Store) error {
		h := verbType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, errVerbs })
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Concurrency: 1000, Logger: quiet})
		if err != nil {
			return err
		}
		if _, err := verbType.EnqueueMany(ctx, eng, make([]int, n)); err != nil {
			return err
		}
		if err := eng.RunUntilIdle(ctx); err != nil {
			return err
		}
		for i := range verbNames {
			if i == len(verbNames)-1 {
				if _, err := verbType.EnqueueMany(ctx, eng, make([]int, n), weaver.Delay(24*time.Hour)); err != nil {
					return err
				}
			}
			begin := time.Now()
			done, err := do(ctx, eng, i)
			if err != nil {
				return err
			}
			took = append(took, time.Since(begin))
			if done != n {
				return fmt.Errorf("%s changed %d tasks, want %d", verbNames[i], done, n)
			}
		}
		return nil
	})
	return took, err
}

func manyVerb(ctx context.Context, eng *weaver.Engine, verb int) (int, error) {
	ack, err := []func(context.Context, weaver.Filter, ...weaver.OperateOption) (ops.ManyAck, error){
		eng.RetryMany, eng.CancelMany, eng.DeleteMany, eng.CancelMany,
	}[verb](ctx, weaver.Filter{})
	return ack.Done, err
}

func singleVerb(ctx context.Context, eng *weaver.Engine, verb int) (done int, err error) {
	f := weaver.Filter{Limit: 1000}
	for {
		page, next, err := eng.List(ctx, f)
		if err != nil {
			return done, err
		}
		for i := range page {
			switch id := page[i].ID; verb {
			case 0:
				err = eng.Retry(ctx, id)
			case 1, 3:
				err = eng.Cancel(ctx, id)
			default:
				err = eng.Delete(ctx, id)
			}
			if err != nil {
				return done, err
			}
			done++
		}
		if f.After = next; next == "" {
			return done, nil
		}
	}
}
