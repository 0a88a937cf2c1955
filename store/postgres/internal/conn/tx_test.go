package conn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

// After an error in the middle of the queue no later request takes effect, every request gets
// the error, and the next transaction works.
func TestErrorInThePipeline(t *testing.T) {
	t.Parallel()
	url := database(t)
	modes(t, func(t *testing.T, s Settings) {
		c := connect(t, url, s)
		begin(t, c)
		ins := statement(t, c, "INSERT INTO counters VALUES (?1, 0)")
		sel := statement(t, c, "SELECT n FROM counters")
		check(t, sel.Send())
		for _, id := range []int64{100, 1, 101} { // 1 exists
			check(t, ins.BindInt(1, id))
			check(t, ins.Exec())
		}
		_, err := ins.Changes()
		want(t, err, "duplicate key", "23505")
		if !sel.Step() {
			t.Error("what was answered before the error is lost:", sel.Err())
		}
		want(t, ins.Exec(), "23505")
		if _, err := c.Statement("SELECT 1"); err == nil {
			t.Error("a failed transaction goes on")
		}
		check(t, sel.Reset())
		if sel.Step() || sel.Err() == nil {
			t.Error("a failed transaction reads on")
		}
		want(t, c.Commit(), "23505")

		begin(t, c)
		if n := one(t, c, "SELECT count(*) FROM counters WHERE id >= 100"); n != 0 {
			t.Errorf("%d rows of a transaction that failed", n)
		}
		exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 102)
		check(t, c.Commit())
		begin(t, c)
		exec(t, c, "DELETE FROM counters WHERE id = ?1", 102)
		if n, err := statement(t, c, "DELETE FROM counters WHERE id = ?1").Changes(); n != 1 || err != nil {
			t.Errorf("the committed row is not there: %d, %v", n, err)
		}
		check(t, c.Commit())
	})
}

// COMMIT returns the error if no earlier call did.
func TestCommitFindsTheError(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	begin(t, c)
	exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 1)
	err := c.Commit()
	want(t, err, "23505")
	if errors.Is(err, store.ErrUnknown) {
		t.Error("the outcome is known:", err)
	}
	begin(t, c)
	check(t, c.Commit())
	want(t, c.Commit(), "no transaction")
}

func TestReadOnlyAndTime(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	began := time.Now().Truncate(time.Microsecond)
	check(t, c.Begin(t.Context(), true))
	now, err := c.Now()
	check(t, err)
	if end := time.Now(); now.Before(began) || now.After(end) { // on one machine
		t.Errorf("the server's time is %v, want one from %v to %v", now, began, end)
	}
	exec(t, c, "UPDATE counters SET n = ?1", 1)
	err = c.Flush()
	if _, kind := Classify(err); !errors.Is(kind, store.ErrReadOnly) {
		t.Errorf("%v is %v", err, kind)
	}
	c.Rollback()

	fixed := time.Unix(1_700_000_000, 0)
	c = connect(t, database(t), Settings{Clock: func() time.Time { return fixed }})
	begin(t, c)
	if now, err := c.Now(); !now.Equal(fixed) || err != nil {
		t.Errorf("%v, %v", now, err)
	}
	c.Rollback()
}

func TestSavepoints(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	begin(t, c)
	exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 100)
	check(t, c.Savepoint("a"))
	check(t, c.Flush())
	exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 1)
	want(t, c.Flush(), "23505")
	check(t, c.RollbackTo("a"))
	exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 101)
	check(t, c.Release("a"))
	check(t, c.Commit())
	begin(t, c)
	if n := one(t, c, "SELECT count(*) FROM counters WHERE id IN (100, 101)"); n != 2 {
		t.Errorf("%d rows", n)
	}
	c.Rollback()
}

// The settings of a transaction, through a pooler for this transaction only.
func TestSettings(t *testing.T) {
	t.Parallel()
	url := database(t)
	modes(t, func(t *testing.T, s Settings) {
		slow, impatient := s, s
		slow.StatementTimeout, impatient.LockTimeout = 100*time.Millisecond, 100*time.Millisecond
		a, b := connect(t, url, slow), connect(t, url, impatient)
		begin(t, a)
		s1 := statement(t, a, "SELECT 1 FROM pg_sleep(30)")
		if s1.Step() {
			t.Error("a statement without an end")
		}
		if _, kind := Classify(s1.Err()); !errors.Is(kind, store.ErrBusy) {
			t.Errorf("%v is %v", s1.Err(), kind)
		}
		a.Rollback()
		a = connect(t, url, s)
		begin(t, a)
		exec(t, a, "UPDATE counters SET n = 1 WHERE id = ?1", 1)
		check(t, a.Flush())
		begin(t, b)
		exec(t, b, "UPDATE counters SET n = 1 WHERE id = ?1", 1)
		err := b.Flush()
		if _, kind := Classify(err); !errors.Is(kind, store.ErrBusy) {
			t.Errorf("%v is %v", err, kind)
		}
		b.Rollback()
		a.Rollback()
		path := string(ask(t, b, "SHOW search_path"))
		if kept := path == `"weaver", pg_temp`; kept != (s.Mode == ModeDirect) {
			t.Errorf("the session's search_path is %s", path)
		}
	})
}

func ask(t *testing.T, c *Conn, sql string) []byte {
	t.Helper()
	res := c.PgConn().ExecParams(t.Context(), sql, nil, nil, nil, nil).Read()
	check(t, res.Err)
	return res.Rows[0][0]
}

