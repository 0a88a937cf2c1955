package postgres_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
)

// A program's pool that names statements is refused behind a pooler that mixes up the names; other
// pools are accepted.
func TestNewChecksNamesBehindPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	for way, c := range map[string]struct {
		url     string
		mode    pgx.QueryExecMode
		refused bool
	}{
		"direct":                       {url: url, mode: pgx.QueryExecModeCacheStatement},
		"session":                      {url: pgtest.Bouncer(t, url, "session"), mode: pgx.QueryExecModeCacheStatement},
		"transaction":                  {url: pgtest.Bouncer(t, url, "transaction"), mode: pgx.QueryExecModeCacheStatement, refused: true},
		"transaction, without names":   {url: pgtest.Bouncer(t, url, "transaction"), mode: pgx.QueryExecModeCacheDescribe},
		"transaction, simple protocol": {url: pgtest.Bouncer(t, url, "transaction"), mode: pgx.QueryExecModeSimpleProtocol},
	} {
		config, err := pgxpool.ParseConfig(c.url)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DefaultQueryExecMode = c.mode
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.New(t.Context(), pool, postgres.Unsafe())
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "QueryExecModeCacheDescribe") {
			t.Errorf("%s: New: %v, want it to be refused: %v", way, err, c.refused)
		}
		if err == nil {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		pool.Close()
	}
}

// The program's statements on Pool and DB have no names that another connection could have prepared
// on the session, whatever the URL says.
func TestStatementsBehindPooler(t *testing.T) {
	t.Parallel()
	through := pgtest.Bouncer(t, pgtest.Migrated(t, "weaver", migrateURL), "transaction", "default_pool_size = 1")
	for range 2 { // their connections use the same names
		db := openURL(t, through)
		for range 2 {
			var got int
			if err := db.Pool().QueryRow(t.Context(), "SELECT 1 + $1::int", 41).Scan(&got); err != nil || got != 42 {
				t.Errorf("on Pool: %d, %v", got, err)
			}
			if err := db.DB().QueryRowContext(t.Context(), "SELECT 2 + $1::int", 40).Scan(&got); err != nil || got != 42 {
				t.Errorf("on DB: %d, %v", got, err)
			}
		}
	}
}

// Transactions of the program's database/sql pool accept enqueues, although the pool names its
// statements: the store's statements have no names.
func TestEnqueueInOwnSQLTxBehindPooler(t *testing.T) {
	t.Parallel()
	through := pgtest.Bouncer(t, pgtest.Migrated(t, "weaver", migrateURL), "transaction", "default_pool_size = 3")
	db := openURL(t, through)
	client, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	typ := weaver.Define[int, string]("acme.test.own.v1")
	for n := range 3 { // each pool has its own connections, with the same names
		own, err := sql.Open("pgx", through)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := own.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := typ.Enqueue(t.Context(), client.InTx(postgres.SQLTx(tx)), n, weaver.Label("n", fmt.Sprint(n)))
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatalf("transaction %d: %v", n, err)
		}
		if _, err := client.Get(t.Context(), h.ID()); err != nil {
			t.Error(err)
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	}
}
