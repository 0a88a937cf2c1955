package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// laterMigrations are the migrations of two later programs. This program may run with the first;
// the second raises the minimum version.
var laterMigrations = []string{
	`-- additive
ALTER TABLE weaver_outbox_events ADD COLUMN later bigint;
ALTER TABLE weaver_tasks ADD COLUMN later bigint NOT NULL DEFAULT 7;
CREATE TABLE weaver_later (namespace text NOT NULL, id bytea NOT NULL, PRIMARY KEY (namespace, id));
CREATE INDEX weaver_claims_later ON weaver_claims (namespace, worker_id)`,
	`ALTER TABLE weaver_tasks DROP COLUMN later`,
}

// upgrading holds the settings of a process of TestUpgradeUnderLoad.
type upgrading struct {
	URL, Locks string
	Age        int // number of the later migrations that it knows
}

const (
	upgradingEnv = "WEAVER_TEST_UPGRADING"
	tooNew       = "the schema is too new:" // the process prints it
)

var upgraded = weaver.Define[int, int]("acme.test.upgraded.v1")

func (p upgrading) open(ctx context.Context) (*postgres.DB, error) {
	return postgres.Open(ctx, p.URL, postgres.Unsafe(), postgres.LockFolder(p.Locks), postgres.Later(laterMigrations[:p.Age]...))
}

// start starts the process. ended receives store.ErrNewerSchema if the process found a newer
// schema.
func (p upgrading) start(t *testing.T) (ended <-chan error, stop func()) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestUpgradingProcess$")
	cmd.Env = append(os.Environ(), upgradingEnv+"="+string(text))
	var says strings.Builder
	cmd.Stdout, cmd.Stderr = &says, &says
	in, err := cmd.StdinPipe() // the process exits when it is closed
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, says.String())
		} else if strings.Contains(says.String(), tooNew) {
			err = store.ErrNewerSchema
		}
		end <- err
		close(end)
	}()
	stop = func() { _ = in.Close() } // a second call has no effect
	t.Cleanup(func() {
		stop()
		for range end { // until it is closed
		}
	})
	return end, stop
}

// TestUpgradingProcess is the program that start runs. It works until its input ends or the schema
// is too new for it.
func TestUpgradingProcess(t *testing.T) {
	text := os.Getenv(upgradingEnv)
	if text == "" {
		return
	}
	var p upgrading
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	db, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	eng, err := weaver.New(db, weaver.Config{
		Namespace: space, Handlers: []weaver.Handler{upgraded.Handler(p.work)}, Concurrency: 10, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Run(ctx); errors.Is(err, store.ErrNewerSchema) {
		fmt.Println(tooNew, err)
	} else if err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// lasts simulates work that takes time.
func lasts(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// work runs a step in memory, a step in the database and takes a little time.
func (p upgrading) work(ctx context.Context, n int) (int, error) {
	got, err := weaver.Step(ctx, "one", func(context.Context) (int, error) { return n + 1, nil })
	if err != nil {
		return 0, err
	}
	if err := lasts(ctx, 5*time.Millisecond); err != nil {
		return 0, err
	}
	return weaver.StepTx(ctx, "two", func(ctx context.Context, tx pgx.Tx) (int, error) {
		_, err := tx.Exec(ctx, "INSERT INTO public.effects VALUES ($1, $2)", n, p.Age)
		return got + 1, err
	})
}

// Programs of three versions work in one database at the same time. An additive migration stops no
// program: the old and the new one share the tasks. A migration that raises the minimum version
// makes older programs drain and stop with an error that gives the reason. No task is lost, no task
// runs a step twice, and no task counts a failure.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	u, src, locks := connect(t, url), parse(t, url), t.TempDir()
	u.exec("CREATE TABLE public.effects (n bigint PRIMARY KEY, age bigint NOT NULL)")
	var processes []<-chan error
	start := func(age int) (stop func()) {
		t.Helper()
		ended, stop := upgrading{url, locks, age}.start(t)
		processes = append(processes, ended)
		return stop
	}
	works := func(age int) {
		t.Helper()
		count := func() (n int) {
			if err := u.conn.QueryRow(t.Context(), "SELECT count(*) FROM public.effects WHERE age = $1", age).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		began := count()
		eventually(t, fmt.Sprintf("programs of age %d do 50 tasks", age), func() bool { return count() >= began+50 })
	}
	enqueued := loading(t, openURL(t, url))

	start(0)
	start(0)
	works(0)
	if err := src.MigrateAs(t.Context(), laterMigrations[:1]...); err != nil {
		t.Fatalf("the additive migration, under load: %v", err)
	}
	start(1)
	works(1)
	works(0) // during the load
	if err := src.MigrateAs(t.Context(), laterMigrations...); err != nil {
		t.Fatalf("the migration that raises the floor, under load: %v", err)
	}
	stop := start(2)
	for _, older := range processes[:3] {
		if err := <-older; !errors.Is(err, store.ErrNewerSchema) {
			t.Errorf("an older program ended with %v, want that the schema is newer", err)
		}
	}
	works(2)
	n := enqueued()
	eventually(t, "all tasks have succeeded", func() bool {
		return u.texts("SELECT count(*)::text FROM weaver_tasks WHERE state <> 'succeeded'")[0] == "0"
	})
	stop()
	if err := <-processes[3]; err != nil {
		t.Errorf("the newest program: %v", err)
	}
	for what, sql := range map[string]string{
		"tasks":                          "SELECT count(*)::text FROM weaver_tasks",
		"effects":                        "SELECT count(*)::text FROM public.effects",
		"attempts that succeeded":        "SELECT count(*)::text FROM weaver_attempts WHERE outcome_kind = 'success'",
		"tasks that nothing happened to": "SELECT count(*)::text FROM weaver_tasks WHERE crash_count = 0 AND attempt_count = 1",
		"steps, half of them in memory":  "SELECT (count(*) / 2)::text FROM weaver_steps",
	} {
		if got := u.texts(sql)[0]; got != fmt.Sprint(n) {
			t.Errorf("%s %s, want %d", got, what, n)
		}
	}
	for _, text := range u.texts("SELECT DISTINCT coalesce(outcome_kind, '') || ' ' || coalesce(error_json, '') FROM weaver_attempts WHERE outcome_kind <> 'success'") {
		t.Errorf("an attempt ended with %s", text)
	}
	newest, err := upgrading{url, locks, 2}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := newest.Snapshot(t.Context(), space)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	if err := newest.Close(); err != nil {
		t.Error(err)
	}
}

// loading enqueues tasks, about 500 a second, until enqueued is called, which returns their number.
func loading(t *testing.T, db *postgres.DB) (enqueued func() int) {
	t.Helper()
	client, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := upgraded.Enqueue(t.Context(), client, int(n.Load())); err != nil {
				if t.Context().Err() == nil {
					t.Errorf("Enqueue: %v", err)
				}
				return
			}
			n.Add(1)
			_ = lasts(ctx, 2*time.Millisecond) // it ends with ctx
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return func() int {
		cancel()
		<-done
		return int(n.Load())
	}
}
