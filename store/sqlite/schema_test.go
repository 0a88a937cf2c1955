package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// unmigrated returns a fixture on a new file without a schema.
func unmigrated(t *testing.T, path string, opts ...sqlite.Option) *fixture {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	return fixtureOn(t, db)
}

// A failure for lack of a schema must not stick in a prepared statement.
func TestSchemaComesLater(t *testing.T) {
	t.Parallel()
	f := unmigrated(t, filepath.Join(t.TempDir(), "w.db"))
	says(t, f.submit(t.Context(), f.drafts(1)), store.ErrNotMigrated, "weaver migrate up")
	_, err := f.db.Claim(t.Context(), fixNS, fixClaim("w", 1))
	says(t, err, store.ErrNotMigrated)
	_, err = f.db.Snapshot(t.Context(), fixNS)
	says(t, err, store.ErrNotMigrated)
	if err := f.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := f.enqueue(1)
	f.finish(f.claim("w", 1)...)
	f.sound(ids...)
}

// A file with tables of our names that Weaver did not create is refused.
func TestForeignDatabase(t *testing.T) {
	t.Parallel()
	for _, create := range []string{
		"CREATE TABLE weaver_tasks (id INTEGER PRIMARY KEY, title TEXT)",
		"CREATE TABLE weaver_jobs (id INTEGER PRIMARY KEY)",
		"CREATE TABLE weaver_schema_versions (version TEXT)",
	} {
		path := filepath.Join(t.TempDir(), "shop.db")
		f := unmigrated(t, path) // opened before these tables exist
		f.exec(create)
		says(t, f.db.Migrate(t.Context()), store.ErrForeignDatabase, path, "use a file of its own")
		says(t, f.db.Ready(t.Context()), store.ErrForeignDatabase, path)
		_, err := f.db.MigrationStatus(t.Context())
		says(t, err, store.ErrForeignDatabase, path)
		_, err = sqlite.Open(t.Context(), path)
		says(t, err, store.ErrForeignDatabase, path, "use a file of its own")
		if n := f.count("SELECT count(*) FROM sqlite_schema WHERE type = 'table'"); n != 1 {
			t.Errorf("after the refusal there are %d tables, want the one created here", n)
		}
	}
}

// A worker whose schema a newer program migrates stops by itself and logs the reason.
func TestWorkerStopsWhenTheSchemaIsNewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fileFixture(t)
		log, stop := f.works(weaver.Config{})
		time.Sleep(time.Second)
		f.exec("INSERT INTO weaver_schema_versions SELECT max(version) + 1, 'from_the_future', 'x', 1 FROM weaver_schema_versions")
		time.Sleep(store.DefaultLease / 3)
		says(t, stop(), store.ErrNewerSchema, f.db.Path(), "has schema 00")
		if text := log(); !strings.Contains(text, "newer version of this program: draining") || !strings.Contains(text, "has schema 00") {
			t.Errorf("it logged\n%s", text)
		}
	})
}

func TestSchemaIsNewer(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	known := f.count("SELECT count(*) FROM weaver_schema_versions")
	future := fmt.Sprintf("has schema %04d; this weaver knows %04d", known+1, known)
	f.exec("INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (?, 'from_the_future', 'x', 1)", known+1)
	says(t, f.db.Ready(t.Context()), store.ErrNewerSchema, f.db.Path(), future, "use the newer weaver")
	says(t, f.db.Migrate(t.Context()), store.ErrNewerSchema, f.db.Path(), future)
	list, err := f.db.MigrationStatus(t.Context())
	if err != nil || len(list) != known+1 || list[known].Name != "from_the_future" || list[known].AppliedAt.IsZero() {
		t.Errorf("MigrationStatus = %v, %v; want the unknown migration too", list, err)
	}
}

func TestSchemaWasEdited(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	f.exec("UPDATE weaver_schema_versions SET checksum = 'another' WHERE version = 1")
	says(t, f.db.Ready(t.Context()), migrate.ErrChanged, "0001_init")
	says(t, f.db.Migrate(t.Context()), migrate.ErrChanged, "0001_init")
}

func TestMigrateAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	began := time.Now().Truncate(time.Millisecond)
	first := openOnce(t, path)
	t.Cleanup(func() { shut(t, first) })
	before, err := first.MigrationStatus(t.Context())
	if err != nil || len(before) == 0 || before[0].Name != "init" || before[0].AppliedAt.Before(began) {
		t.Fatalf("MigrationStatus = %v, %v; want init, applied just now", before, err)
	}
	for _, db := range []*sqlite.DB{first, openFile(t, path)} {
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := db.MigrationStatus(t.Context())
		if err != nil || len(after) != len(before) || after[0] != before[0] {
			t.Errorf("MigrationStatus after a second Migrate = %v, %v; want %v", after, err, before)
		}
	}
}

// childMigrates opens and migrates on the first command.
func childMigrates(ctx context.Context, path string, in *bufio.Scanner, out io.Writer) error {
	fmt.Fprintln(out, "there")
	if !in.Scan() {
		return in.Err()
	}
	return opened(ctx, path, func(db *sqlite.DB) error {
		if err := db.Migrate(ctx); err != nil {
			return err
		}
		return db.Ready(ctx)
	})
}

func TestMigrateFromProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	var children []*child
	for range 3 {
		children = append(children, startChild(t, "migrate", path))
	}
	for _, c := range children {
		c.readLine()
	}
	for _, c := range children {
		c.send("go") // all at once, on a missing file
	}
	for _, c := range children {
		c.end()
	}
	f := unmigrated(t, path)
	if err := f.db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.count("SELECT count(*) FROM weaver_schema_versions WHERE version = 1"); n != 1 {
		t.Errorf("migration 1 was recorded %d times", n)
	}
}

