package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// program is a program for SQLite with tables of its own: it does not depend on the store that it
// runs on.
type program struct {
	*testing.T
	db     *sql.DB
	client *weaver.Client
	order  *weaver.Type[string, int]
	ship   *weaver.Type[string, int]
}

var errSoldOut = errors.New("sold out")

// handle writes an order and enqueues its shipment in a StepTx; the input selects how it ends.
func (p *program) handle(ctx context.Context, in string) (int, error) {
	n, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
		st, err := tx.PrepareContext(ctx, "INSERT INTO orders (name) VALUES ($1)")
		if err != nil {
			return 0, err
		}
		if _, err := st.ExecContext(ctx, in); err != nil {
			return 0, err
		}
		if _, err := p.ship.Enqueue(ctx, weaver.InStepTx(ctx), in); err != nil {
			return 0, err
		}
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM orders WHERE name = $1", in).Scan(&n); err != nil {
			return 0, err
		}
		rows, err := tx.Query("SELECT name FROM orders UNION ALL SELECT 'another'") // left open
		if err == nil && !rows.Next() {
			err = errors.Join(errors.New("no row"), rows.Close())
		}
		if err != nil {
			return 0, err
		}
		return n, p.end(ctx, tx, in)
	}, weaver.UndoTx(func(ctx context.Context, tx *sql.Tx, u weaver.Undoing[int]) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders (name) VALUES ($1)", fmt.Sprint("undone ", u.Out))
		return err
	}))
	if in == "undo" && err == nil {
		err = weaver.Permanent(errSoldOut)
	}
	return n, err
}

// end ends the function, or its transaction.
func (p *program) end(ctx context.Context, tx *sql.Tx, in string) error {
	exec := func(text string) error { _, err := tx.ExecContext(ctx, text); return err }
	switch in {
	case "fails":
		return errSoldOut
	case "panics":
		panic("boom")
	case "takes too long":
		<-ctx.Done()
		return context.Cause(ctx)
	case "commits":
		return tx.Commit()
	case "commits silently":
		_ = tx.Commit()
	case "commits by SQL":
		return exec("-- now\n/* really */ commit")
	case "ends by SQL and goes on":
		_ = exec("END")
		return exec("INSERT INTO orders (name) VALUES ('more')")
	case "commits in a longer text":
		_ = exec("INSERT INTO orders (name) VALUES (';'); COMMIT; BEGIN")
	case "commits by a statement":
		st, err := tx.PrepareContext(ctx, "COMMIT")
		if err == nil {
			_, err = st.ExecContext(ctx)
		}
		return err
	case "commits by a query":
		_ = tx.QueryRowContext(ctx, "COMMIT").Scan(new(any))
	case "rolls back":
		return tx.Rollback()
	case "rolls back by SQL":
		return exec("ROLLBACK")
	}
	return nil
}

// The same program runs on SQLite, on PostgreSQL and through PgBouncer: only the line that opens
// the store differs.
func TestStepTxOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	overPg := func(url string) func(t *testing.T) (store.Store, *sql.DB) {
		return func(t *testing.T) (store.Store, *sql.DB) { db := openURL(t, url); return db, db.DB() }
	}
	for name, open := range map[string]func(t *testing.T) (store.Store, *sql.DB){
		"sqlite": func(t *testing.T) (store.Store, *sql.DB) {
			db, err := sqlite.OpenMemory(t.Context())
			if err == nil {
				err = db.Migrate(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db, db.DB()
		},
		"postgres": overPg(url),
		"pooled":   overPg(pgtest.Bouncer(t, pgtest.Migrated(t, "weaver", migrateURL), "transaction", "default_pool_size = 4", "server_round_robin = 1")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, db := open(t)
			testStepTxOfDatabaseSQL(t, st, db)
		})
	}
}

