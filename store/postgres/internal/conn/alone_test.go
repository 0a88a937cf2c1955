package conn

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/goweaver/weaver/store"
)

// Statements sent by Alone commit together in one round trip, and their rows can be read. An
// error of the server or of the function leaves no change.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{ModeDirect, ModePooled} { // with BEGIN and COMMIT through a pooler
		url := database(t)
		p := open(t, url, Settings{Mode: mode})
		add := func(c *Conn, ids ...int64) *Stmt {
			var st *Stmt
			for _, id := range ids {
				st = statement(t, c, "INSERT INTO counters VALUES (?1, 0) RETURNING id")
				check(t, st.BindInt(1, id))
				check(t, st.Send())
			}
			return st
		}
		count := func(want int64) {
			t.Helper()
			check(t, p.Tx(t.Context(), true, func(c *Conn) error {
				if n := one(t, c, "SELECT count(*) FROM counters WHERE id > 100"); n != want {
					t.Errorf("%d rows, want %d", n, want)
				}
				return nil
			}))
		}
		for i := range int64(2) { // the first time, the server describes the statement
			var st *Stmt
			var c *Conn
			var rounds int
			var got int64
			check(t, p.Alone(t.Context(), func(on *Conn) error {
				c = on
				st = add(c, 101+i)
				rounds = c.Rounds()
				return nil
			}, func() error {
				if st.Step() {
					got = st.Int(0)
				}
				rounds = c.Rounds() - rounds
				return errors.Join(st.Err(), st.Reset())
			}))
			if got != 101+i || rounds != 1 {
				t.Errorf("the row is %d, after %d round trips", got, rounds)
			}
		}
		count(2)

		err := p.Alone(t.Context(), func(c *Conn) error { add(c, 103, 101); return nil }, nil)
		want(t, err, "duplicate key")
		if errors.Is(err, store.ErrUnknown) {
			t.Error(err)
		}
		count(2)
		refused := errors.New("refused")
		if err := p.Alone(t.Context(), func(c *Conn) error { add(c, 103); return refused }, nil); !errors.Is(err, refused) {
			t.Error(err)
		}
		count(2)
	}
}

// If the answer to Alone is lost, the outcome is unknown, and it does not run again. If it was
// never sent, it had no effect and runs again on another connection.
func TestLostAlone(t *testing.T) {
	t.Parallel()
	for where, unknown := range map[string]bool{"write": false, "read": true} {
		var cuts atomic.Int32
		p := open(t, database(t), Settings{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if cuts.Add(1) > 1 {
				return c, err
			}
			return &cutter{Conn: c, when: []byte{0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 4, 0xd2}, where: where}, err
		}})
		err := p.Alone(t.Context(), func(c *Conn) error {
			st := statement(t, c, "INSERT INTO counters VALUES (?1, 0)")
			check(t, st.BindInt(1, 1234))
			return st.Exec()
		}, nil)
		if errors.Is(err, store.ErrUnknown) != unknown || !unknown && err != nil {
			t.Errorf("%s: %v", where, err)
		}
		check(t, p.Tx(t.Context(), true, func(c *Conn) error {
			if n := one(t, c, "SELECT count(*) FROM counters WHERE id = 1234"); n != 1 {
				t.Errorf("%s: %d rows", where, n)
			}
			return nil
		}))
	}
}
