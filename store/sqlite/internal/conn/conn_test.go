package conn_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
	"github.com/goweaver/weaver/task"
)

func open(t *testing.T, path string, readOnly bool) *conn.Conn {
	t.Helper()
	c, err := conn.Open(conn.Config{Name: path, Busy: time.Second, Synchronous: "OFF", ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func notes(t *testing.T, path string) *conn.Conn {
	t.Helper()
	c := open(t, path, false)
	if err := c.Script("CREATE TABLE notes (id BLOB, n INTEGER, text TEXT, map TEXT)"); err != nil {
		t.Fatal(err)
	}
	return c
}

type note struct {
	id   task.ID
	n    int64
	text string
	m    map[string]string
}

var noteColumns = sqlstmt.Columns[note]{
	sqlstmt.Col("id", func(v *note, r *sqlstmt.Row, i int) { v.id = r.ID(i) }),
	sqlstmt.Col("n", func(v *note, r *sqlstmt.Row, i int) { v.n = r.Int(i) }),
	sqlstmt.Col("text", func(v *note, r *sqlstmt.Row, i int) { v.text = r.Text(i) }),
	sqlstmt.Col("map", func(v *note, r *sqlstmt.Row, i int) { v.m = r.Map(i) }),
}

const sqlInsert = "INSERT INTO notes (id, n, text, map) VALUES (?1, ?2, ?3, ?4)"

// Bound values come back, even if only some parameters change between two uses of a statement.
func TestBindAndScan(t *testing.T) {
	t.Parallel()
	c := notes(t, ":memory:")
	ids := task.NewIDs(nil)
	want := []note{
		{ids.New(), 1, "a", map[string]string{"k": "v"}},
		{ids.New(), 1, "a", nil},
		{task.ID{}, 0, "", nil},
		{ids.New(), -5, "ä\x00b", map[string]string{"k": "w"}},
		{ids.New(), -5, "a", nil},
	}
	for i := range want {
		st := c.Stmt(sqlInsert).IDOrNull(1, &want[i].id).Int(2, want[i].n).OrNull(3, want[i].text).Strings(4, want[i].m)
		if n, err := st.Exec(); err != nil || n != 1 {
			t.Fatalf("insert: %d, %v", n, err)
		}
	}
	got, err := noteColumns.All(c.Stmt("SELECT " + noteColumns.List() + " FROM notes ORDER BY rowid"))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i := range want {
		if got[i].id != want[i].id || got[i].n != want[i].n || got[i].text != want[i].text || got[i].m["k"] != want[i].m["k"] {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	sql := "SELECT " + noteColumns.List() + " FROM notes WHERE n = ?1"
	one, err := noteColumns.One(c.Stmt(sql).Int(1, 0))
	if err != nil || one == nil || one.n != 0 {
		t.Errorf("One = %+v, %v", one, err)
	}
	if none, err := noteColumns.One(c.Stmt(sql).Int(1, 99)); err != nil || none != nil {
		t.Errorf("One without a row = %+v, %v", none, err)
	}
}

// An error sticks to its use of a statement, but not to the next one.
func TestErrorsStick(t *testing.T) {
	t.Parallel()
	c := notes(t, ":memory:")
	if err := c.Stmt(sqlInsert).JSON(4, func() {}).Null(1).Null(2).Null(3).Run(); err == nil {
		t.Error("a value that is not JSON was stored")
	}
	if err := c.Stmt(sqlInsert).Null(1).Null(2).Null(3).Bytes(4, []byte("{")).Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := noteColumns.All(c.Stmt("SELECT " + noteColumns.List() + " FROM notes")); err == nil {
		t.Error("a map that is not JSON was read")
	}
	const early = "SELECT n FROM later"
	if err := c.Stmt(early).Done(); err == nil {
		t.Error("a table that is not there was read")
	}
	if err := c.Script("CREATE TABLE later (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	st := c.Stmt(early)
	if st.One() || st.Done() != nil {
		t.Error("a statement that failed for want of its table still fails")
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]error{
		sqlite3.BUSY: store.ErrBusy, sqlite3.FULL: store.ErrFull, sqlite3.READONLY: store.ErrReadOnly, sqlite3.NOTADB: store.ErrNotDatabase,
		sqlite3.CORRUPT: store.ErrNotDatabase, sqlite3.CANTOPEN: store.ErrUnavailable, sqlite3.INTERRUPT: context.Canceled,
		sqlite3.CONSTRAINT_TRIGGER: store.ErrRefused, sqlite3.CONSTRAINT: store.ErrRefused, sqlite3.TOOBIG: store.ErrRefused, sqlite3.MISMATCH: store.ErrRefused,
	} {
		if _, got := conn.Classify(err); !errors.Is(got, want) {
			t.Errorf("%v stands for %v, want %v", err, got, want)
		}
	}
	for _, err := range []error{nil, errors.New("own error"), sqlite3.NOTFOUND} {
		if advice, got := conn.Classify(err); got != nil || advice != "" {
			t.Errorf("%v stands for %v (%s)", err, got, advice)
		}
	}
}

// A pool reads snapshots concurrently with a writer, cannot write, and ends with Close.
func TestPool(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	w := open(t, path, false)
	if err := w.UseWAL(t.Context(), time.Second, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Script("CREATE TABLE notes (n INTEGER); INSERT INTO notes VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	opened := 0
	p := conn.NewPool(1, func() (*conn.Conn, error) {
		opened++
		return conn.Open(conn.Config{Name: path, Busy: time.Second, Synchronous: "OFF", ReadOnly: true})
	})
	count := func(c *conn.Conn) (n int64) {
		st := c.Stmt("SELECT count(*) FROM notes")
		if st.One() {
			n = st.ColInt(0)
		}
		if err := st.Done(); err != nil {
			t.Error(err)
		}
		return n
	}
	err := p.Read(t.Context(), func(c *conn.Conn) error {
		before := count(c)
		if err := w.Script("INSERT INTO notes VALUES (2)"); err != nil {
			t.Error(err)
		}
		if after := count(c); before != 1 || after != 1 {
			t.Errorf("%d and then %d rows in one snapshot, want 1", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Read(t.Context(), func(c *conn.Conn) error { return c.Script("DELETE FROM notes") })
	if _, kind := conn.Classify(err); !errors.Is(kind, store.ErrReadOnly) {
		t.Errorf("a reader that writes: %v", err)
	}
	if err := p.Read(t.Context(), func(c *conn.Conn) error { count(c); return nil }); err != nil || opened != 1 {
		t.Errorf("%d connections were opened for one read at a time, %v", opened, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	own := errors.New("own error")
	cancel(own)
	if err := p.Read(ctx, func(*conn.Conn) error { return nil }); !errors.Is(err, own) {
		t.Errorf("a read whose context ended: %v", err)
	}
	p.Close()
	if err := p.Read(t.Context(), func(*conn.Conn) error { return nil }); !errors.Is(err, conn.ErrClosed) {
		t.Errorf("a read after Close: %v", err)
	}
}
