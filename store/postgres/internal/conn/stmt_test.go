package conn

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
)

const sqlInsertThing = "INSERT INTO things (id, name, data, small, mid, flag, doc, docb) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"

// modes runs a test in each mode; the answers must be the same.
func modes(t *testing.T, test func(t *testing.T, s Settings)) {
	for name, mode := range map[string]Mode{"direct": ModeDirect, "pooled": ModePooled} {
		t.Run(name, func(t *testing.T) { test(t, Settings{Mode: mode}) })
	}
}

// Every bound value comes back unchanged.
func TestValues(t *testing.T) {
	t.Parallel()
	url := database(t)
	modes(t, func(t *testing.T, s Settings) {
		c := connect(t, url, s)
		begin(t, c)
		large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		for i, v := range []struct {
			name             any
			data             []byte
			small, mid, flag any
			doc              string
		}{
			{nil, nil, nil, nil, nil, "null"},
			{"", []byte{}, int64(0), int64(0), int64(0), `""`},
			{"ä\n'\"\\日本 🙂", []byte{0, 255, '\''}, int64(math.MinInt16), int64(math.MinInt32), int64(1), `{"a":  [1, "ü"]}`},
			{string(large), large, int64(math.MaxInt16), int64(math.MaxInt32), int64(1), `"` + string(large) + `"`},
			{"after a large one", []byte("small"), int64(-1), int64(-1), int64(0), `1`},
		} {
			ins := statement(t, c, sqlInsertThing)
			id := math.MaxInt64 - int64(i)
			check(t, ins.BindInt(1, id))
			bindAny(t, ins, 2, v.name)
			if v.data == nil {
				check(t, ins.BindNull(3))
			} else {
				data := bytes.Clone(v.data)
				check(t, ins.BindBlob(3, data))
				clear(data) // valid during the call only
			}
			bindAny(t, ins, 4, v.small)
			bindAny(t, ins, 5, v.mid)
			bindAny(t, ins, 6, v.flag)
			check(t, ins.BindRawText(7, []byte(v.doc)))
			check(t, ins.BindText(8, v.doc))
			check(t, ins.Exec())
			if n, err := ins.Changes(); n != 1 || err != nil {
				t.Fatalf("%d rows were inserted: %v", n, err)
			}

			sel := statement(t, c, "SELECT id, name, data, small, mid, flag, doc, docb FROM things WHERE id = ?1")
			check(t, sel.BindInt(1, id))
			if !sel.Step() || sel.Int(0) != id {
				t.Fatalf("no row: %v", sel.Err())
			}
			row := make([]any, 8)
			check(t, sel.Row(row))
			for k, want := range []any{id, v.name, v.data, v.small, v.mid, v.flag, v.doc} {
				if !same(row[k], want) {
					t.Errorf("row %d, column %d: %.60v, want %.60v", i, k, row[k], want)
				}
			}
			for k := 1; k <= 2; k++ {
				if got, isNull := sel.Raw(k), row[k] == nil; isNull != (got == nil) {
					t.Errorf("row %d, column %d: NULL is not told from empty: %v", i, k, got)
				}
			}
			if got := string(sel.Raw(7)); v.doc != `{"a":  [1, "ü"]}` && got != v.doc {
				t.Errorf("jsonb is %.60q", got)
			}
			if v.small != nil && (sel.Int(3) != v.small || sel.Int(4) != v.mid || sel.Int(5) != v.flag) {
				t.Errorf("row %d: numbers %d %d %d", i, sel.Int(3), sel.Int(4), sel.Int(5))
			}
			if sel.Step() || sel.Err() != nil || sel.Step() {
				t.Errorf("more than one row, or %v", sel.Err())
			}
			check(t, sel.Reset())
		}
		c.Rollback()
	})
}

func bindAny(t *testing.T, s *Stmt, i int, v any) {
	t.Helper()
	switch v := v.(type) {
	case int64:
		check(t, s.BindInt(i, v))
	case string:
		check(t, s.BindText(i, v))
	default:
		check(t, s.BindNull(i))
	}
}

func same(got, want any) bool {
	switch want := want.(type) {
	case string:
		b, ok := got.([]byte)
		return ok && string(b) == want
	case []byte:
		b, ok := got.([]byte)
		return want == nil && got == nil || ok && bytes.Equal(b, want)
	}
	return got == want
}

