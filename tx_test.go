package weaver_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// inDB is subtest on a database with a user table.
func inDB(t *testing.T, name string, fn func(fx *fixture, db *sqlite.DB)) {
	t.Helper()
	subtest(t, name, func(fx *fixture) {
		db := openMemory(fx)
		_, err := db.DB().ExecContext(fx.Context(), "CREATE TABLE users (name TEXT PRIMARY KEY)")
		fx.must(err)
		fn(newFixture(fx.T, db), db)
	})
}

// users counts the rows of the user table.
func users(fx *fixture, db *sqlite.DB) int {
	fx.Helper()
	var n int
	fx.must(db.DB().QueryRowContext(fx.Context(), "SELECT count(*) FROM users").Scan(&n))
	return n
}

func addUser(ctx context.Context, tx *sql.Tx, name string) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO users (name) VALUES (?)", name)
	return err
}

func TestInTx(t *testing.T) {
	typ := weaver.Define[string, string]("engine.tx.run.v1")
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	inDB(t, "what commits is enqueued, together with the caller's rows", func(fx *fixture, db *sqlite.DB) {
		e := fx.run(echo)
		tx, err := db.DB().BeginTx(fx.Context(), nil)
		fx.must(err)
		fx.must(addUser(fx.Context(), tx, "ann"))
		h, err := typ.Enqueue(fx.Context(), e.InTx(sqlite.Tx(tx)), "ann")
		fx.must(err)
		_, err = h.Wait(fx.Context())
		wantError(fx, err, weaver.ErrUnbound, "after the commit")
		_, err = h.Get(fx.Context())
		wantError(fx, err, weaver.ErrUnbound)
		_, err = fx.client.Get(fx.Context(), h.ID())
		wantError(fx, err, weaver.ErrNotFound) // no other reader sees it before the commit

		committed := time.Now()
		fx.must(tx.Commit())
		e.Wake()
		got, err := fx.client.Wait(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "state", got.State, weaver.StateSucceeded)
		equal(fx, "time from the commit", time.Since(committed), 0)
		equal(fx, "users", users(fx, db), 1)
	})

	inDB(t, "a rollback leaves nothing", func(fx *fixture, db *sqlite.DB) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { fx.Error("it ran"); return "", nil }))
		tx, err := db.DB().BeginTx(fx.Context(), nil)
		fx.must(err)
		fx.must(addUser(fx.Context(), tx, "ann"))
		h, err := typ.Enqueue(fx.Context(), fx.client.InTx(sqlite.Tx(tx)), "ann", weaver.IdempotencyKey("evt-1"))
		fx.must(err)
		fx.must(tx.Rollback())
		time.Sleep(time.Hour)
		_, err = fx.client.Get(fx.Context(), h.ID())
		wantError(fx, err, weaver.ErrNotFound)
		equal(fx, "users", users(fx, db), 0)
		equal(fx, "the key is free", enqueue(fx, weaver.Define[string, string](typ.Name()), "x", weaver.IdempotencyKey("evt-1"), weaver.Delay(time.Hour)).Disposition(), store.DispositionCreated)
	})

	inDB(t, "the checks of the client apply", func(fx *fixture, db *sqlite.DB) {
		charge := weaver.Define[order, order]("engine.tx.charge.v1")
		first := enqueue(fx, typ, "x", weaver.IdempotencyKey("evt-1"))
		tx, err := db.DB().BeginTx(fx.Context(), nil)
		fx.must(err)
		in := fx.client.InTx(sqlite.Tx(tx))
		_, err = charge.Enqueue(fx.Context(), in, order{Total: -1})
		wantError(fx, err, weaver.ErrInvalidInput, "Total is -1")
		again, err := typ.Enqueue(fx.Context(), in, "y", weaver.IdempotencyKey("evt-1"))
		fx.must(err)
		equal(fx, "disposition", again.Disposition(), store.DispositionExisting)
		equal(fx, "id", again.ID(), first.ID())
		many, err := typ.EnqueueMany(fx.Context(), in, []string{"a", "b"})
		fx.must(err)
		fx.must(tx.Commit())
		fx.idle(echo)
		for _, h := range many {
			fx.wantState(h.ID(), weaver.StateSucceeded)
		}
	})

	inDB(t, "a transaction of another driver is refused", func(fx *fixture, _ *sqlite.DB) {
		other := sql.OpenDB(otherDriver{})
		tx, err := other.BeginTx(fx.Context(), nil)
		fx.must(err)
		_, err = typ.Enqueue(fx.Context(), fx.client.InTx(sqlite.Tx(tx)), "x")
		wantError(fx, err, store.ErrForeignTx, "another database driver", "begin it with the store's DB()")
		fx.must(tx.Rollback())
		fx.must(other.Close())
	})

	t.Run("a transaction of another database is refused", func(t *testing.T) {
		fx := newFixture(t, openMemory(t))
		other := openFile(t, filepath.Join(t.TempDir(), "other.db"))
		tx, err := other.DB().BeginTx(t.Context(), nil)
		fx.must(err)
		_, err = typ.Enqueue(t.Context(), fx.client.InTx(sqlite.Tx(tx)), "x")
		wantError(t, err, store.ErrForeignTx)
		fx.must(tx.Rollback())
		_, err = typ.Enqueue(t.Context(), fx.client.InTx(sqlite.Tx(nil)), "x")
		wantError(t, err, store.ErrForeignTx, "nil")
	})
}

