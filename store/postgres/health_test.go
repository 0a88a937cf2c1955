package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// alarms returns the keys of the alarms of Health.
func alarms(t *testing.T, db *postgres.DB) []string {
	t.Helper()
	_, found, err := db.Health(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range found {
		list = append(list, a.Key)
		if a.Text == "" || strings.HasSuffix(a.Text, ".") {
			t.Errorf("the alarm %s says %q", a.Key, a.Text)
		}
	}
	return list
}

func TestHealthRaisesAlarms(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{ConfigLines: []string{"max_prepared_transactions = 2", "autovacuum = off", "wal_level = logical"}})
	db := openURL(t, s.Database(), postgres.AlarmAt(time.Microsecond, time.Hour, 5))
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := alarms(t, db); len(got) > 0 {
		t.Errorf("a quiet server: %v", got)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}

	tx, err := db.Pool().Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT pg_sleep(1), txid_current()`)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := alarms(t, db); !slices.Contains(got, "transaction") {
		t.Errorf("with an open transaction: %v", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	exec(`BEGIN; CREATE TABLE public.prepared (); PREPARE TRANSACTION 'one'`)
	exec(`SELECT pg_sleep(1)`)
	if got := alarms(t, db); !slices.Contains(got, "transaction") {
		t.Errorf("with a prepared transaction: %v", got)
	}
	exec(`ROLLBACK PREPARED 'one'`)

	exec(`SELECT pg_create_logical_replication_slot('unused', 'pgoutput')`)
	if got := alarms(t, db); !slices.Contains(got, "slot unused") {
		t.Errorf("with a slot that nobody reads: %v", got)
	}
	exec(`SELECT pg_drop_replication_slot('unused')`)
	exec(`INSERT INTO weaver.weaver_store_meta SELECT 'x', i::text, '' FROM generate_series(1, 100) i`)
	exec(`DELETE FROM weaver.weaver_store_meta WHERE namespace = 'x'`)
	// A session reports its statistics when it ends, or a second later.
	db.Pool().Reset()
	eventually(t, "an alarm of dead rows", func() bool { return slices.Contains(alarms(t, db), "dead rows weaver_store_meta") })
	exec(`VACUUM weaver.weaver_store_meta`)

	exec(`INSERT INTO weaver.weaver_outbox_events (namespace, queue, task_type, priority, available_at, task_id) VALUES ('default', 'q', 'a.b.c.v1', 0, 1, '\x00')`)
	if got := alarms(t, db); !slices.Contains(got, "due") {
		t.Errorf("with a due task: %v", got)
	}
	exec(`INSERT INTO weaver.weaver_paused_queues (at, namespace, queue, actor, reason) VALUES (1, 'default', 'q', '', '')`)
	if got := alarms(t, db); slices.Contains(got, "due") {
		t.Errorf("with a due task in a paused queue: %v", got)
	}
}

// Writable returns the reason if a store is closed or cannot be written.
func TestWritable(t *testing.T) {
	t.Parallel()
	raw := pgtest.Migrated(t, "weaver", migrateURL)
	db := openURL(t, raw)
	if err := db.Writable(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := db.Pool().Exec(t.Context(), `REVOKE ALL ON weaver.weaver_store_meta FROM PUBLIC; ALTER TABLE weaver.weaver_store_meta RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	if err := db.Writable(t.Context()); !errors.Is(err, store.ErrNotMigrated) {
		t.Errorf("without a table: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Writable(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, _, err := db.Health(t.Context(), "default"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	l, err := postgres.Locate("postgres://me:hunter2@db.example:5433/app?schema=work&sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.String(), "postgres://me:xxxxx@db.example:5433/app?schema=work&sslmode=disable"; got != want {
		t.Errorf("it is shown as %s, want %s", got, want)
	}
	if got, want := l.Place(), "db.example:5433/app/work"; got != want {
		t.Errorf("its place is %s, want %s", got, want)
	}
	if l.Schema() != "work" || !strings.Contains(l.MigrationSQL(), `"work"`) {
		t.Errorf("the schema is %s", l.Schema())
	}
	if _, err := postgres.Locate("postgres://me:hunter2@h:x/db"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad port: %v", err)
	}
}
