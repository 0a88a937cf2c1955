package sweep_test

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// operatorCases test commands of operators during the run.
var operatorCases = []testCase{
	{
		name:     "a cancelled task that runs",
		onFile:   true,
		handlers: handles(typeA, byInput),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "wait")
			fx.await("running")
			fx.must(fx.client.Cancel(fx.ctx, h.ID(), weaver.By("ann"), weaver.Reason("enough")))
			ends(fx, h.ID(), weaver.StateCancelled, task.KindCancelled)
		},
	},
	{
		name:      "cancelled tasks that wait",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeA, byInput),
		run: func(fx *fixture) {
			later := enqueue(fx, typeA, "x", weaver.Delay(time.Hour))
			blocked := enqueue(fx, typeA, "block")
			blocks(fx, blocked.ID())
			for _, h := range []*weaver.Handle[string]{later, blocked} {
				fx.must(fx.client.Cancel(fx.ctx, h.ID()))
				ends(fx, h.ID(), weaver.StateCancelled, task.KindCancelled)
			}
		},
	},
	{
		name: "a task that is cancelled by force",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			fx.mark("running")
			sleep(context.WithoutCancel(ctx), 10*time.Second) // it ignores its context
			return value(ctx, "late", in)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("running")
			fx.must(fx.client.Cancel(fx.ctx, h.ID(), weaver.Force()))
			ends(fx, h.ID(), weaver.StateCancelled, task.KindCancelled)
			sleep(fx.ctx, 15*time.Second) // until the handler has tried to write
		},
	},
	{
		name:      "a step's transaction that is refused",
		tolerates: "a store error inside a step's transaction ends the attempt, at no cost",
		handlers: handleBoth(handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			fx.mark(in)
			detached := context.WithoutCancel(ctx)
			if err := until(fx.ctx, fx, "cancelled"); err != nil {
				return "", err
			}
			return stepTx(detached, "late", func(ctx context.Context, insert func(string) error) (string, error) {
				_, err := typeB.Enqueue(ctx, weaver.InStepTx(ctx), in)
				return in, errors.Join(err, insert(in))
			})
		}), handles(typeB, echo)),
		run: func(fx *fixture) {
			fx.table()
			asked, forced := enqueue(fx, typeA, "asked"), enqueue(fx, typeA, "forced")
			fx.await("asked")
			fx.await("forced")
			fx.must(fx.client.Cancel(fx.ctx, asked.ID()))
			fx.must(fx.client.Cancel(fx.ctx, forced.ID(), weaver.Force()))
			fx.mark("cancelled")
			ends(fx, asked.ID(), weaver.StateCancelled, task.KindCancelled)
			ends(fx, forced.ID(), weaver.StateCancelled, task.KindCancelled)
			sleep(fx.ctx, 10*time.Second) // until both have tried to write
			fx.rows()
			fx.children(typeB, 0)
		},
	},
	{
		name:      "a blocked task that goes on",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeA, byInput),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "block")
			blocks(fx, h.ID())
			fx.must(fx.client.Unblock(fx.ctx, h.ID(), "go on", weaver.By("ann")))
			succeeds(fx, h, "go on")
		},
	},
	{
		name:      "a failed task that is retried",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			kept, err := value(ctx, "kept", in)
			if err != nil {
				return "", err
			}
			return byInput(ctx, fx, kept)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "fail until fixed")
			ends(fx, h.ID(), weaver.StateFailed, task.KindHandler)
			fx.mark("fixed")
			fx.must(fx.client.Retry(fx.ctx, h.ID()))
			succeeds(fx, h, "fail until fixed")
		},
	},
	{
		name:      "rescheduled tasks",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if in == "nap" {
				if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
					return "", err
				}
			}
			return echo(ctx, fx, in)
		}),
		run: func(fx *fixture) {
			later, asleep := enqueue(fx, typeA, "later", weaver.Delay(time.Hour)), enqueue(fx, typeA, "nap")
			sleep(fx.ctx, 20*time.Second)
			for _, h := range []*weaver.Handle[string]{later, asleep} {
				if err := fx.client.RunNow(fx.ctx, h.ID()); err != nil && !errors.Is(err, weaver.ErrState) {
					fx.must(err) // a fault may have kept it from sleeping
				}
			}
			succeeds(fx, later, "later")
			succeeds(fx, asleep, "nap")
		},
	},
	{
		name:      "deleted tasks",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeA, echo),
		run: func(fx *fixture) {
			old := enqueue(fx, typeA, "old", weaver.IdempotencyKey("k"))
			succeeds(fx, old, "old")
			fx.must(fx.client.Delete(fx.ctx, old.ID()))
			if _, err := fx.client.Get(fx.ctx, old.ID()); !errors.Is(err, weaver.ErrNotFound) {
				fx.errorf("the deleted task: %v", err)
			}
			again := enqueue(fx, typeA, "new", weaver.IdempotencyKey("k"))
			succeeds(fx, again, "new")
		},
	},
	{
		name:        "a store that came back from a backup",
		losesLeases: true,
		tolerates:   "verbs asked again restore again",
		onFile:      true,
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if _, err := value(ctx, "before", in); err != nil {
				return "", err
			}
			fx.mark("running")
			if err := until(ctx, fx, "restored"); err != nil {
				return "", err
			}
			if err := rest(ctx, time.Second); err != nil {
				return "", err
			}
			return value(ctx, "after", in)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("running")
			_, err := fx.client.Store().Operate(fx.ctx, fx.client.Namespace(), store.Restored{})
			fx.must(err)
			fx.mark("restored")
			succeeds(fx, h, "x")
		},
	},
	{
		name:     "enqueues in the caller's transaction",
		onlySQL:  true,
		handlers: handles(typeA, echo),
		run: func(fx *fixture) {
			fx.table()
			for _, name := range []string{"a", "b"} {
				h := fx.enqueueTx(name)
				_, err := fx.client.Wait(fx.ctx, h.ID())
				fx.must(err)
			}
			fx.rows("a", "b")
			fx.children(typeA, 2)
		},
	},
}

// enqueueTx writes a row and enqueues a task in one transaction, and repeats it until it commits.
func (fx *fixture) enqueueTx(name string) *weaver.Handle[string] {
	for {
		p, err := fx.living(fx.ctx)
		fx.must(err)
		tx, err := p.base.(userDB).DB().BeginTx(fx.ctx, nil)
		fx.must(err)
		_, err = tx.ExecContext(fx.ctx, fx.kind.insert, name)
		fx.must(err)
		h, err := typeA.Enqueue(fx.ctx, p.engine.InTx(fx.kind.tx(tx)), name)
		if err != nil {
			if !injected(err) {
				fx.fatal("Enqueue: %v", err)
			}
			fx.must(tx.Rollback())
			sleep(fx.ctx, 50*time.Millisecond)
			continue
		}
		fx.must(tx.Commit())
		fx.checker.ack([]store.Enqueued{{ID: h.ID()}})
		p.engine.Wake()
		return h
	}
}
