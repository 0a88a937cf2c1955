package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var stepTxCases = []testCase{
	{"the value that the function returns is the step's", func(e *env) {
		c := e.a.take(e.one())
		got := e.withTx(c, func(_ context.Context, tx store.Tx) (json.RawMessage, error) {
			e.check(tx != nil && tx.Driver() != "", "the function is handed the transaction %v", tx)
			return json.RawMessage(`{"id": 7}`), nil
		})
		e.equal("the value", string(got.Value), `{"id": 7}`)
		e.equal("the state", got.State, task.StepCompleted)
		e.equal("the steps", e.steps(c.Task.ID), []task.Step{got})
		e.equal("StepCount", e.task(c.Task.ID).StepCount, 1)
		e.finish(success(c))
	}},
	{"what the function enqueues is stored with the step", func(e *env) {
		c := e.a.take(e.one())
		n := e.draft()
		e.withTx(c, e.enqueuing(n, returnsOne))
		e.remember(n.ID)
		e.equal("the steps", len(e.steps(c.Task.ID)), 1)
		e.b.gets([]task.ID{n.ID})
	}},
	{"an error of the function rolls back and comes back as it is", func(e *env) {
		c := e.a.take(e.one())
		own := errors.New("own")
		err := e.rolledBack(c, time.Second, func(context.Context) (json.RawMessage, error) { return nil, own })
		e.check(identical(err, own), "StepTx returned %v, want the function's error itself", err)
		e.withTx(c, e.enqueuing(e.draft(), returnsOne))
	}},
	{"a panic of the function rolls back", func(e *env) {
		// The panic may propagate or be returned as an error. It must not end the process or the store, and the
		// transaction must roll back.
		c := e.a.take(e.one())
		e.unchanged("a step that panicked", func() {
			defer func() { _ = recover() }()
			got, err := e.stepTx(c, time.Second, e.enqueuing(e.draft(), func(context.Context) (json.RawMessage, error) { panic("boom") }))
			e.check(err != nil || got.Err != nil, "StepTx reports success from a panic")
		})
		e.withTx(c, e.enqueuing(e.draft(), returnsOne))
		e.finish(success(c))
	}},
	{"a function that ends the transaction itself is told so, and leaves nothing", func(e *env) {
		// A store without tables has a transaction without commit and rollback.
		type ender struct{ commit, rollback func() error }
		enderOf := func(ctx context.Context, tx any) (end ender, ok bool) {
			switch tx := tx.(type) {
			case interface {
				Commit() error
				Rollback() error
			}:
				return ender{tx.Commit, tx.Rollback}, true
			case interface {
				Commit(context.Context) error
				Rollback(context.Context) error
			}:
				return ender{func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }}, true
			}
			return end, false
		}
		for name, end := range map[string]func(ender) error{
			"commits":                      func(tx ender) error { return tx.commit() },
			"commits, whatever it answers": func(tx ender) error { _ = tx.commit(); return nil },
			"rolls back":                   func(tx ender) error { return tx.rollback() },
		} {
			c := e.a.take(e.one())
			n := e.draft()
			var err error
			e.unchanged("a step that "+name, func() {
				_, err = e.stepTx(c, time.Second, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
					h, ok := enderOf(ctx, tx.Handle())
					if !ok {
						return nil, store.ErrStepTxEnded
					}
					_, err := e.s.Enqueue(ctx, e.ns, tx, store.Submission{Tasks: []task.New{n}})
					e.check(err == nil, "Enqueue: %v", err)
					return json.RawMessage(`1`), end(h)
				})
			})
			e.wantErr("StepTx whose function "+name, err, store.ErrStepTxEnded)
			e.withTx(c, e.enqueuing(e.draft(), returnsOne))
			e.finish(success(c))
		}
	}},
	{"a lost lease runs nothing", func(e *env) {
		c := e.a.take(e.one())
		e.expire(c)
		refused := func(c store.Claimed) {
			res, err := e.stepTx(c, time.Second, func(context.Context, store.Tx) (json.RawMessage, error) {
				e.Error("the function ran, though its lease was lost before")
				return nil, nil
			})
			e.wantErr("StepTx", err, store.ErrLeaseLost)
			e.wantErr("the result of StepTx", res.Err, store.ErrLeaseLost)
		}
		refused(c)
		b := e.b.take(c.Task.ID)
		refused(c)
		e.withTx(b, e.enqueuing(e.draft(), returnsOne))
	}},
	{"a lease lost while the function runs rolls back, or the step was first", func(e *env) {
		// The revocation may have to wait for the step's transaction. The first to commit wins, and the other must be
		// consistent with it.
		id := e.one()
		c := e.a.take(id)
		n := e.draft()
		var result store.RecordResult
		var err error
		e.together(
			func() { result, err = e.stepTx(c, time.Second, e.enqueuing(n, returnsOne)) },
			func() {
				_, err := e.s.Operate(e.Context(), e.ns, forceOf(id))
				e.check(err == nil, "Operate: %v", err)
			},
		)
		stored := len(e.steps(id)) == 1
		child, readErr := e.s.Tasks(e.Context(), e.ns, n.ID)
		e.check(readErr == nil && (len(child) == 1) == stored, "step stored: %v, task enqueued with it: %d, %v", stored, len(child), readErr)
		if err == nil {
			err = result.Err
		}
		e.check((err == nil) == stored && (err == nil || errors.Is(err, store.ErrLeaseLost)), "StepTx returned %v, step stored: %v", err, stored)
		e.ended(id, task.Cancelled, task.KindCancelled)
	}},
	{"another value under a recorded name and a cancel request roll back", func(e *env) {
		c := e.a.take(e.one())
		e.record(step(c, "tx", `2`))
		e.wantErr("StepTx", e.rolledBack(c, time.Second, returnsOne), store.ErrStepConflict)
		c = e.a.take(e.one())
		e.operate(cancelOf(c.Task.ID))
		e.wantErr("StepTx", e.rolledBack(c, time.Second, returnsOne), store.ErrCancelRequested)
	}},
	{"the same step again writes nothing, whatever its function did", func(e *env) {
		c := e.a.take(e.one())
		n := e.draft()
		first := e.withTx(c, e.enqueuing(n, returnsOne))
		for _, again := range []task.New{n, e.draft()} {
			e.unchanged("the same step", func() { e.equal("the step", e.withTx(c, e.enqueuing(again, returnsOne)), first) })
		}
		e.succeed(n.ID)
	}},
	{"a function that takes too long is rolled back", func(e *env) {
		c := e.a.take(e.one())
		for what, end := range map[string]func(ctx context.Context) (json.RawMessage, error){
			"gives up": func(ctx context.Context) (json.RawMessage, error) { return nil, ctx.Err() },
			"returns":  returnsOne,
		} {
			err := e.rolledBack(c, time.Second/2, func(ctx context.Context) (json.RawMessage, error) { <-ctx.Done(); return end(ctx) })
			e.wantErr("StepTx whose function "+what+" after its time", err, store.ErrStepTxTooLong)
		}
		e.a.beat(c.Lease)
		e.withTx(c, e.enqueuing(e.draft(), returnsOne))
		e.finish(success(c))
	}},
	{"a value returned after the context ended is not stored", func(e *env) {
		c := e.a.take(e.one())
		ctx, cancel := context.WithCancel(e.Context())
		defer cancel()
		r := step(c, "tx", "")
		r.Step.Value, r.SQLTx = nil, e.sqlTx
		e.unchanged("a step whose context ended", func() {
			got, err := e.s.StepTx(ctx, e.ns, r, time.Second, e.enqueuing(e.draft(), func(context.Context) (json.RawMessage, error) {
				cancel()
				return json.RawMessage(`1`), nil
			}))
			e.check(err != nil, "StepTx answered %+v", got)
		})
	}},
	{"R-21 a slow function does not cost other leases", func(e *env) {
		slow := e.a.take(e.one())
		others := e.b.takeAll(e.many(5)...)
		leases := leasesOf(others)
		for range 3 {
			e.together(
				func() {
					name := step(slow, "tx", "")
					name.Step.Value, name.Step.Name, name.SQLTx = nil, e.newID().String(), e.sqlTx
					got, err := e.s.StepTx(e.Context(), e.ns, name, ttl/3, func(ctx context.Context, _ store.Tx) (json.RawMessage, error) {
						time.Sleep(ttl / 6)
						return json.RawMessage(`1`), nil
					})
					e.check(err == nil && got.Err == nil, "the slow StepTx: %v, %v", err, got.Err)
				},
				func() {
					for range 10 {
						beats, err := e.s.Heartbeat(e.Context(), e.ns, store.HeartbeatRequest{Worker: e.b.id, TTL: ttl, Leases: leases})
						e.check(err == nil, "Heartbeat: %v", err)
						for _, b := range beats {
							e.check(!b.Lost && b.Cancel == "", "the beat of a lease beside a slow StepTx answered %+v", b)
						}
					}
				},
			)
			e.pass(ttl / 3)
			e.a.beat(slow.Lease)
			e.b.beat(leases...)
		}
		e.reapsNothing()
		e.finishOK(finishes(append(others, slow), success)...)
	}},
}

