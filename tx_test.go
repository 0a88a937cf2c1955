package weaver_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// inDB is a scene on a database with a table of the user's own.
func inDB(t *testing.T, name string, play func(w *world, db *sqlite.DB)) {
	t.Helper()
	scene(t, name, func(w *world) {
		db := openMemory(w)
		_, err := db.DB().ExecContext(w.Context(), "CREATE TABLE users (name TEXT PRIMARY KEY)")
		w.must(err)
		play(newWorld(w.T, db), db)
	})
}

// users counts the rows of the user's table.
func users(w *world, db *sqlite.DB) int {
	w.Helper()
	var n int
	w.must(db.DB().QueryRowContext(w.Context(), "SELECT count(*) FROM users").Scan(&n))
	return n
}

func addUser(ctx context.Context, tx *sql.Tx, name string) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO users (name) VALUES (?)", name)
	return err
}

func TestInTx(t *testing.T) {
	typ := weaver.Define[string, string]("engine.tx.run.v1")
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	inDB(t, "what commits is enqueued, together with the caller's rows", func(w *world, db *sqlite.DB) {
		e := w.run(echo)
		tx, err := db.DB().BeginTx(w.Context(), nil)
		w.must(err)
		w.must(addUser(w.Context(), tx, "ann"))
		h, err := typ.Enqueue(w.Context(), e.InTx(sqlite.Tx(tx)), "ann")
		w.must(err)
		_, err = h.Wait(w.Context())
		wantError(w, err, weaver.ErrUnbound, "after the commit")
		_, err = h.Get(w.Context())
		wantError(w, err, weaver.ErrUnbound)
		_, err = w.client.Get(w.Context(), h.ID())
		wantError(w, err, weaver.ErrNotFound) // nobody sees it before

		committed := time.Now()
		w.must(tx.Commit())
		e.Wake()
		got, err := w.client.Wait(w.Context(), h.ID())
		w.must(err)
		equal(w, "state", got.State, weaver.StateSucceeded)
		equal(w, "time from the commit", time.Since(committed), 0)
		equal(w, "users", users(w, db), 1)
	})

	inDB(t, "what is rolled back never was", func(w *world, db *sqlite.DB) {
		w.run(typ.Handler(func(context.Context, string) (string, error) { w.Error("it ran"); return "", nil }))
		tx, err := db.DB().BeginTx(w.Context(), nil)
		w.must(err)
		w.must(addUser(w.Context(), tx, "ann"))
		h, err := typ.Enqueue(w.Context(), w.client.InTx(sqlite.Tx(tx)), "ann", weaver.IdempotencyKey("evt-1"))
		w.must(err)
		w.must(tx.Rollback())
		time.Sleep(time.Hour)
		_, err = w.client.Get(w.Context(), h.ID())
		wantError(w, err, weaver.ErrNotFound)
		equal(w, "users", users(w, db), 0)
		equal(w, "the key is free", enqueue(w, weaver.Define[string, string](typ.Name()), "x", weaver.IdempotencyKey("evt-1"), weaver.Delay(time.Hour)).Disposition(), weaver.DispositionCreated)
	})

	inDB(t, "all rules of the client hold", func(w *world, db *sqlite.DB) {
		charge := weaver.Define[order, order]("engine.tx.charge.v1")
		first := enqueue(w, typ, "x", weaver.IdempotencyKey("evt-1"))
		tx, err := db.DB().BeginTx(w.Context(), nil)
		w.must(err)
		in := w.client.InTx(sqlite.Tx(tx))
		_, err = charge.Enqueue(w.Context(), in, order{Total: -1})
		wantError(w, err, weaver.ErrInvalidInput, "Total is -1")
		again, err := typ.Enqueue(w.Context(), in, "y", weaver.IdempotencyKey("evt-1"))
		w.must(err)
		equal(w, "disposition", again.Disposition(), weaver.DispositionExisting)
		equal(w, "id", again.ID(), first.ID())
		many, err := typ.EnqueueMany(w.Context(), in, []string{"a", "b"})
		w.must(err)
		w.must(tx.Commit())
		w.idle(echo)
		for _, h := range many {
			w.wantState(h.ID(), weaver.StateSucceeded)
		}
	})

	inDB(t, "a transaction of another driver is refused", func(w *world, _ *sqlite.DB) {
		other := sql.OpenDB(otherDriver{})
		tx, err := other.BeginTx(w.Context(), nil)
		w.must(err)
		_, err = typ.Enqueue(w.Context(), w.client.InTx(sqlite.Tx(tx)), "x")
		wantError(w, err, weaver.ErrForeignTx, "another database driver", "begin it with the store's DB()")
		w.must(tx.Rollback())
		w.must(other.Close())
	})

	t.Run("a transaction of another database is refused", func(t *testing.T) {
		w := newWorld(t, openMemory(t))
		other := openFile(t, filepath.Join(t.TempDir(), "other.db"))
		tx, err := other.DB().BeginTx(t.Context(), nil)
		w.must(err)
		_, err = typ.Enqueue(t.Context(), w.client.InTx(sqlite.Tx(tx)), "x")
		wantError(t, err, weaver.ErrForeignTx)
		w.must(tx.Rollback())
		_, err = typ.Enqueue(t.Context(), w.client.InTx(sqlite.Tx(nil)), "x")
		wantError(t, err, weaver.ErrForeignTx, "nil")
	})
}

// otherDriver is a database driver that knows no statement.
type otherDriver struct{}

