package postgres_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
)

var (
	Book = weaver.Define[string, int]("acme.docs.book.v1")
	Ship = weaver.Define[string, int]("acme.docs.ship.v1")
)

func book(ctx context.Context, order string) (int, error) {
	return weaver.StepTx(ctx, "book", func(ctx context.Context, tx *sql.Tx) (int, error) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO bookings (name) VALUES ($1)", order); err != nil {
			return 0, err
		}
		_, err := Ship.Enqueue(ctx, weaver.InStepTx(ctx), order) // in the same transaction
		return len(order), err
	})
}

func bookAll(ctx context.Context, names []string) (int, error) {
	return weaver.StepTx(ctx, "book all", func(ctx context.Context, tx pgx.Tx) (int, error) {
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"bookings"}, []string{"name"},
			pgx.CopyFromSlice(len(names), func(i int) ([]any, error) { return []any{names[i]}, nil }))
		return int(n), err
	})
}

func orderBySQL(ctx context.Context, db *postgres.DB, client *weaver.Client, order string) error {
	tx, err := db.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (name) VALUES ($1)", order); err != nil {
		return err
	}
	if _, err := Book.Enqueue(ctx, client.InTx(db.Tx(tx)), order); err != nil {
		return err
	}
	return tx.Commit()
}

func orderByPgx(ctx context.Context, db *postgres.DB, client *weaver.Client, order string) error {
	return pgx.BeginFunc(ctx, db.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (name) VALUES ($1)", order); err != nil {
			return err
		}
		_, err := Book.Enqueue(ctx, client.InTx(postgres.Tx(tx)), order)
		return err
	})
}

func openOnMyPool(ctx context.Context, url string) (*pgxpool.Pool, *postgres.DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = 20
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // for PgBouncer; see Poolers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	db, err := postgres.New(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return pool, db, nil
}

// The functions above are the programs of docs/postgres.md; this test checks their documented
// effects.
func TestDocumentedTransactions(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_doc_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "## Your own tables\n")
	for shown != "" {
		var program string
		_, shown, _ = strings.Cut(shown, "```go\n")
		program, shown, _ = strings.Cut(shown, "```\n")
		if !strings.Contains(string(source), program) {
			t.Errorf("docs/postgres.md shows a program that stands not here:\n%s", program)
		}
	}

	url := pgtest.Migrated(t, "weaver", migrateURL)
	u := connect(t, url)
	u.exec("CREATE TABLE public.orders (name text)")
	u.exec("CREATE TABLE public.bookings (name text)")
	pool, db, err := openOnMyPool(pgharness.With(t.Context(), pgharness.Settings{FsyncOff: true}), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		pool.Close()
	})
	eng := running(t, db, weaver.Config{Lease: 5 * time.Second, Handlers: []weaver.Handler{
		Book.Handler(func(ctx context.Context, order string) (int, error) {
			n, err := book(ctx, order)
			if err != nil {
				return 0, err
			}
			more, err := bookAll(ctx, []string{"a", "b"})
			return n + more, err
		}),
		Ship.Handler(func(_ context.Context, order string) (int, error) { return len(order), nil }),
	}})
	for _, order := range []func(context.Context, *postgres.DB, *weaver.Client, string) error{orderBySQL, orderByPgx} {
		if err := order(t.Context(), db, eng.Client, "pen"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both orders are shipped", func() bool {
		return u.texts("SELECT count(*)::text FROM weaver_tasks WHERE state = 'succeeded'")[0] == "4"
	})
	if got := strings.Join(u.texts("SELECT name FROM public.bookings ORDER BY name"), " "); got != "a a b b pen pen" {
		t.Errorf("booked %s", got)
	}
}