// inSQLTx marks cases whose functions want a *sql.Tx.
func inSQLTx(cases []testCase) (list []testCase) {
	for _, c := range cases {
		list = append(list, testCase{c.name, func(e *env) { e.sqlTx = true; c.run(e) }})
	}
	return list
}

type txFunc = func(ctx context.Context, tx store.Tx) (json.RawMessage, error)

// stepTx runs a function as a step.
func (e *env) stepTx(c store.Claimed, limit time.Duration, fn txFunc) (store.RecordResult, error) {
	r := step(c, "tx", "")
	r.Step.Value, r.SQLTx = nil, e.sqlTx
	return e.s.StepTx(e.Context(), e.ns, r, limit, fn)
}

// enqueuing returns a function that enqueues a task through its transaction and then calls then.
func (e *env) enqueuing(n task.New, then func(ctx context.Context) (json.RawMessage, error)) txFunc {
	return func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		got, err := e.s.Enqueue(ctx, e.ns, tx, store.Submission{Tasks: []task.New{n}})
		if err != nil {
			return nil, err
		}
		e.check(len(got) == 1 && got[0].ID == n.ID, "Enqueue in the step's transaction answered %v", got)
		return then(ctx)
	}
}

// returnsOne is the default step function.
func returnsOne(context.Context) (json.RawMessage, error) { return json.RawMessage(`1`), nil }

// rolledBack expects a step to leave no rows, and returns its error.
func (e *env) rolledBack(c store.Claimed, limit time.Duration, then func(ctx context.Context) (json.RawMessage, error)) error {
	e.Helper()
	var got error
	e.unchanged("a step that was rolled back", func() {
		r, err := e.stepTx(c, limit, e.enqueuing(e.draft(), then))
		if got = err; got == nil {
			got = r.Err
		}
	})
	return got
}

// withTx runs a step, which must be accepted.
func (e *env) withTx(c store.Claimed, fn txFunc) task.Step {
	e.Helper()
	got, err := e.stepTx(c, time.Second, fn)
	e.require(err == nil && got.Err == nil, "StepTx: %v, %v", err, got.Err)
	return got.Step
}

// identical is == on purpose: the error must be returned unwrapped.
func identical(a, b any) bool { return a == b }
