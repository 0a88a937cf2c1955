package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// says fails unless an error is of a kind and contains the texts, in one line.
func says(t *testing.T, err, kind error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %v, %q", kind, texts)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("%v\nis not %v", err, kind)
	}
	for _, text := range append(texts, "") {
		if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\ndoes not say %q in one line", err, text)
		}
	}
}

func parse(t testing.TB, url string) postgres.Source {
	t.Helper()
	src, err := postgres.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// with adds parameters to a URL.
func with(url, params string) string {
	if strings.Contains(url, "?") {
		return url + "&" + params
	}
	return url + "?" + params
}

// migrated returns a fresh database with the schema, and a connection of the user.
func migrated(t testing.TB) (postgres.Source, *user) {
	t.Helper()
	url := pgtest.Migrated(t, "schema", func(url string) error {
		src, err := postgres.ParseURL(url)
		if err != nil {
			return err
		}
		return src.Migrate(context.Background())
	})
	return parse(t, url), connect(t, url)
}

// user is another program with a connection to the database.
type user struct {
	testing.TB
	conn *pgx.Conn
}

func connect(t testing.TB, url string) *user {
	t.Helper()
	u := connectTo(t, url)
	u.exec("SET search_path TO weaver")
	return u
}

func connectTo(t testing.TB, url string) *user {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // PgBouncer may not track the names of statements
	c, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &user{t, c}
}

func (u *user) exec(sql string, args ...any) {
	u.Helper()
	if _, err := u.conn.Exec(u.Context(), sql, args...); err != nil {
		u.Fatalf("%s: %v", sql, err)
	}
}

// texts returns the values of a query's only column.
func (u *user) texts(sql string, args ...any) []string {
	u.Helper()
	rows, err := u.conn.Query(u.Context(), sql, args...)
	if err != nil {
		u.Fatalf("%s: %v", sql, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		u.Fatalf("%s: %v", sql, err)
	}
	return list
}

func TestMigrateAgain(t *testing.T) {
	t.Parallel()
	src := parse(t, pgtest.URL(t))
	says(t, src.Ready(t.Context()), store.ErrNotMigrated, fmt.Sprintf("%d of %[1]d migrations are missing", len(versions(t))), "run `weaver migrate up --store 'postgres://")
	before, err := src.MigrationStatus(t.Context())
	if err != nil || len(before) == 0 || !before[0].AppliedAt.IsZero() || before[0].Name != "init" {
		t.Errorf("MigrationStatus of an empty database: %v, %v", before, err)
	}
	if err := src.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := src.MigrationStatus(t.Context())
	if err != nil || len(first) != len(before) || first[0].AppliedAt.IsZero() {
		t.Fatalf("MigrationStatus = %v, %v", first, err)
	}
	if err := src.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := src.MigrationStatus(t.Context())
	if err != nil || len(second) != len(first) || !second[0].AppliedAt.Equal(first[0].AppliedAt) {
		t.Errorf("MigrationStatus after a second Migrate: %v, %v; want %v", second, err, first)
	}
	if err := src.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Everything is created inside the schema, whatever its name is. Two schemas of one database are
// two stores.
func TestSchemasOfTheirOwn(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	u := connect(t, url)
	everything := `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT IN ('weaver', 'Shop "1"') AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1`
	before := u.texts(everything)
	other := parse(t, with(url, "schema=Shop+%221%22"))
	if strings.Contains(other.Schema(), "+") { // as libpq, which takes a plus as it is
		other = parse(t, with(url, "schema=Shop%20%221%22"))
	}
	for _, src := range []postgres.Source{parse(t, url), other} {
		if err := src.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := src.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if after := u.texts(everything); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("outside of the schemas there is\n%v\nwhere there was\n%v", after, before)
	}
	generations := u.texts(`SELECT value FROM weaver.weaver_store_meta WHERE key = 'generation' UNION ALL SELECT value FROM "Shop ""1""".weaver_store_meta WHERE key = 'generation'`)
	if len(generations) != 2 || len(generations[0]) != 32 || generations[0] == generations[1] {
		t.Errorf("generations %q", generations)
	}
}

// A database without a schema gets all migrations, in order.
func TestMigrateFromNothing(t *testing.T) {
	t.Parallel()
	src := parse(t, pgtest.URL(t))
	if err := src.MigrateAs(t.Context(), addsTable, addsMore, raises); err != nil {
		t.Fatal(err)
	}
	list, err := src.MigrationStatus(t.Context())
	if err != nil || len(list) != len(versions(t))+3 || list[len(list)-1].AppliedAt.Before(list[0].AppliedAt) {
		t.Errorf("MigrationStatus = %v, %v", list, err)
	}
}

// Each migration is applied once, for any number of concurrent callers and for programs of two
// versions.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	src := parse(t, pgtest.URL(t))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				err = src.Migrate(t.Context())
			} else {
				err = src.MigrateAs(t.Context(), addsTable, addsMore)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	u := connect(t, src.Config().ConnString())
	if got := u.texts("SELECT version || ' ' || name FROM weaver_schema_versions ORDER BY version"); fmt.Sprint(got) != fmt.Sprint(versions(t, "later", "later")) {
		t.Errorf("recorded %v", got)
	}
	if n := u.texts("SELECT count(*)::text FROM weaver_store_meta WHERE key = 'generation'"); n[0] != "1" {
		t.Errorf("%s generations", n[0])
	}
}

// versions returns the recorded numbers of this program's migrations and of n more.
func versions(t *testing.T, more ...string) (all []string) {
	t.Helper()
	known, err := migrate.Load(os.DirFS("."), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range known {
		all = append(all, fmt.Sprintf("%d %s", m.Version, m.Name))
	}
	for _, name := range more {
		all = append(all, fmt.Sprintf("%d %s", len(all)+1, name))
	}
	return all
}

const (
	addsTable = "-- additive\nCREATE TABLE weaver_later (n bigint); INSERT INTO weaver_later VALUES (1);"
	addsMore  = "-- additive\nCREATE TABLE weaver_more (n bigint);"
	raises    = "DROP TABLE weaver_later;"
)

// A program is ready, and migrates nothing, if the schema has only additive migrations that it does
// not know. It refuses a schema with another unknown migration.
func TestSchemaFloor(t *testing.T) {
	t.Parallel()
	src, _ := migrated(t)
	known := len(versions(t))
	for _, sql := range [][]string{{addsTable}, {addsTable, addsMore}} {
		if err := src.MigrateAs(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(src.Ready(t.Context()), src.Migrate(t.Context())); err != nil {
			t.Errorf("beside %d additive migrations: %v", len(sql), err)
		}
		list, err := src.MigrationStatus(t.Context())
		if err != nil || len(list) != known+len(sql) || list[known].Name != "later" || list[known].AppliedAt.IsZero() {
			t.Errorf("MigrationStatus = %v, %v; want the unknown migrations too", list, err)
		}
	}
	if err := src.MigrateAs(t.Context(), addsTable, addsMore, raises); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{src.Ready(t.Context()), src.Migrate(t.Context())} {
		says(t, err, store.ErrNewerSchema, src.Shown(), fmt.Sprintf("has schema %04d; this weaver knows %04d: use the newer weaver", known+3, known))
	}
}

func TestSchemaWasEdited(t *testing.T) {
	t.Parallel()
	src, u := migrated(t)
	u.exec("UPDATE weaver_schema_versions SET checksum = 'another'")
	says(t, src.Ready(t.Context()), migrate.ErrChanged, "0001_init")
	says(t, src.Migrate(t.Context()), migrate.ErrChanged, "0001_init")
}

// A failed migration is rolled back; earlier ones stay.
func TestMigrationFails(t *testing.T) {
	t.Parallel()
	src, u := migrated(t)
	err := src.MigrateAs(t.Context(), addsTable, "CREATE TABLE weaver_broken (n bigint); SELECT 1/0;")
	says(t, err, nil, src.Shown(), fmt.Sprintf("migration %04d_later", len(versions(t))+2), "division by zero")
	if got := u.texts("SELECT version || ' ' || name FROM weaver_schema_versions ORDER BY version"); fmt.Sprint(got) != fmt.Sprint(versions(t, "later")) {
		t.Errorf("recorded %v", got)
	}
	if got := u.texts("SELECT coalesce(to_regclass('weaver.weaver_broken')::text, 'none')"); got[0] != "none" {
		t.Errorf("%s was left", got[0])
	}
	if err := src.MigrateAs(t.Context(), addsTable, addsMore); err != nil {
		t.Errorf("after it was repaired: %v", err)
	}
}

// A schema with relations of other programs, whatever its name is, is refused and left unchanged.
func TestForeignSchema(t *testing.T) {
	t.Parallel()
	for create, named := range map[string]string{
		"CREATE TABLE weaver.weaver_tasks (id bigint)":               "weaver_tasks",
		"CREATE TABLE weaver.looms (id bigint)":                      "looms",
		"CREATE VIEW weaver.looms AS SELECT 1 AS one":                "looms",
		"CREATE TABLE weaver.weaver_schema_versions (version text)":  "weaver_schema_versions",
		"CREATE VIEW weaver.weaver_schema_versions AS SELECT 1 AS n": "weaver_schema_versions",
	} {
		t.Run(create, func(t *testing.T) {
			t.Parallel()
			src := parse(t, pgtest.URL(t))
			u := connect(t, src.Config().ConnString())
			u.exec("CREATE SCHEMA weaver")
			u.exec(create)
			_, status := src.MigrationStatus(t.Context())
			for _, err := range []error{src.Migrate(t.Context()), src.Ready(t.Context()), status} {
				says(t, err, store.ErrForeignDatabase, src.Shown(), "table or view "+named+" that Weaver did not make", "schema=")
			}
			if n := u.texts("SELECT count(*)::text FROM pg_class WHERE relnamespace = 'weaver'::regnamespace"); n[0] != "1" {
				t.Errorf("%s relations in the schema, want the one created here", n[0])
			}
		})
	}
}

// An administrator may create the schema: empty, or with objects of an extension.
func TestSchemaOfAnAdministrator(t *testing.T) {
	t.Parallel()
	src := parse(t, pgtest.URL(t))
	u := connect(t, src.Config().ConnString())
	u.exec("CREATE SCHEMA weaver")
	u.exec("CREATE VIEW weaver.statistics AS SELECT 1 AS one")
	u.exec("ALTER EXTENSION plpgsql ADD VIEW weaver.statistics")
	u.exec("CREATE TABLE public.orders (id bigint)")
	if err := src.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Objects that users add later are theirs.
	u.exec("CREATE VIEW weaver.aaa AS SELECT task_id FROM weaver_tasks")
	if err := errors.Join(src.Ready(t.Context()), src.Migrate(t.Context())); err != nil {
		t.Error(err)
	}
}

// An existing object may have the name that a later migration needs.
func TestNameIsTaken(t *testing.T) {
	t.Parallel()
	src, u := migrated(t)
	u.exec("CREATE TABLE weaver_later (mine text)")
	says(t, src.MigrateAs(t.Context(), addsTable), store.ErrForeignDatabase, `relation "weaver_later" already exists`, "rename it", "nothing was changed")
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	admin := connect(t, url)
	role := "weaver_" + parse(t, url).Config().Database // roles are the server's
	admin.exec("CREATE ROLE " + role + " LOGIN")
	t.Cleanup(func() {
		if _, err := admin.conn.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	src := parse(t, strings.Replace(url, "postgres@", role+"@", 1))
	if src.Config().User != role {
		t.Fatalf("%s has another user", src.Shown())
	}
	says(t, src.Migrate(t.Context()), store.ErrReadOnly, `may not create the schema weaver`, `CREATE SCHEMA "weaver" AUTHORIZATION "`+role)

	admin.exec("CREATE SCHEMA weaver")
	_, _, refused := src.Connect(t.Context(), true)
	for _, err := range []error{src.Migrate(t.Context()), src.Ready(t.Context()), refused} {
		says(t, err, store.ErrUnavailable, `may not look into the schema weaver: GRANT USAGE ON SCHEMA "weaver" TO "`+role)
	}
	admin.exec("GRANT USAGE ON SCHEMA weaver TO " + role)
	says(t, src.Migrate(t.Context()), store.ErrReadOnly, "may not create tables in the schema weaver")

	admin.exec("GRANT CREATE ON SCHEMA weaver TO " + role)
	if err := src.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin.exec("REVOKE SELECT ON weaver_schema_versions FROM " + role)
	says(t, src.Ready(t.Context()), store.ErrReadOnly, "lacks a permission")
}

// A migration that waits too long for a table fails, because all users of the table wait behind it.
func TestTableIsLocked(t *testing.T) {
	t.Parallel()
	src, u := migrated(t)
	u.exec("BEGIN")
	u.exec("LOCK TABLE weaver_tasks IN ACCESS SHARE MODE")
	says(t, src.MigrateAs(t.Context(), "ALTER TABLE weaver_tasks ADD COLUMN later bigint"), store.ErrBusy, "keeps a table locked", "pg_stat_activity")
	u.exec("ROLLBACK")
	if err := src.MigrateAs(t.Context(), "ALTER TABLE weaver_tasks ADD COLUMN later bigint"); err != nil {
		t.Error(err)
	}
}

// The script creates the same objects as Migrate.
func TestMigrationSQL(t *testing.T) {
	t.Parallel()
	if sql := postgres.MigrationSQL("shop"); !strings.HasPrefix(sql, `CREATE SCHEMA IF NOT EXISTS "shop"`) || !strings.Contains(sql, "-- 0001_init\n") {
		t.Errorf("the script begins with %.200s", sql)
	}
	_, u := migrated(t)
	u.exec(postgres.MigrationSQL("shop"))
	if made, want := listing(u, "shop"), listing(u, "weaver"); made != want {
		t.Errorf("the script makes\n%s\nMigrate makes\n%s", made, want)
	}
}

// Through a pooler that gives each transaction another connection no state passes between
// transactions: neither settings nor locks.
func TestMigrateThroughAPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pooled := pgtest.Bouncer(t, url, "transaction", "default_pool_size = 2")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			src := parse(t, with(pooled, "schema=looms"))
			if err := errors.Join(src.MigrateAs(t.Context(), addsTable, addsMore), src.Ready(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	u := connect(t, url)
	if got := u.texts("SELECT version || ' ' || name FROM looms.weaver_schema_versions ORDER BY version"); fmt.Sprint(got) != fmt.Sprint(versions(t, "later", "later")) {
		t.Errorf("recorded %v", got)
	}
	if n := u.texts("SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); n[0] != "0" {
		t.Errorf("%s advisory locks are left", n[0])
	}
	// Two concurrent transactions use both connections of the pooler.
	for range 2 {
		theirs := connectTo(t, pooled)
		theirs.exec("BEGIN")
		if got := theirs.texts("SHOW search_path"); strings.Contains(got[0], "looms") {
			t.Errorf("others find search_path = %s", got[0])
		}
	}
}

// If the connection breaks or stops responding, there is an error and no partial migration.
func TestMigrateIsCut(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	u := connect(t, url)
	u.exec("SELECT pg_advisory_lock($1)", postgres.LockKey("weaver"))
	proxy := pgtest.NewProxy(t, url)
	ended := make(chan error, 1)
	src := parse(t, proxy.URL())
	go func() { ended <- src.Migrate(t.Context()) }()
	u.exec("DO $$BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) LOOP PERFORM pg_sleep(0.01); END LOOP; END$$")
	proxy.Cut()
	says(t, <-ended, store.ErrUnavailable, src.Shown())
	u.exec("SELECT pg_advisory_unlock($1)", postgres.LockKey("weaver"))
	if err := parse(t, url).Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}