// otherDriver is a database driver that supports no statement.
type otherDriver struct{}

func (d otherDriver) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (d otherDriver) Driver() driver.Driver { return d }

func (d otherDriver) Open(string) (driver.Conn, error) { return d, nil }

func (d otherDriver) Begin() (driver.Tx, error) { return d, nil }

func (otherDriver) Commit() error { return nil }

func (otherDriver) Rollback() error { return nil }

func (otherDriver) Close() error { return nil }

func (otherDriver) Prepare(query string) (driver.Stmt, error) {
	return nil, fmt.Errorf("syntax error in %q", query)
}

func TestStepTx(t *testing.T) {
	typ := weaver.Define[string, int]("engine.steptx.run.v1", weaver.MaxAttempts(3))
	child := weaver.Define[string, string]("engine.steptx.child.v1")

	inDB(t, "commits the value and the caller's rows together, once", func(fx *fixture, db *sqlite.DB) {
		attempts, ran := 0, 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (int, error) {
			n, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
				ran++
				if _, err := child.Enqueue(ctx, weaver.InStepTx(ctx), in); err != nil {
					return 0, err
				}
				return 7, addUser(ctx, tx, in)
			})
			if attempts++; err == nil && attempts < 3 {
				err = errors.New("after the step")
			}
			return n, err
		}))
		h := enqueue(fx, typ, "ann")
		equal(fx, "value", result(fx, h), 7)
		equal(fx, "runs of the step", ran, 1)
		equal(fx, "users", users(fx, db), 1)
		list, _, err := child.List(fx.Context(), fx.client, weaver.Filter{})
		fx.must(err)
		equal(fx, "tasks enqueued in the step", len(list), 1)
		equal(fx, "completed steps", fx.get(h.ID()).StepCount, 1)
	})

	inDB(t, "is rolled back when the function fails or panics", func(fx *fixture, db *sqlite.DB) {
		for i, fail := range []func() error{
			func() error { return errors.New("no") },
			func() error { panic("boom") },
		} {
			attempts := 0
			e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (int, error) {
				attempts++
				return weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
					if err := addUser(ctx, tx, in); err != nil {
						return 0, err
					}
					if _, err := child.Enqueue(ctx, weaver.InStepTx(ctx), in); err != nil {
						return 0, err
					}
					if attempts < 3 {
						return 0, fail()
					}
					return attempts, nil
				})
			})}})
			h := enqueue(fx, typ, fmt.Sprint("user ", i))
			equal(fx, "value", result(fx, h), 3)
			equal(fx, "users", users(fx, db), i+1)
			list, _, err := child.List(fx.Context(), fx.client, weaver.Filter{})
			fx.must(err)
			equal(fx, "tasks enqueued in steps", len(list), i+1)
			var failed int
			for _, s := range fx.history(h.ID()).Steps {
				if s.State == task.StepFailed {
					failed++
				}
			}
			equal(fx, "failed tries on record", failed, 2)
			fx.must(e.stop())
		}
	})

	inDB(t, "is rolled back when it takes too long", func(fx *fixture, db *sqlite.DB) {
		attempts := 0
		var tooLong error
		fx.runConfig(fx.store, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (int, error) {
			attempts++
			n, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
				if err := addUser(ctx, tx, in); err != nil {
					return 0, err
				}
				if attempts == 1 {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				return attempts, nil
			})
			if attempts == 1 {
				tooLong = err
			}
			return n, err
		})}})
		h := enqueue(fx, typ, "ann")
		equal(fx, "value", result(fx, h), 2)
		wantError(fx, tooLong, weaver.ErrStepTxTooLong, `step "save"`, "2s")
		equal(fx, "users", users(fx, db), 1)
		fx.wantOutcomes(h.ID(), task.OutcomeFailure, task.OutcomeSuccess)
	})

	inDB(t, "writes nothing for a lease that is lost", func(fx *fixture, db *sqlite.DB) {
		g := newGate()
		// Without notices the worker learns of it from its next heartbeat.
		s := storehook.New(db, &storehook.Hooks{Hide: store.CanNotify | store.CanWait})
		fx.runConfig(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (int, error) {
			if err := g.pass(ctx); err != nil {
				return 0, err
			}
			n, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
				_, err := child.Enqueue(ctx, weaver.InStepTx(ctx), in)
				return 1, errors.Join(err, addUser(ctx, tx, in))
			})
			if !errors.Is(err, weaver.ErrLeaseLost) || !errors.Is(context.Cause(ctx), weaver.ErrLeaseLost) {
				fx.Errorf("StepTx returned %v and the context's cause is %v, want ErrLeaseLost", err, context.Cause(ctx))
			}
			return n, nil
		})}})
		h := enqueue(fx, typ, "ann")
		<-g.in
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		g.open()
		time.Sleep(2 * store.DefaultLease)
		fx.wantState(h.ID(), weaver.StateCancelled)
		equal(fx, "users", users(fx, db), 0)
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
		list, _, err := child.List(fx.Context(), fx.client, weaver.Filter{})
		fx.must(err)
		equal(fx, "tasks enqueued", len(list), 0)
	})
}