// Bindings persist from one use to the next. The error of a refused value names its parameter,
// its type and an instruction.
func TestBindings(t *testing.T) {
	t.Parallel()
	url := database(t)
	modes(t, func(t *testing.T, s Settings) {
		c := connect(t, url, s)
		begin(t, c)
		ins := statement(t, c, sqlInsertThing)
		if ins.Params() != 8 || ins.Columns() != 0 {
			t.Errorf("%d parameters and %d columns", ins.Params(), ins.Columns())
		}
		check(t, ins.BindText(2, "kept"))
		for i := range int64(3) {
			check(t, ins.BindInt(1, i))
			check(t, ins.Exec())
		}
		if n := one(t, c, "SELECT count(*) FROM things WHERE name = 'kept' AND data IS NULL"); n != 3 {
			t.Errorf("%d rows have the binding", n)
		}
		for i, test := range map[int]struct {
			bind  func() error
			texts []string
		}{
			4: {func() error { return ins.BindInt(4, 1<<15) }, []string{"parameter 4", "32768", "smallint", "INSERT INTO things"}},
			5: {func() error { return ins.BindInt(5, -1<<31-1) }, []string{"parameter 5", "integer", "CAST it AS BIGINT"}},
			2: {func() error { return ins.BindInt(2, 1) }, []string{"parameter 2", "text"}},
			1: {func() error { return ins.BindText(1, "1") }, []string{"parameter 1", "bigint"}},
			9: {func() error { return ins.BindInt(9, 1) }, []string{"parameter 9", "there are 8"}},
			0: {func() error { return ins.BindNull(0) }, []string{"parameter 0"}},
		} {
			want(t, test.bind(), test.texts...)
			want(t, ins.Exec(), test.texts...) // not with the previous value
			if i >= 1 && i <= 8 {
				check(t, ins.BindNull(i))
			}
		}
		for _, text := range []string{"a\x00b", "\xff", "ä"[:1]} {
			want(t, ins.BindText(2, text), "parameter 2", "UTF-8")
			want(t, ins.BindRawText(7, []byte(text)), "parameter 7", "UTF-8")
			check(t, ins.BindBlob(3, []byte(text)))
			want(t, ins.Exec(), "UTF-8") // not with the previous value
			check(t, ins.BindNull(7))
			check(t, ins.BindText(2, "a text"))
		}
		ins.Array(1).Int(1)
		want(t, ins.Exec(), "parameter 1", "bigint", "BIGINT[]")
		check(t, ins.BindInt(1, 4))
		ins.Array(12).Int(1)
		want(t, ins.Exec(), "parameter 12", "there are 8")
		check(t, ins.Exec())
		_, err := ins.Changes()
		check(t, err)
		_, err = c.Statement("SELECT sum(id) AS total FROM things")
		want(t, err, "column 1 (total)", "numeric", "CAST it AS BIGINT", "SELECT sum(id)")
		c.Rollback()
	})
}

// Texts sort by their bytes.
func TestTextOrder(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	begin(t, c)
	defer c.Rollback()
	for i, name := range []string{"b", "B", "a", "ä", "_", "Z", "", "aa", "🙂", "\uffff"} {
		s := statement(t, c, "INSERT INTO things (id, name) VALUES (?1, ?2)")
		check(t, s.BindInt(1, int64(i)))
		check(t, s.BindText(2, name))
		check(t, s.Exec())
	}
	s := statement(t, c, "SELECT name FROM things ORDER BY name")
	var last []byte
	n := 0
	for ; s.Step(); n++ {
		if bytes.Compare(s.Raw(0), last) < 0 {
			t.Errorf("%q comes after %q", s.Raw(0), last)
		}
		last = s.Raw(0)
	}
	if n != 10 || s.Err() != nil {
		t.Errorf("%d rows, %v", n, s.Err())
	}
}

// Statements are queued, and sent with the next request for an answer: one write for all.
func TestOneRoundTrip(t *testing.T) {
	t.Parallel()
	url := database(t)
	modes(t, func(t *testing.T, s Settings) {
		var writes atomic.Int64
		s.Dial = dialer(&writes, nil)
		c := connect(t, url, s)
		const (
			add   = "UPDATE counters SET n = n + ?2 WHERE id = ?1"
			count = "SELECT CAST(sum(n) AS bigint) FROM counters WHERE id <= ?1"
		)
		for _, warm := range []bool{true, false} {
			before, rounds := writes.Load(), c.Rounds()
			begin(t, c)
			for i := range int64(10) {
				exec(t, c, add, i+1, 5)
			}
			up := statement(t, c, add)
			// Two reads of one statement and one of another, requested together.
			sel := statement(t, c, count)
			for _, to := range []int64{10, 3} {
				check(t, sel.BindInt(1, to))
				check(t, sel.Send())
			}
			if n, err := up.Changes(); n != 1 || err != nil {
				t.Errorf("%d rows changed: %v", n, err)
			}
			for _, want := range []int64{50, 15} {
				if !sel.Step() || sel.Int(0) != want {
					t.Errorf("%d, want %d: %v", sel.Int(0), want, sel.Err())
				}
				if sel.Step() {
					t.Error("a second row")
				}
				check(t, sel.Reset())
			}
			if now, err := c.Now(); now.IsZero() || err != nil {
				t.Errorf("the time is %v: %v", now, err)
			}
			if w, r := writes.Load()-before, c.Rounds()-rounds; !warm && (w != 1 || r != 1) {
				t.Errorf("%d writes in %d round trips", w, r)
			}
			c.Rollback()
			check(t, c.Flush())
		}
		check(t, c.Close())
	})
}