func testStepTxOfDatabaseSQL(t *testing.T, st store.Store, db *sql.DB) {
	client, err := weaver.NewClient(st, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{
		T: t, db: db, client: client,
		order: weaver.Define[string, int]("acme.test.sqltx.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Millisecond)),
		ship:  weaver.Define[string, int]("acme.test.sqlship.v1"),
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (name TEXT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	running(t, st, weaver.Config{Lease: 2 * time.Second, Handlers: []weaver.Handler{p.order.Handler(p.handle)}})

	p.expect("ann", task.Succeeded, nil, "ann")
	p.expect("undo", task.Failed, errSoldOut, "ann", "undo", "undone 1")
	for in, want := range map[string]error{"fails": errSoldOut, "panics": errors.New("boom"), "takes too long": weaver.ErrStepTxTooLong} {
		if got := p.expect(in, task.Failed, want, "ann", "undo", "undone 1"); got.AttemptNo != 2 {
			t.Errorf("%s: %d attempts, want 2", in, got.AttemptNo)
		}
	}
	for _, in := range []string{
		"commits", "commits silently", "commits by SQL", "ends by SQL and goes on", "commits in a longer text", "commits by a statement",
		"commits by a query", "rolls back", "rolls back by SQL",
	} {
		if got := p.expect(in, task.Failed, store.ErrStepTxEnded, "ann", "undo", "undone 1"); got.AttemptNo != 1 {
			t.Errorf("%s: %d attempts, want 1", in, got.AttemptNo)
		}
	}
}

// expect runs an order and compares its outcome with the rows and shipments.
func (p *program) expect(in string, state task.State, said error, orders ...string) weaver.TaskInfo {
	p.Helper()
	h, err := p.order.Enqueue(p.Context(), p.client, in)
	if err != nil {
		p.Fatal(err)
	}
	_, _ = h.Wait(p.Context()) // the task holds the error
	got, err := p.client.Get(p.Context(), h.ID())
	switch {
	case err != nil:
		p.Fatal(err)
	case got.State != state || said != nil && (got.Error == nil || !strings.Contains(got.Error.Message, said.Error())):
		p.Errorf("%s: %v, %+v, want %v, %v", in, got.State, got.Error, state, said)
	}
	rows, err := p.db.QueryContext(p.Context(), "SELECT name FROM orders ORDER BY name")
	if err != nil {
		p.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			p.Fatal(err)
		}
		names = append(names, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		p.Fatal(err)
	}
	if !slices.Equal(names, orders) {
		p.Errorf("%s: the orders are %q, want %q", in, names, orders)
	}
	shipments, _, err := p.ship.List(p.Context(), p.client, weaver.Filter{})
	want := 1
	if slices.Contains(orders, "undo") {
		want = 2
	}
	if err != nil || len(shipments) != want {
		p.Errorf("%s: %d shipments, %v, want %d", in, len(shipments), err, want)
	}
	return got
}

// StepTx behaviour that only PostgreSQL has.
func TestStepTxOfPostgres(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	u := connect(t, url)
	u.exec("CREATE TABLE public.kept (n bigint PRIMARY KEY)")
	db := openURL(t, url)
	typ := weaver.Define[string, int]("acme.test.steptx.v1", weaver.NoRetry())
	bySQL := func(fn func(ctx context.Context, tx *sql.Tx) error) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			return weaver.StepTx(ctx, "s", func(ctx context.Context, tx *sql.Tx) (int, error) { return 1, fn(ctx, tx) })
		}
	}
	byPgx := func(fn func(ctx context.Context, tx pgx.Tx) error) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			return weaver.StepTx(ctx, "s", func(ctx context.Context, tx pgx.Tx) (int, error) { return 1, fn(ctx, tx) })
		}
	}
	const insert = "INSERT INTO public.kept VALUES (1)"
	type scene struct {
		run  func(context.Context) (int, error)
		want []string
	}
	cases := map[string]scene{
		"no transaction": {func(ctx context.Context) (int, error) {
			return weaver.StepTx(ctx, "s", func(context.Context, *strings.Builder) (int, error) { return 1, nil })
		}, []string{weaver.ErrTxType.Error(), "*strings.Builder", "*sql.Tx", "pgx.Tx"}},
		"an interface that *sql.Tx has": {func(ctx context.Context) (int, error) {
			type execer interface {
				ExecContext(context.Context, string, ...any) (sql.Result, error)
			}
			return weaver.StepTx(ctx, "s", func(context.Context, execer) (int, error) { return 1, errSoldOut })
		}, []string{errSoldOut.Error()}},
		"a statement that sleeps": {bySQL(func(_ context.Context, tx *sql.Tx) error {
			_, err := tx.Exec(insert + "; SELECT pg_sleep(30)")
			return err
		}), []string{weaver.ErrStepTxTooLong.Error()}},
		"a failed statement that is not returned": {bySQL(func(ctx context.Context, tx *sql.Tx) error {
			_, _ = tx.ExecContext(ctx, insert)
			_, _ = tx.ExecContext(ctx, insert)
			return nil
		}), []string{store.ErrStepTxRefused.Error(), "ON CONFLICT"}},
		"pgx: a commit": {byPgx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert)
			return errors.Join(err, tx.Commit(ctx))
		}), []string{store.ErrStepTxEnded.Error()}},
		"pgx: a batch with a COMMIT": {byPgx(func(ctx context.Context, tx pgx.Tx) error {
			b := new(pgx.Batch)
			b.Queue(insert)
			b.Queue("COMMIT")
			return tx.SendBatch(ctx, b).Close()
		}), []string{store.ErrStepTxEnded.Error()}},
		"pgx: a query, and a rollback": {byPgx(func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.QueryRow(ctx, "END").Scan(new(int))
			return tx.Rollback(ctx)
		}), []string{store.ErrStepTxEnded.Error()}},
		"pgx: past the handle": {byPgx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, "ROLLBACK")
			return err
		}), []string{store.ErrStepTxEnded.Error()}},
		"pgx: savepoints": {byPgx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SAVEPOINT a; "+insert+"; ROLLBACK TO a; ROLLBACK WORK TO SAVEPOINT a")
			return errors.Join(err, pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return nil }), errSoldOut)
		}), []string{errSoldOut.Error()}},
	}
	eng := running(t, db, weaver.Config{Lease: 2 * time.Second, Handlers: []weaver.Handler{
		typ.Handler(func(ctx context.Context, name string) (int, error) { return cases[name].run(ctx) }),
	}})
	for name, c := range cases {
		h, err := typ.Enqueue(t.Context(), eng, name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Wait(t.Context())
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	if n := u.texts("SELECT count(*)::text FROM public.kept")[0]; n != "0" {
		t.Errorf("%s rows were kept", n)
	}
}