// SQLite does not wait for the lock that the switch to write-ahead logging needs, so Open
// does.
func TestOpenWaitsToSwitchTheJournal(t *testing.T) {
	t.Parallel()
	for _, givesUp := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "w.db")
			theirs, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate")
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			tx, err := theirs.BeginTx(t.Context(), nil) // the other connection begins to create it
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "CREATE TABLE orders (n INTEGER)"); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				db, err := sqlite.Open(context.Background(), path, sqlite.BusyTimeout(time.Second))
				if err == nil {
					err = db.Close()
				}
				done <- err
			}()
			synctest.Wait()
			if givesUp {
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Errorf("Open beside a process that writes for a moment: %v", err)
				}
				return
			}
			says(t, <-done, store.ErrBusy, path)
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestSynchronousAndJournal(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string][]sqlite.Option{
		"2": nil, // the default waits for the disk
		"1": {sqlite.Synchronous(sqlite.Normal)},
		"0": {sqlite.Synchronous(sqlite.SyncOff)},
	} {
		f := unmigrated(t, filepath.Join(t.TempDir(), "w.db"), opts...)
		if got, err := f.db.WriterPragma(t.Context(), "synchronous"); err != nil || got != want {
			t.Errorf("synchronous of the writer = %q, %v; want %s", got, err, want)
		}
		if got, err := f.db.WriterPragma(t.Context(), "journal_mode"); err != nil || got != "wal" {
			t.Errorf("journal_mode = %q, %v; want wal", got, err)
		}
		// A caller's transaction is as durable as our own.
		if got := fmt.Sprint(f.count("PRAGMA synchronous")); got != want {
			t.Errorf("synchronous of the user's connections = %s, want %s", got, want)
		}
	}
}

// The schema itself refuses contradictory rows, regardless of the code.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	const newTask = "INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, plain, created_at, updated_at, idempotency_key) VALUES "
	for name, pair := range map[string]struct {
		first, second string
		both          bool // both are accepted
	}{
		"a lease without running":           {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", "UPDATE weaver_tasks SET lease_id = x'01'", false},
		"running without a lease":           {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", "UPDATE weaver_tasks SET state = 'running'", false},
		"an idempotency key twice":          {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, 'k')", newTask + "('a', x'02', 't', 'q', 5, 'ready', 0, 0, 0, 'k')", false},
		"a key of another type":             {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, 'k')", newTask + "('a', x'02', 'u', 'q', 5, 'ready', 0, 0, 0, 'k')", true},
		"an id in two namespaces":           {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", newTask + "('b', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", true},
		"two values of a step":              {"INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, error_json, wake_at, started_at, completed_at) VALUES ('a', x'01', 's', 0, 0, 1, 1, 0, 'step', 'completed', '1', NULL, NULL, 0, 0)", "INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, error_json, wake_at, started_at, completed_at) VALUES ('a', x'01', 's', 0, 0, 2, 1, 0, 'step', 'completed', '2', NULL, NULL, 0, 0)", false},
		"two dispatch rows of a task":       {"INSERT INTO weaver_outbox_events VALUES ('a', x'01', 'q', 't', 5, 1, NULL, NULL, 0, NULL, '')", "INSERT INTO weaver_outbox_events VALUES ('a', x'01', 'q', 't', 5, 2, NULL, NULL, 0, NULL, '')", false},
		"two attempts of a number":          {"INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, worker, code_version, started_at, finished_at, outcome_kind, error_kind, error_json, outcome_json, outcome_hash) VALUES ('a', x'01', 1, 1, x'01', 'w', 1, 0, 0, 'success', NULL, NULL, NULL, NULL)", "INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, worker, code_version, started_at, finished_at, outcome_kind, error_kind, error_json, outcome_json, outcome_hash) VALUES ('a', x'01', 1, 2, x'02', 'w', 1, 0, 0, 'success', NULL, NULL, NULL, NULL)", false},
		"two claims under a lease id":       {"INSERT INTO weaver_claims VALUES ('a', x'01', 'w', 1, x'')", "INSERT INTO weaver_claims VALUES ('a', x'01', 'w', 2, x'')", false},
		"two waiters that are due together": {"INSERT INTO weaver_conc_waiters VALUES ('a', 'k', 1, x'01', 'q', 't', '')", "INSERT INTO weaver_conc_waiters VALUES ('a', 'k', 1, x'02', 'q', 't', '')", true},
		"a queue paused twice":              {"INSERT INTO weaver_paused_queues VALUES ('a', 'q', 1, '', '')", "INSERT INTO weaver_paused_queues VALUES ('a', 'q', 2, '', '')", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newNoteStore(t).db
			if err := db.Exec(t.Context(), pair.first); err != nil {
				t.Fatal(err)
			}
			if err := db.Exec(t.Context(), pair.second); (err == nil) != pair.both {
				t.Errorf("%s\n%s: %v", pair.first, pair.second, err)
			}
		})
	}
	t.Run("two stores of one generation", func(t *testing.T) {
		t.Parallel()
		var seen []string
		for range 2 {
			db := openOnce(t, filepath.Join(t.TempDir(), "weaver.db"))
			snap, err := db.Snapshot(t.Context(), fixNS)
			shut(t, db)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, snap.Generation)
		}
		if seen[0] == seen[1] || seen[0] == "" {
			t.Errorf("generations %q", seen)
		}
	})
}