func TestTransactionsOfSteps(t *testing.T) {
	typ := weaver.Define[string, string]("engine.steptx.limits.v1", weaver.NoRetry())
	for lease, want := range map[time.Duration]time.Duration{3 * time.Second: time.Second, 30 * time.Second: 5 * time.Second} {
		sqlSubtest(t, "end after the smaller of 5 s and a third of the lease: "+lease.String(), func(fx *fixture) {
			s := newFaults(fx)
			var limit time.Duration
			s.hooks.StepTx = func(_ context.Context, c *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
				limit = c.Limit
				return next()
			}
			fx.runConfig(s.store, weaver.Config{Lease: lease, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (string, error) { return "ok", nil })
			})}})
			result(fx, enqueue(fx, typ, ""))
			equal(fx, "limit", limit, want)
		})
	}

	sqlSubtest(t, "store no value over the inline limit", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{InlineLimit: 100, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (string, error) { return strings.Repeat("x", 101), nil })
			return "ok", err
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "kind", failure(fx, h).Kind, task.KindValidation)
		for _, s := range fx.history(h.ID()).Steps {
			if s.State == task.StepCompleted {
				fx.Errorf("the step is recorded as completed: %+v", s)
			}
		}
	})
}

// foreignTx is a transaction of a database that is not the store's.
type foreignTx struct{}

// Driver implements store.Tx.
func (foreignTx) Driver() string { return "postgres" }

// Handle implements store.Tx.
func (foreignTx) Handle() any { return nil }

func TestTransactionMistakes(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.tx.run.v1")

	sqlSubtest(t, "InTx with another driver's transaction", func(fx *fixture) {
		_, err := typ.Enqueue(fx.Context(), fx.client.InTx(foreignTx{}), "x")
		wantError(fx, err, store.ErrForeignTx, "postgres")
		_, err = typ.Enqueue(fx.Context(), fx.client.InTx(nil), "x")
		wantError(fx, err, store.ErrForeignTx, "InTx(nil): the transaction is nil: begin one")
		if strings.Contains(err.Error(), "another") {
			fx.Errorf("%q speaks of another database", err)
		}
	})

	sqlSubtest(t, "a client inside StepTx", func(fx *fixture) {
		var errs []error
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.StepTx(ctx, "save", func(ctx context.Context, _ *sql.Tx) (string, error) {
				_, err := typ.Enqueue(ctx, fx.client, "child")
				errs = append(errs, err)
				_, err = fx.client.Submit(ctx, weaver.NewJob("x"))
				errs = append(errs, err, fx.client.Cancel(ctx, weaver.TaskID{1}))
				return in, nil
			})
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "x")), "x")
		for _, err := range errs {
			wantError(fx, err, weaver.ErrNestedTx, "weaver.InStepTx(ctx)")
		}
		equal(fx, "calls refused", len(errs), 3)
	})

	sqlSubtest(t, "a client inside StepTx, whose error is returned", func(fx *fixture) {
		calls := 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			calls++
			return weaver.StepTx(ctx, "save", func(ctx context.Context, _ *sql.Tx) (string, error) {
				_, err := typ.Enqueue(ctx, fx.client, "child")
				return in, err
			})
		}))
		wantError(fx, failure(fx, enqueue(fx, typ, "x")), nil, "weaver.InStepTx(ctx)")
		equal(fx, "attempts", calls, 1)
	})

	sqlSubtest(t, "StepTx with another type of transaction", func(fx *fixture) {
		type pgxTx interface {
			Begin(context.Context) (any, error)
		}
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			out, err := weaver.StepTx(ctx, "save", func(context.Context, pgxTx) (string, error) { return in, nil })
			if !errors.Is(err, weaver.ErrTxType) {
				fx.Errorf("StepTx returned %v", err)
			}
			return out, err
		}))
		te := failure(fx, enqueue(fx, typ, "x"))
		wantError(fx, te, nil, `step "save"`, "pgxTx", "*sql.Tx")
		equal(fx, "attempts", te.Attempts, 1)
	})

	sqlSubtest(t, "StepTx on a store without transactions", func(fx *fixture) {
		fx.runConfig(polled(fx.store), weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return in, nil })
		})}})
		h := enqueue(fx, typ, "x")
		fx.client.Wake()
		te := failure(fx, h)
		wantError(fx, te, nil, `step "save"`, "cannot run steps inside its transactions")
		equal(fx, "kind", te.Kind, task.KindHandler)
	})
}