// After a migration a statement whose columns changed is prepared again.
func TestPlanIsOutdated(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, s Settings) {
		url := database(t)
		p := open(t, url, s)
		typeOf := map[bool]string{true: "bigint", false: "integer"}
		for i := range 3 {
			admin, err := pgconn.Connect(t.Context(), url)
			check(t, err)
			_, err = admin.Exec(t.Context(), "ALTER TABLE weaver.things ALTER COLUMN mid TYPE "+typeOf[i%2 == 1]+"; ALTER TABLE weaver.things ADD COLUMN c"+string(rune('a'+i))+" text").ReadAll()
			check(t, err)
			check(t, admin.Close(t.Context()))
			tries := 0
			check(t, p.Tx(t.Context(), false, func(c *Conn) error {
				tries++
				exec(t, c, "DELETE FROM things WHERE id > ?1", 0)
				exec(t, c, "INSERT INTO things (id, mid) VALUES (?1, 7)", 1)
				sel, err := c.Statement("SELECT mid, * FROM things")
				if err != nil {
					return err
				}
				if !sel.Step() {
					return sel.Err()
				}
				if sel.Int(0) != 7 {
					t.Errorf("%d was read", sel.Int(0))
				}
				return sel.Reset()
			}))
			if tries > 2 || i > 0 && s.Mode == ModeDirect && tries != 2 {
				t.Errorf("%d tries", tries)
			}
		}
	})
}

// A connection that prepares a statement by another connection's description from before a
// migration does not read rows with the old columns.
func TestDescriptionIsOutdated(t *testing.T) {
	t.Parallel()
	p := open(t, database(t), Settings{Mode: ModeDirect})
	const insert, sel = "INSERT INTO things (id, mid) VALUES (?1, ?2)", "SELECT * FROM things"
	held, err := p.Acquire(t.Context())
	check(t, err)
	defer p.Release(held)
	begin(t, held)
	statement(t, held, insert)
	statement(t, held, sel)
	check(t, held.Commit())
	_, err = p.Raw().Exec(t.Context(), "ALTER TABLE weaver.things ALTER COLUMN mid TYPE bigint; ALTER TABLE weaver.things ADD COLUMN more text", pgx.QueryExecModeSimpleProtocol)
	check(t, err)
	tries := 0
	check(t, p.Tx(t.Context(), false, func(c *Conn) error {
		tries++
		for id := range int64(3) {
			exec(t, c, "DELETE FROM things WHERE id = ?1", id)
			s, err := c.Statement(insert)
			if err != nil {
				return err
			}
			check(t, s.BindInt(1, id))
			check(t, s.BindInt(2, 7))
			if err := s.Exec(); err != nil {
				return err
			}
		}
		s, err := c.Statement(sel)
		if err != nil {
			return err
		}
		n := 0
		for s.Step() {
			if s.Int(0) != int64(n) || s.Int(4) != 7 || s.Columns() != 9 {
				t.Errorf("row %d is %d, %d of %d columns", n, s.Int(0), s.Int(4), s.Columns())
			}
			n++
		}
		if s.Err() == nil && n != 3 {
			t.Errorf("%d rows", n)
		}
		return s.Err()
	}))
	if tries < 2 {
		t.Errorf("%d tries", tries)
	}
}

// A transaction that ended from inside does not count as committed.
func TestEndedFromInside(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		begin(t, c)
		exec(t, c, "UPDATE counters SET n = ?1", 1)
		check(t, c.Flush())
		_, err := c.PgConn().Exec(t.Context(), end).ReadAll()
		check(t, err)
		if err := c.Commit(); !errors.Is(err, ErrEnded) {
			t.Errorf("the error is %v", err)
		}
	}
	begin(t, c)
	check(t, c.Flush())
	_, err := c.PgConn().Exec(t.Context(), "SELECT 1/0").ReadAll()
	want(t, err, "22012")
	want(t, c.Commit(), "answered ROLLBACK")
}

// A call ends at once with its context, and a call on a lost connection fails at once.
func TestContext(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := open(t, url, Settings{})
	c, err := p.Acquire(t.Context())
	check(t, err)
	cause := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	check(t, c.Begin(ctx, false))
	s := statement(t, c, "SELECT 1 FROM pg_sleep(3600)")
	other, err := pgconn.Connect(t.Context(), url)
	check(t, err)
	go func() {
		defer cancel(cause)
		for asleep := ""; asleep == "" || asleep == "0"; {
			res := other.ExecParams(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'", nil, nil, nil, nil).Read()
			if res.Err != nil {
				t.Error(res.Err)
				return
			}
			asleep = string(res.Rows[0][0])
		}
	}()
	if s.Step() || !errors.Is(s.Err(), cause) {
		t.Errorf("the error is %v", s.Err())
	}
	if err := c.Commit(); !errors.Is(err, cause) {
		t.Errorf("the error is %v", err)
	}
	err = c.Begin(t.Context(), false)
	if _, kind := Classify(err); !errors.Is(kind, store.ErrUnavailable) {
		t.Errorf("%v is %v", err, kind)
	}
	p.Release(c)
	check(t, other.Close(t.Context()))
	c, err = p.Acquire(t.Context())
	check(t, err)
	begin(t, c)
	one(t, c, "SELECT 1")
	p.Release(c)

	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(cause)
	if err := p.Tx(ctx, false, func(*Conn) error { return nil }); !errors.Is(err, cause) {
		t.Errorf("the error is %v", err)
	}
}

// The wait for a missing answer ends after RoundTimeout.
func TestRoundTimeout(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	begin(t, c)
	c.RoundTimeout = soon
	s := statement(t, c, "SELECT 1 FROM pg_sleep(20)")
	if s.Step() {
		t.Error("an answer")
	}
	want(t, s.Err(), "no answer within 100ms")
	if _, kind := Classify(s.Err()); !errors.Is(kind, store.ErrUnavailable) {
		t.Errorf("%v is %v", s.Err(), kind)
	}
	c.Rollback()
}
