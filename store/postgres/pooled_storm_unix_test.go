//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
)

// stormURL is the environment variable with the database URL for a process of the storm.
const stormURL = "WEAVER_TEST_STORM_URL"

// stormLives is the number of processes that are killed, one after the other, while two others run.
const stormLives = 6

var stormTask = weaver.Define[int, int]("acme.test.storm.v1")

// Processes are killed repeatedly while all of them use PgBouncer in transaction mode. They enqueue
// in transactions of their own, with pgx and with database/sql, and their handlers write in StepTx.
// Each order has its task, each task its effects once, and no statement fails because it runs on
// another session.
func TestE2EStormThroughPgBouncer(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	if url := os.Getenv(stormURL); url != "" {
		stormProcess(t, url)
		return
	}
	url := pgtest.Migrated(t, "weaver", migrateURL)
	through := pgtest.Bouncer(t, url, "transaction", "default_pool_size = 6", "server_round_robin = 1")
	u := connect(t, url)
	u.exec("CREATE SEQUENCE public.numbers")
	u.exec("CREATE TABLE public.orders (n bigint PRIMARY KEY)")
	u.exec("CREATE TABLE public.shipped (n bigint, way text, PRIMARY KEY (n, way))")

	var said strings.Builder
	var mu sync.Mutex
	kills := 0
	var lanes sync.WaitGroup
	for lane := range 3 {
		rnd := rand.New(rand.NewPCG(7, uint64(lane)))
		lanes.Go(func() {
			for range stormLives {
				cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
				cmd.Env = append(os.Environ(), stormURL+"="+through)
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				pause(500*time.Millisecond + time.Duration(rnd.IntN(1000))*time.Millisecond)
				err := cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
				mu.Lock()
				kills++
				said.WriteString(out.String())
				mu.Unlock()
				if err != nil {
					t.Errorf("a process ended by itself: %v\n%s", err, out.String())
				}
			}
		})
	}
	lanes.Wait()
	running(t, openURL(t, through), stormConfig())
	eventually(t, "all tasks have ended", func() bool {
		return u.texts("SELECT count(*)::text FROM weaver_tasks WHERE state NOT IN ('succeeded', 'failed', 'cancelled')")[0] == "0"
	})
	for _, why := range u.texts("SELECT coalesce(error_json, '') FROM weaver_attempts WHERE outcome_kind = 'failure'") {
		t.Logf("an attempt failed: %s", why)
	}
	for what, sql := range map[string]string{
		"tasks that failed":        "SELECT count(*)::text FROM weaver_tasks WHERE state <> 'succeeded'",
		"attempts that failed":     "SELECT count(*)::text FROM weaver_attempts WHERE outcome_kind = 'failure'",
		"orders without a task":    "SELECT count(*)::text FROM public.orders o WHERE NOT EXISTS (SELECT 1 FROM weaver_tasks t WHERE t.input = o.n::text)",
		"tasks without an order":   "SELECT count(*)::text FROM weaver_tasks t WHERE NOT EXISTS (SELECT 1 FROM public.orders o WHERE t.input = o.n::text)",
		"orders not shipped twice": "SELECT count(*)::text FROM public.orders o WHERE (SELECT count(*) FROM public.shipped s WHERE s.n = o.n) <> 2",
	} {
		if n := u.texts(sql)[0]; n != "0" {
			t.Errorf("%s %s", n, what)
		}
	}
	if n := u.texts("SELECT count(*)::text FROM public.orders")[0]; n == "0" || kills != 3*stormLives {
		t.Errorf("%s orders in %d lives: the storm did nothing", n, kills)
	} else {
		t.Logf("%s orders, %d kills", n, kills)
	}
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "violation") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

// stormConfig returns the configuration of an engine of the storm. Its lease is 8 s: a step transaction
// may take a third of it, and a third of 2 s is too short on a busy machine.
func stormConfig() weaver.Config {
	return weaver.Config{Logger: slog.New(slog.DiscardHandler), Concurrency: 8, Lease: 8 * time.Second, Handlers: []weaver.Handler{
		stormTask.Handler(func(ctx context.Context, n int) (int, error) {
			_, err := weaver.StepTx(ctx, "by road", func(ctx context.Context, tx pgx.Tx) (int, error) {
				var orders int
				err := tx.QueryRow(ctx, "SELECT count(*) FROM public.orders WHERE n = $1", n).Scan(&orders)
				if err == nil {
					_, err = tx.Exec(ctx, "INSERT INTO public.shipped VALUES ($1, $2)", n, "by road")
				}
				return orders, err
			})
			if err != nil {
				return 0, err
			}
			return weaver.StepTx(ctx, "by sea", func(ctx context.Context, tx *sql.Tx) (int, error) {
				st, err := tx.PrepareContext(ctx, "INSERT INTO public.shipped VALUES ($1, $2)")
				if err == nil {
					_, err = st.ExecContext(ctx, n, "by sea")
				}
				return n, err
			})
		}),
	}}
}

// stormProcess works and enqueues until it is killed. It prints unexpected errors.
func stormProcess(t *testing.T, url string) {
	db := openURL(t, url)
	eng := running(t, db, stormConfig())
	var producers sync.WaitGroup
	for i := range 4 {
		producers.Go(func() {
			for t.Context().Err() == nil {
				var err error
				if i%2 == 0 {
					err = stormByPgx(t.Context(), db, eng)
				} else {
					err = stormBySQL(t.Context(), db, eng)
				}
				if err != nil {
					fmt.Println("violation:", err)
				}
				pause(rand.N(10 * time.Millisecond))
			}
		})
	}
	producers.Wait()
}

const (
	stormNumber = "SELECT nextval('public.numbers') + $1::bigint"
	stormOrder  = "INSERT INTO public.orders VALUES ($1)"
)

// stormByPgx stores an order and its task in a transaction of pgx.
func stormByPgx(ctx context.Context, db *postgres.DB, eng *weaver.Engine) error {
	return pgx.BeginFunc(ctx, db.Pool(), func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, stormNumber, 0).Scan(&n); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, stormOrder, n); err != nil {
			return err
		}
		_, err := stormTask.Enqueue(ctx, eng.InTx(postgres.Tx(tx)), n)
		return err
	})
}

// stormBySQL is stormByPgx with database/sql.
func stormBySQL(ctx context.Context, db *postgres.DB, eng *weaver.Engine) error {
	tx, err := db.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var n int
	err = tx.QueryRowContext(ctx, stormNumber, 0).Scan(&n)
	if err == nil {
		_, err = tx.ExecContext(ctx, stormOrder, n)
	}
	if err == nil {
		_, err = stormTask.Enqueue(ctx, eng.InTx(postgres.SQLTx(tx)), n)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
