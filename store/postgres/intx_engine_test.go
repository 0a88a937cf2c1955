package postgres_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
)

// 10,000 enqueues run in transactions of a program, of pgx and of database/sql, and half of them
// are rolled back. Exactly the committed half runs, each once, while engines of two processes work
// and their handlers write in a StepTx. Through PgBouncer no statement of the program fails because
// it runs on another session.
func TestTransactionalEnqueue(t *testing.T) {
	t.Parallel()
	enqueues := 200 * repeat
	if inFull {
		enqueues *= 5
	}
	for way, n := range map[string]int{"direct": enqueues, "pooled": enqueues / 2} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Migrated(t, "weaver", migrateURL)
			through := url
			if way == "pooled" {
				through = pgtest.Bouncer(t, url, "transaction", "default_pool_size = 6", "server_round_robin = 1")
			}
			testTransactionalEnqueue(t, url, through, n)
		})
	}
}

func testTransactionalEnqueue(t *testing.T, url, through string, enqueues int) {
	const callers = 8
	u := connect(t, url)
	u.exec("CREATE TABLE public.orders (n bigint PRIMARY KEY)")
	u.exec("CREATE TABLE public.shipped (n bigint PRIMARY KEY)")

	var mu sync.Mutex
	ran := make(map[int]int)
	typ := weaver.Define[int, string]("acme.test.order.v1", weaver.NoRetry())
	handler := typ.Handler(func(ctx context.Context, n int) (string, error) {
		_, err := weaver.StepTx(ctx, "ship", func(ctx context.Context, tx pgx.Tx) (int, error) {
			_, err := tx.Exec(ctx, "INSERT INTO public.shipped VALUES ($1)", n)
			return n, err
		})
		if err != nil {
			return "", err
		}
		mu.Lock()
		defer mu.Unlock()
		ran[n]++
		return "", nil
	})
	var dbs []*postgres.DB
	for range 2 {
		db := openURL(t, through)
		running(t, db, weaver.Config{Handlers: []weaver.Handler{handler}})
		dbs = append(dbs, db)
	}

	var wg sync.WaitGroup
	for caller := range callers {
		client, err := weaver.NewClient(dbs[caller%2], weaver.ClientConfig{Namespace: space})
		if err != nil {
			t.Fatal(err)
		}
		c := &customer{T: t, db: dbs[caller%2], client: client, typ: typ}
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(caller)))
			for n := caller; n < enqueues && !t.Failed(); {
				var orders []int
				for range 1 + rnd.IntN(9) {
					if n < enqueues {
						orders = append(orders, n)
					}
					n += callers
				}
				c.transaction(rnd, orders)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	committed := make(map[int]bool)
	rows, err := u.conn.Query(t.Context(), "SELECT n FROM public.orders")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		committed[n] = true
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	if n := len(committed); n < enqueues*2/5 || n > enqueues*3/5 {
		t.Errorf("%d of %d were committed, want about half", n, enqueues)
	}
	eventually(t, "all tasks have ended", func() bool {
		return u.texts("SELECT count(*)::text FROM weaver_tasks WHERE state <> 'succeeded'")[0] == "0"
	})
	mu.Lock()
	defer mu.Unlock()
	for n := range enqueues {
		want := 0
		if committed[n] {
			want = 1
		}
		if ran[n] != want {
			t.Errorf("order %d ran %d times, want %d", n, ran[n], want)
		}
	}
}

// customer is a program with tables of its own.
type customer struct {
	*testing.T
	db     *postgres.DB
	client *weaver.Client
	typ    *weaver.Type[int, string]
}

// transaction writes orders with a task for each, and commits or rolls back.
func (c *customer) transaction(rnd *rand.Rand, orders []int) {
	const insert = "INSERT INTO public.orders VALUES ($1)"
	ctx := c.Context()
	enqueue := func(in *weaver.TxClient, n int) error {
		_, err := c.typ.Enqueue(ctx, in, n)
		return err
	}
	commits, ofPgx := rnd.IntN(2) == 0, rnd.IntN(2) == 0
	var err error
	if ofPgx {
		tx, begun := c.db.Pool().Begin(ctx)
		if begun != nil {
			c.Errorf("Begin: %v", begun)
			return
		}
		for _, n := range orders {
			if _, err = tx.Exec(ctx, insert, n); err == nil {
				err = enqueue(c.client.InTx(postgres.Tx(tx)), n)
			}
			if err != nil {
				break
			}
		}
		if commits && err == nil {
			err = tx.Commit(ctx)
		} else if back := tx.Rollback(ctx); back != nil {
			c.Errorf("Rollback: %v", back)
		}
	} else {
		tx, begun := c.db.DB().BeginTx(ctx, nil)
		if begun != nil {
			c.Errorf("BeginTx: %v", begun)
			return
		}
		for _, n := range orders {
			if _, err = tx.ExecContext(ctx, insert, n); err == nil {
				err = enqueue(c.client.InTx(postgres.SQLTx(tx)), n)
			}
			if err != nil {
				break
			}
		}
		if commits && err == nil {
			err = tx.Commit()
		} else if back := tx.Rollback(); back != nil {
			c.Errorf("Rollback: %v", back)
		}
	}
	if err != nil {
		c.Errorf("%v: %v", orders, err)
	}
}
