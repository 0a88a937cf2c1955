package conn

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
)

// Through a transaction pooler no state is kept in a session of the server, which another
// client uses next.
func TestBouncer(t *testing.T) {
	t.Parallel()
	url := database(t)
	pooled := pgtest.Bouncer(t, url, "transaction", "default_pool_size = 1")
	var clients []*Conn
	for range 2 {
		c := connect(t, pooled, Settings{})
		if c.Direct() {
			t.Error("a pooler passes for the server")
		}
		clients = append(clients, c)
	}
	for round := range int64(3) {
		for _, c := range clients {
			begin(t, c)
			exec(t, c, "UPDATE counters SET n = n + ?1 WHERE id = 1", 1)
			sel := statement(t, c, "SELECT n FROM counters WHERE id = ?1")
			check(t, sel.BindInt(1, 1))
			if !sel.Step() || sel.Int(0) < 2*round+1 {
				t.Errorf("%d: %v", sel.Int(0), sel.Err())
			}
			check(t, sel.Reset())
			check(t, c.Commit())
		}
	}
	c, err := pgconn.Connect(t.Context(), pooled)
	check(t, err)
	res, err := c.Exec(t.Context(), "SELECT current_setting('search_path'), (SELECT count(*) FROM pg_prepared_statements)").ReadAll()
	check(t, err)
	if row := res[0].Rows[0]; string(row[0]) != `"$user", public` || string(row[1]) != "0" {
		t.Errorf("the session has kept %s", row)
	}
	check(t, c.Close(t.Context()))
	if c := connect(t, url, Settings{}); !c.Direct() {
		t.Error("the server passes for a pooler")
	}
}

// With a network that swallows packets no call exceeds its timeout. The outcome of a commit is
// unknown only if the commit was sent to the server.
func TestPartition(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, dir := range []pgtest.Direction{pgtest.ToServer, pgtest.ToClient} {
		proxy := pgtest.NewProxy(t, url)
		p := open(t, proxy.URL(), Settings{})
		usual := p.RoundTimeout
		add := func(id int64, before, after func()) error {
			return p.Tx(t.Context(), false, func(c *Conn) error {
				before()
				exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", id)
				if err := c.Flush(); err != nil {
					return err
				}
				after()
				return nil
			})
		}
		nothing := func() {}
		swallow := func() { proxy.Swallow(dir); p.RoundTimeout = soon }
		resume := func() { proxy.Resume(); p.RoundTimeout = usual }
		check(t, add(3, nothing, nothing))

		p.RoundTimeout = soon // the round begins with BEGIN
		err := add(3, func() { proxy.Swallow(dir) }, nothing)
		if _, kind := Classify(err); !errors.Is(kind, store.ErrUnavailable) {
			t.Errorf("%v is %v", err, kind)
		}
		resume()
		check(t, add(3, nothing, nothing))
		err = add(3, nothing, swallow)
		if _, kind := Classify(err); !errors.Is(kind, store.ErrUnknown) {
			t.Errorf("%v is %v", err, kind)
		}
		resume()
		proxy.Cut()
		check(t, add(3, nothing, nothing))
	}
}
