package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// warned returns the warnings, each with its figures.
func (f *fixture) warned() []string {
	var list []string
	for _, w := range f.db.Warnings(f.Context()) {
		text := w.Text
		for _, a := range w.Attrs {
			text += " " + a.String()
		}
		list = append(list, text)
	}
	return list
}

// warns expects one warning with these parts.
func (f *fixture) warns(when string, parts ...string) {
	f.Helper()
	list := f.warned()
	if len(list) != 1 {
		f.Fatalf("%s: warnings %q, want one", when, list)
	}
	for _, p := range parts {
		if !strings.Contains(list[0], p) {
			f.Errorf("%s the warning does not say %q:\n%s", when, p, list[0])
		}
	}
}

func (f *fixture) warnsNot(when string) {
	f.Helper()
	if list := f.warned(); len(list) != 0 {
		f.Errorf("%s: warnings %q", when, list)
	}
}

// reserved returns a connection of the user's pool.
func (f *fixture) reserved() *sql.Conn {
	f.Helper()
	c, err := f.db.DB().Conn(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// A warning names any holder in this program that keeps a snapshot for more than five seconds,
// with the line that began it.
func TestWarnsOfSlowReaders(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(f *fixture) (end func() error){
		"a query of DB()": func(f *fixture) func() error {
			rows, err := f.db.DB().QueryContext(f.Context(), "SELECT task_id FROM weaver_tasks")
			if err != nil || !rows.Next() {
				f.Fatal(err)
			}
			return rows.Close
		},
		"a query of DB() ": func(f *fixture) func() error { // prepared: the statement outlives its rows
			st, err := f.db.DB().PrepareContext(f.Context(), "SELECT task_id FROM weaver_tasks")
			if err != nil {
				f.Fatal(err)
			}
			f.Cleanup(func() { _ = st.Close() })
			rows, err := st.QueryContext(f.Context())
			if err != nil || !rows.Next() {
				f.Fatal(err)
			}
			return rows.Close
		},
		"a transaction of DB() has been open for long; until it ends the write-ahead log": func(f *fixture) func() error {
			tx, err := f.db.DB().BeginTx(f.Context(), &sql.TxOptions{ReadOnly: true})
			if err != nil {
				f.Fatal(err)
			}
			return tx.Rollback
		},
		"a transaction of DB() has been open for long; until it ends nothing else": func(f *fixture) func() error { return f.begin().Commit },
		"a query of DB()  ": func(f *fixture) func() error { // on a connection that does not go back to the pool
			rows, err := f.reserved().QueryContext(f.Context(), "SELECT task_id FROM weaver_tasks")
			if err != nil || !rows.Next() {
				f.Fatal(err)
			}
			return rows.Close
		},
		"a transaction of DB() has been open for long; until it ends nothing else ": func(f *fixture) func() error {
			tx, err := f.reserved().BeginTx(f.Context(), nil)
			if err != nil {
				f.Fatal(err)
			}
			return tx.Commit
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := fileFixture(t)
				f.enqueue(10)
				time.Sleep(time.Hour)
				end := read(f)
				since := time.Now()
				time.Sleep(5 * time.Second)
				f.warnsNot("after 5 s")
				time.Sleep(time.Second)
				f.warns("after 6 s", strings.TrimSpace(name), "open_for=6s", "since="+slog.TimeValue(since).String(), "_test.go:", "log_bytes=", f.db.Path())
				if err := end(); err != nil {
					t.Fatal(err)
				}
				f.warnsNot("after its end")
			})
		})
	}
	t.Run("a read of the store", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := fileFixture(t)
			err := f.db.Read(t.Context(), func(func(string) error) error {
				time.Sleep(6 * time.Second)
				f.warns("after 6 s", "a read has been open", "open_for=6s")
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			f.warnsNot("after its end")
		})
	})
}

// A reader lets the log grow. When it ends the log is truncated, even without further writes.
func TestLogIsCutAfterALongReader(t *testing.T) {
	t.Parallel()
	for _, more := range []bool{false, true} {
		t.Run(fmt.Sprint("more is written: ", more), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const limit = 1 << 20
				path := filepath.Join(t.TempDir(), "w.db")
				f := fixtureOn(t, openFile(t, path, sqlite.LogLimit(limit)))
				other := fixtureOn(t, openFile(t, path))
				size := func() int64 {
					t.Helper()
					info, err := os.Stat(path + "-wal")
					if err != nil {
						t.Fatal(err)
					}
					return info.Size()
				}
				var ids []task.ID
				grow := func() {
					ids = append(ids, f.enqueue(10, bulky)...)
					time.Sleep(100 * time.Millisecond)
				}
				for range 20 {
					grow()
				}
				synctest.Wait()
				if got := size(); got > 4*limit { // a second of further writes
					t.Errorf("without readers the log has %d bytes", got)
				}
				tx, err := other.db.DB().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM weaver_tasks").Scan(new(int)); err != nil {
					t.Fatal(err)
				}
				for range 80 {
					grow()
				}
				held := size()
				if held < 8*limit {
					t.Fatalf("beside a reader the log has %d bytes, want more than %d", held, 8*limit)
				}
				f.warns("beside a reader that it does not know", "does not know", fmt.Sprint("log_bytes=", held))
				other.warns("beside its own reader", "a transaction of DB()", fmt.Sprint("log_bytes=", held))
				if !more {
					stop, _ := f.db.Notify(fixNS, nil, func(store.Notice) {})
					defer stop()
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if more {
					grow()
				}
				time.Sleep(2 * time.Second)
				if more {
					grow()
				}
				synctest.Wait()
				if got := size(); got > limit {
					t.Errorf("after the reader's end the log has %d bytes, want at most %d", got, limit)
				}
				f.warnsNot("after its end")
				f.sound(ids...)
			})
		})
	}
}

// The file of a log that starts over is truncated to the limit.
func TestLogLimit(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	if got, err := f.db.WriterPragma(t.Context(), "journal_size_limit"); err != nil || got != fmt.Sprint(64<<20) {
		t.Errorf("journal_size_limit is %s, %v; want 64 MiB", got, err)
	}
}

// A warning names a clock that was set.
func TestWarnsOfTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, memory(t))
		f.warnsNot("at first")
		f.db.ShiftClock(-30 * time.Second)
		f.warnsNot("after half a minute back")
		f.db.ShiftClock(-time.Hour)
		f.warns("after an hour back", "never goes back", "behind=1h0m30s")
		f.db.ShiftClock(2 * time.Hour)
		f.warns("after two hours forward", "jumped forward", "by=59m30s")
		if w := f.db.Warnings(context.Background()); !w[0].Once {
			t.Error("the jump is not an event that is past")
		}
	})
}