func (d otherDriver) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d otherDriver) Driver() driver.Driver                        { return d }
func (d otherDriver) Open(string) (driver.Conn, error)             { return d, nil }
func (d otherDriver) Begin() (driver.Tx, error)                    { return d, nil }
func (otherDriver) Commit() error                                  { return nil }
func (otherDriver) Rollback() error                                { return nil }
func (otherDriver) Close() error                                   { return nil }

func (otherDriver) Prepare(query string) (driver.Stmt, error) {
	return nil, fmt.Errorf("syntax error in %q", query)
}

func TestStepTx(t *testing.T) {
	typ := weaver.Define[string, int]("engine.steptx.run.v1", weaver.MaxAttempts(3))
	child := weaver.Define[string, string]("engine.steptx.child.v1")

	inDB(t, "commits the value and the caller's rows together, once", func(w *world, db *sqlite.DB) {
		attempts, ran := 0, 0
		w.run(typ.Handler(func(ctx context.Context, in string) (int, error) {
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
		h := enqueue(w, typ, "ann")
		equal(w, "value", result(w, h), 7)
		equal(w, "runs of the step", ran, 1)
		equal(w, "users", users(w, db), 1)
		list, _, err := child.List(w.Context(), w.client, weaver.Filter{})
		w.must(err)
		equal(w, "tasks enqueued in the step", len(list), 1)
		equal(w, "completed steps", w.get(h.ID()).StepCount, 1)
	})

	inDB(t, "takes everything back when the function fails or panics", func(w *world, db *sqlite.DB) {
		for i, fail := range []func() error{
			func() error { return errors.New("no") },
			func() error { panic("boom") },
		} {
			attempts := 0
			e := w.start(w.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (int, error) {
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
			h := enqueue(w, typ, fmt.Sprint("user ", i))
			equal(w, "value", result(w, h), 3)
			equal(w, "users", users(w, db), i+1)
			list, _, err := child.List(w.Context(), w.client, weaver.Filter{})
			w.must(err)
			equal(w, "tasks enqueued in steps", len(list), i+1)
			var failed int
			for _, s := range w.history(h.ID()).Steps {
				if s.State == task.StepFailed {
					failed++
				}
			}
			equal(w, "failed tries on record", failed, 2)
			w.must(e.stop())
		}
	})

	inDB(t, "is rolled back when it takes too long", func(w *world, db *sqlite.DB) {
		attempts := 0
		var tooLong error
		w.runConfig(w.store, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (int, error) {
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
		h := enqueue(w, typ, "ann")
		equal(w, "value", result(w, h), 2)
		wantError(w, tooLong, weaver.ErrStepTxTooLong, `step "save"`, "2s")
		equal(w, "users", users(w, db), 1)
		w.wantOutcomes(h.ID(), task.OutcomeFailure, task.OutcomeSuccess)
	})

	inDB(t, "writes nothing for a lease that is lost", func(w *world, db *sqlite.DB) {
		g := newGate()
		// Without notices the worker learns of it from its next heartbeat.
		s := storehook.New(db, &storehook.Hooks{Hide: storehook.Notifier | storehook.WaitingClaimer})
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (int, error) {
			if err := g.pass(ctx); err != nil {
				return 0, err
			}
			n, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
				_, err := child.Enqueue(ctx, weaver.InStepTx(ctx), in)
				return 1, errors.Join(err, addUser(ctx, tx, in))
			})
			if !errors.Is(err, weaver.ErrLeaseLost) || !errors.Is(context.Cause(ctx), weaver.ErrLeaseLost) {
				w.Errorf("StepTx returned %v and the context's cause is %v, want ErrLeaseLost", err, context.Cause(ctx))
			}
			return n, nil
		})}})
		h := enqueue(w, typ, "ann")
		<-g.in
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		g.open()
		time.Sleep(2 * weaver.DefaultLease)
		w.wantState(h.ID(), weaver.StateCancelled)
		equal(w, "users", users(w, db), 0)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
		list, _, err := child.List(w.Context(), w.client, weaver.Filter{})
		w.must(err)
		equal(w, "tasks enqueued", len(list), 0)
	})
}

func TestBareEnqueueInHandler(t *testing.T) {
	parent := weaver.Define[string, string]("engine.bare.parent.v1")
	child := weaver.Define[string, string]("engine.bare.child.v1")
	const warning = "enqueued in a handler without an idempotency key: every attempt enqueues again; use weaver.Start, or an IdempotencyKey"
	scene(t, "is warned about, once per type", func(w *world) {
		w.run(parent.Handler(func(ctx context.Context, in string) (string, error) {
			for range 2 {
				if _, err := child.Enqueue(ctx, w.client, in); err != nil {
					return "", err
				}
			}
			_, err := child.Enqueue(ctx, w.client, in, weaver.IdempotencyKey(weaver.Current(ctx).StepKey("child")))
			return in, err
		}))
		h := enqueue(w, parent, "x")
		result(w, h)
		result(w, enqueue(w, parent, "y"))
		lines := w.log.lines(w, warning)
		if len(lines) != 1 {
			w.Fatalf("%d warnings, want 1", len(lines))
		}
		equal(w, "task type", lines[0]["task_type"], any(child.Name()))
		equal(w, "handler", lines[0]["handler"], any(parent.Name()))
		equal(w, "task", lines[0]["task_id"], any(h.ID().String()))
	})
	scene(t, "with a key, or outside, is fine", func(w *world) {
		w.run(parent.Handler(func(ctx context.Context, in string) (string, error) {
			_, err := child.Enqueue(ctx, w.client, in, weaver.IdempotencyKey("k"))
			return in, err
		}))
		result(w, enqueue(w, parent, "x"))
		equal(w, "warnings", len(w.log.lines(w, warning)), 0)
	})
}
