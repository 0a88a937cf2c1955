package sweep_test

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// sweepVerbs are scenes of people who interfere.
var sweepVerbs = []sweepScene{
	{
		name:     "a cancelled task that runs",
		onFile:   true,
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "wait")
			w.await("running")
			w.must(w.client.Cancel(w.ctx, h.ID(), weaver.By("ann"), weaver.Reason("enough")))
			ends(w, h.ID(), weaver.StateCancelled, task.KindCancelled)
		},
	},
	{
		name:     "cancelled tasks that wait",
		loose:    "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			later := sweepEnqueue(w, sweepA, "x", weaver.Delay(time.Hour))
			blocked := sweepEnqueue(w, sweepA, "block")
			blocks(w, blocked.ID())
			for _, h := range []*weaver.Handle[string]{later, blocked} {
				w.must(w.client.Cancel(w.ctx, h.ID()))
				ends(w, h.ID(), weaver.StateCancelled, task.KindCancelled)
			}
		},
	},
	{
		name: "a task that is cancelled by force",
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			w.mark("running")
			sleep(context.WithoutCancel(ctx), 10*time.Second) // deaf
			return value(ctx, "late", in)
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "x")
			w.await("running")
			w.must(w.client.Cancel(w.ctx, h.ID(), weaver.Force()))
			ends(w, h.ID(), weaver.StateCancelled, task.KindCancelled)
			sleep(w.ctx, 15*time.Second) // until the handler has tried to write
		},
	},
	{
		name:  "a step's transaction that is refused",
		loose: "trouble inside a step's transaction ends the attempt, at no cost",
		handlers: both(runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			w.mark(in)
			deaf := context.WithoutCancel(ctx)
			if err := until(w.ctx, w, "cancelled"); err != nil {
				return "", err
			}
			return stepTx(deaf, "late", func(ctx context.Context, insert func(string) error) (string, error) {
				_, err := sweepB.Enqueue(ctx, weaver.InStepTx(ctx), in)
				return in, errors.Join(err, insert(in))
			})
		}), runs(sweepB, echo)),
		play: func(w *sweepWorld) {
			w.table()
			asked, forced := sweepEnqueue(w, sweepA, "asked"), sweepEnqueue(w, sweepA, "forced")
			w.await("asked")
			w.await("forced")
			w.must(w.client.Cancel(w.ctx, asked.ID()))
			w.must(w.client.Cancel(w.ctx, forced.ID(), weaver.Force()))
			w.mark("cancelled")
			ends(w, asked.ID(), weaver.StateCancelled, task.KindCancelled)
			ends(w, forced.ID(), weaver.StateCancelled, task.KindCancelled)
			sleep(w.ctx, 10*time.Second) // until both have tried to write
			w.rows()
			w.children(sweepB, 0)
		},
	},
	{
		name:     "a blocked task that goes on",
		loose:    "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "block")
			blocks(w, h.ID())
			w.must(w.client.Unblock(w.ctx, h.ID(), "go on", weaver.By("ann")))
			succeeds(w, h, "go on")
		},
	},
	{
		name:  "a failed task that is retried",
		loose: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			kept, err := value(ctx, "kept", in)
			if err != nil {
				return "", err
			}
			return fate(ctx, w, kept)
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "fail until told")
			ends(w, h.ID(), weaver.StateFailed, task.KindHandler)
			w.mark("mended")
			w.must(w.client.Retry(w.ctx, h.ID()))
			succeeds(w, h, "fail until told")
		},
	},
	{
		name:     "deleted tasks",
		loose:    "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepA, echo),
		play: func(w *sweepWorld) {
			old := sweepEnqueue(w, sweepA, "old", weaver.IdempotencyKey("k"))
			succeeds(w, old, "old")
			w.must(w.client.Delete(w.ctx, old.ID()))
			if _, err := w.client.Get(w.ctx, old.ID()); !errors.Is(err, weaver.ErrNotFound) {
				w.wrong("the deleted task: %v", err)
			}
			again := sweepEnqueue(w, sweepA, "new", weaver.IdempotencyKey("k"))
			succeeds(w, again, "new")
		},
	},
	{
		name:   "a store that came back from a backup",
		loses:  true,
		loose:  "verbs asked again restore again",
		onFile: true,
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			if _, err := value(ctx, "before", in); err != nil {
				return "", err
			}
			w.mark("running")
			if err := until(ctx, w, "restored"); err != nil {
				return "", err
			}
			if err := rest(ctx, time.Second); err != nil {
				return "", err
			}
			return value(ctx, "after", in)
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "x")
			w.await("running")
			_, err := w.client.Store().Operate(w.ctx, w.client.Namespace(), store.Restored{})
			w.must(err)
			w.mark("restored")
			succeeds(w, h, "x")
		},
	},
	{
		name:     "enqueues in the caller's transaction",
		onlySQL:  true,
		handlers: runs(sweepA, echo),
		play: func(w *sweepWorld) {
			w.table()
			for _, name := range []string{"a", "b"} {
				h := w.enqueueTx(name)
				_, err := w.client.Wait(w.ctx, h.ID())
				w.must(err)
			}
			w.rows("a", "b")
			w.children(sweepA, 2)
		},
	},
}

// enqueueTx writes a row and enqueues a task in one transaction, as often as
// it takes.
func (w *sweepWorld) enqueueTx(name string) *weaver.Handle[string] {
	for {
		p, err := w.living(w.ctx)
		w.must(err)
		tx, err := p.base.(*sqlite.DB).DB().BeginTx(w.ctx, nil)
		w.must(err)
		_, err = tx.ExecContext(w.ctx, "INSERT INTO sweep (name) VALUES (?)", name)
		w.must(err)
		h, err := sweepA.Enqueue(w.ctx, p.engine.InTx(sqlite.Tx(tx)), name)
		if err != nil {
			if !ours(err) {
				w.giveUp("Enqueue: %v", err)
			}
			w.must(tx.Rollback())
			sleep(w.ctx, 50*time.Millisecond)
			continue
		}
		w.must(tx.Commit())
		w.watch.ack([]store.Enqueued{{ID: h.ID()}})
		p.engine.Wake()
		return h
	}
}
