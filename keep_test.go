package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// shop charges, ships, and refunds if its task ends without success.
type shop struct {
	charged, refunded, shipped atomic.Int64
	closed                     bool // it cannot ship
}

var buy = weaver.Define[string, string]("engine.keep.buy.v1", weaver.NoRetry())

func (s *shop) handler() weaver.Handler {
	return buy.Handler(func(ctx context.Context, _ string) (string, error) {
		err := weaver.Do(ctx, "charge", func(context.Context) error { s.charged.Add(1); return nil })
		if err == nil {
			err = weaver.Do(ctx, "ship", func(context.Context) error {
				if s.closed {
					return errors.New("courier down")
				}
				s.shipped.Add(1)
				return nil
			})
		}
		if weaver.Final(ctx, err) {
			return "", errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error { s.refunded.Add(1); return nil }))
		}
		return "sold", err
	})
}

func (s *shop) String() string {
	return fmt.Sprintf("charged %d, refunded %d, shipped %d", s.charged.Load(), s.refunded.Load(), s.shipped.Load())
}

// sells runs all due tasks.
func (s *shop) sells(fx *fixture, db store.Store) {
	fx.Helper()
	e, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{s.handler()}})
	fx.must(err)
	fx.must(e.RunUntilIdle(fx.Context()))
}

func TestKeepSteps(t *testing.T) {
	subtest(t, "no verb lets a task go on whose cleanup ran", func(fx *fixture) {
		s := &shop{closed: true}
		ctx, failed := fx.Context(), weaver.Filter{States: []weaver.State{weaver.StateFailed}}
		id := enqueue(fx, buy, "").ID()
		j := weaver.NewJob("orders")
		j.Add("one", buy.With("1"))
		h, err := fx.client.Submit(ctx, j)
		fx.must(err)
		s.sells(fx, fx.store)
		s.closed = false
		equal(fx, "the shop", s.String(), "charged 2, refunded 2, shipped 0")

		const why = `its cleanup "refund" ran`
		wantError(fx, fx.client.Retry(ctx, id), weaver.ErrState, why, "rerun it", "--keep-steps (KeepSteps)")
		_, err = fx.client.RetryJob(ctx, h.ID())
		wantError(fx, err, weaver.ErrState, why)
		_, err = fx.client.RerunFrom(ctx, id, "ship")
		wantError(fx, err, weaver.ErrState, why, "from the beginning")
		for _, dry := range []bool{true, false} {
			var opts []weaver.OperateOption
			if dry {
				opts = append(opts, weaver.DryRun())
			}
			ack, err := fx.client.RetryMany(ctx, failed, opts...)
			fx.must(err)
			equal(fx, "those retried", ack.Done, 0)
			equal(fx, "those refused", len(ack.Refused), 2)
			for _, r := range ack.Refused {
				wantError(fx, r.Err, weaver.ErrState, why)
			}
			res, err := fx.client.Bulk(ctx, ops.BulkRequest{Verb: ops.BulkRetry, IDs: []weaver.TaskID{id}, DryRun: dry})
			fx.must(err)
			equal(fx, "those retried", res.Done, 0)
			wantError(fx, res.Refused[0].Err, weaver.ErrState, why)
		}
		s.sells(fx, fx.store)
		equal(fx, "the shop", s.String(), "charged 2, refunded 2, shipped 0")

		again, err := fx.client.Rerun(ctx, id)
		fx.must(err)
		s.sells(fx, fx.store)
		equal(fx, "the rerun", fx.get(again.ID).State, weaver.StateSucceeded)
		equal(fx, "the shop", s.String(), "charged 3, refunded 2, shipped 1")
	})

	subtest(t, "a task whose steps are kept goes on, and cleans up again", func(fx *fixture) {
		s := &shop{closed: true}
		id := enqueue(fx, buy, "").ID()
		s.sells(fx, fx.store)
		fx.must(fx.client.Retry(fx.Context(), id, weaver.KeepSteps(), weaver.By("ann"), weaver.Reason("charged by hand")))
		audit := fx.history(id).Audit
		equal(fx, "the audit", audit[len(audit)-1].Reason, `steps kept though the cleanup "refund" ran: charged by hand`)
		s.sells(fx, fx.store)
		equal(fx, "the shop", s.String(), "charged 1, refunded 2, shipped 0")
		equal(fx, "the steps", recordedAs(fx, id), "[charge step completed ship step failed ship step failed refund cleanup completed refund cleanup completed]")
		equal(fx, "StepCount", fx.get(id).StepCount, 2)

		s.closed = false
		dry, err := fx.client.RetryMany(fx.Context(), weaver.Filter{}, weaver.KeepSteps(), weaver.DryRun())
		fx.must(err)
		equal(fx, "those that would be retried", dry.Done, 1)
		res, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkRetry, IDs: []weaver.TaskID{id}, KeepSteps: true, DryRun: true})
		fx.must(err)
		equal(fx, "those that would be retried", res.Done, 1)
		from, err := fx.client.RerunFrom(fx.Context(), id, "ship", weaver.KeepSteps())
		fx.must(err)
		ack, err := fx.client.RetryMany(fx.Context(), weaver.Filter{States: []weaver.State{weaver.StateFailed}}, weaver.KeepSteps())
		fx.must(err)
		equal(fx, "those retried", ack.Done, 1)
		s.sells(fx, fx.store)
		equal(fx, "the shop", s.String(), "charged 1, refunded 2, shipped 2")
		equal(fx, "the rerun", fx.get(from.ID).State, weaver.StateSucceeded)
	})

	subtest(t, "the tasks of a job", func(fx *fixture) {
		s := &shop{closed: true}
		j := weaver.NewJob("orders")
		first := j.Add("first", buy.With("1"))
		j.Add("second", buy.With("2"), weaver.Needs(first))
		h, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		s.sells(fx, fx.store)
		s.closed = false
		ack, err := fx.client.RetryJob(fx.Context(), h.ID(), weaver.KeepSteps())
		fx.must(err)
		equal(fx, "those retried", ack.Retried, 1)
		s.sells(fx, fx.store)
		equal(fx, "the shop", s.String(), "charged 2, refunded 1, shipped 2")
	})

	subtest(t, "what other verbs say of it", func(fx *fixture) {
		id := enqueue(fx, buy, "").ID()
		_, err := fx.client.Rerun(fx.Context(), id, weaver.KeepSteps())
		wantError(fx, err, weaver.ErrInvalidOption, "KeepSteps is an option of Retry, RetryJob, RetryMany and RerunFrom only")
		wantError(fx, fx.client.Cancel(fx.Context(), id, weaver.KeepSteps()), weaver.ErrInvalidOption, "KeepSteps")
		_, err = fx.client.CancelMany(fx.Context(), weaver.Filter{}, weaver.KeepSteps())
		wantError(fx, err, weaver.ErrInvalidOption, "KeepSteps")
		_, err = fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkCancel, IDs: []weaver.TaskID{id}, KeepSteps: true})
		wantError(fx, err, weaver.ErrInvalidOption, "KeepSteps")
	})
}