// A batch that is larger than the system's buffers on either side.
func TestLargeRoundTrip(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	begin(t, c)
	s := statement(t, c, "SELECT ?1 || CAST(id AS text) FROM counters")
	text := strings.Repeat("x", 100_000)
	for range 200 {
		check(t, s.BindText(1, text))
		check(t, s.Send())
	}
	for range 200 {
		n := 0
		for s.Step() {
			n += len(s.Raw(0))
		}
		if s.Err() != nil || n != 10*100_000+11 {
			t.Fatalf("%d bytes: %v", n, s.Err())
		}
		check(t, s.Reset())
	}
	c.Rollback()
}

// Arrays for unnest.
func TestArrays(t *testing.T) {
	t.Parallel()
	url := database(t)
	modes(t, func(t *testing.T, s Settings) {
		c := connect(t, url, s)
		begin(t, c)
		ins := statement(t, c, "INSERT INTO things (id, name, data, small, flag, doc) SELECT * FROM unnest(CAST(?1 AS bigint[]), CAST(?2 AS text[]), CAST(?3 AS bytea[]), CAST(?4 AS smallint[]), CAST(?5 AS boolean[]), CAST(?6 AS json[]))")
		for round, n := range []int{0, 1, 3000, 2} { // buffers are reused
			ids, names, data, small, flags, docs := ins.Array(1), ins.Array(2), ins.Array(3), ins.Array(4), ins.Array(5), ins.Array(6)
			for i := range n {
				ids.Int(int64(round*10_000 + i))
				small.Int(int64(i % 100))
				flags.Int(int64(i % 2))
				docs.Bytes([]byte(`{"i": 1}`))
				if i%3 == 1 {
					names.Null()
					data.Null()
					continue
				}
				names.Text(fmt.Sprint("n", i))
				data.Bytes([]byte{0, byte(i)})
			}
			if ids.Len() != n {
				t.Errorf("%d elements", ids.Len())
			}
			check(t, ins.Exec())
			if got, err := ins.Changes(); got != n || err != nil {
				t.Fatalf("%d rows of %d: %v", got, n, err)
			}
		}
		if n := one(t, c, "SELECT count(*) FROM things WHERE name = 'n' || (id % 10000) AND data = decode('00' || lpad(to_hex(id % 10000 % 256), 2, '0'), 'hex') AND small = id % 10000 % 100 AND flag = (id % 2 = 1)"); n != 2002 {
			t.Errorf("%d rows are as they were written", n)
		}
		a := ins.Array(4)
		a.Int(1)
		a.Int(1 << 20)
		want(t, ins.Exec(), "element 2", "smallint")
		c.Rollback()
	})
}

// Unread rows of a transaction are not read by the next one.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	const update, sel = "UPDATE counters SET n = ?1", "SELECT n FROM counters WHERE id = 1"
	begin(t, c)
	exec(t, c, update, 5)
	read, sent := statement(t, c, sel), statement(t, c, sel+" AND id > 0")
	if !read.Step() || read.Int(0) != 5 {
		t.Errorf("%d: %v", read.Int(0), read.Err())
	}
	check(t, sent.Send())
	c.Rollback()
	begin(t, c)
	if n, err := statement(t, c, update).Changes(); n != 0 || err != nil {
		t.Errorf("%d rows changed: %v", n, err)
	}
	for _, s := range []*Stmt{read, sent} {
		if !s.Step() || s.Int(0) != 0 {
			t.Errorf("%d: %v", s.Int(0), s.Err())
		}
		if s.Step() {
			t.Error("a second row")
		}
		check(t, s.Reset())
	}
	exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 1)
	want(t, c.Flush(), "23505")
	if read.Step() || read.Err() == nil {
		t.Error("a failed transaction reads on")
	}
	c.Rollback() // without a Reset
	begin(t, c)
	if !read.Step() || read.Err() != nil {
		t.Errorf("an error of the last transaction: %v", read.Err())
	}
	check(t, read.Reset())
	check(t, read.Close())
	if n := one(t, c, "SELECT count(*) FROM pg_prepared_statements WHERE statement = '"+sel+"'"); n != 0 {
		t.Errorf("%d names of a statement that was closed", n)
	}
	if !read.Step() {
		t.Error("a closed statement is prepared again:", read.Err())
	}
	c.Rollback()
}

// A handle, which skips unchanged bindings, does not know bindings made directly on the
// statement.
func TestStatementBesideItsHandle(t *testing.T) {
	t.Parallel()
	c := connect(t, database(t), Settings{})
	begin(t, c)
	const sql = "SELECT CAST(?1 AS text)"
	ask := func() string {
		h := c.Stmt(sql).Text(1, "mine")
		got := ""
		if h.One() {
			got = h.ColText(0)
		}
		check(t, h.Done())
		return got
	}
	_ = ask()
	raw := statement(t, c, sql)
	check(t, raw.BindText(1, "another"))
	for raw.Step() {
	}
	check(t, raw.Reset())
	if got := ask(); got != "mine" {
		t.Errorf("a handle that bound %q sent %q", "mine", got)
	}
}