// A raised budget revives the tasks that ended for it, except those that cleaned up.
func TestKeepSteps_Budget(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		typ := weaver.Define[string, string]("engine.keep.spend.v1", weaver.NoRetry())
		s := &shop{}
		costs := int64(10)
		run := func() {
			e, err := weaver.New(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				err := weaver.Do(ctx, "charge", func(ctx context.Context) error { s.charged.Add(1); return weaver.Spend(ctx, costs) })
				if err == nil {
					err = weaver.Do(ctx, "ship", func(context.Context) error { s.shipped.Add(1); return nil })
				}
				if weaver.Final(ctx, err) {
					err = errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error { s.refunded.Add(1); return nil }))
				}
				return "", err
			})}})
			fx.must(err)
			fx.must(e.RunUntilIdle(fx.Context()))
		}
		j := weaver.NewJob("orders", weaver.Budget{MaxCost: 5})
		j.Add("one", typ.With(""))
		h, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		run()
		equal(fx, "the shop", s.String(), "charged 1, refunded 1, shipped 0")
		ack, err := fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddCost(100))
		wantError(fx, err, weaver.ErrState, `its cleanup "refund" ran`)
		equal(fx, "those retried", ack.Retried, 0)
		run()
		equal(fx, "the shop", s.String(), "charged 1, refunded 1, shipped 0")
		ack, err = fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddCost(100), weaver.KeepSteps())
		fx.must(err)
		equal(fx, "those retried", ack.Retried, 1)
		run()
		equal(fx, "the shop", s.String(), "charged 1, refunded 1, shipped 1")
	})
}

// Events of a repeated cleanup belong to its own attempts, each once.
func TestKeepSteps_Events(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		tries := 0
		h := buy.Handler(func(ctx context.Context, _ string) (string, error) {
			undo := weaver.Cleanup(ctx, "refund", func(context.Context) error {
				if tries++; tries == 2 {
					return errors.New("bank is closed")
				}
				return nil
			}, weaver.StepRetry(2))
			return "", errors.Join(errors.New("courier down"), undo)
		})
		e, err := weaver.New(fx.store, weaver.Config{Handlers: []weaver.Handler{h}, Plugins: persist})
		fx.must(err)
		id := enqueue(fx, buy, "").ID()
		fx.must(e.RunUntilIdle(fx.Context()))
		fx.must(fx.client.Retry(fx.Context(), id, weaver.KeepSteps()))
		fx.must(e.RunUntilIdle(fx.Context()))
		var got []string
		for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: id, NoWait: true}) {
			fx.must(err)
			switch ev := ev.(type) {
			case event.StepCompleted:
				got = append(got, fmt.Sprint(ev.Step, " done in ", ev.AttemptNo))
			case event.StepFailed:
				got = append(got, fmt.Sprint(ev.Step, " failed in ", ev.AttemptNo))
			}
		}
		equal(fx, "the events", fmt.Sprint(got), "[refund done in 1 refund failed in 2 refund done in 2]")
	})
}
