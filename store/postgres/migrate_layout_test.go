package postgres_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
)

// The migration that lays out weaver_tasks anew keeps every value of every row, the owner, the
// rights, the triggers of feeds and the indexes. end_state works as before.
func TestMigrateLayout_KeepsTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix(f, "0012_tasks_layout.sql") })
	if at < 0 {
		t.Fatal("there is no such migration")
	}
	u := connectTo(t, pgtest.URL(t))
	role := "layout_" + u.texts("SELECT current_database()::text")[0] // roles are global to the server
	for _, r := range []string{role, role + "_owner"} {
		u.exec("CREATE ROLE " + r)
		t.Cleanup(func() {
			if _, err := u.conn.Exec(context.Background(), "DROP OWNED BY "+r+"; DROP ROLE "+r); err != nil {
				t.Error(err)
			}
		})
	}
	u.exec("CREATE SCHEMA weaver")
	u.exec("SET search_path TO weaver")
	migrate := func(file string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = u.conn.PgConn().Exec(t.Context(), string(text)).ReadAll()
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for _, file := range files[:at] {
		migrate(file)
	}
	feed, err := os.ReadFile("feed.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range strings.Split(string(feed), "\n---\n")[1:] {
		u.exec(sql)
	}
	for _, sql := range fillRows(200, planNS, fillAll) {
		if strings.Contains(sql, "weaver_rates") {
			continue // a later migration creates it
		}
		u.exec(strings.ReplaceAll(strings.Replace(sql, "state, end_state, waiting_reason", "state, waiting_reason", 1), endStateOfFill, ""))
	}
	// A distinct value in each column that accepts one.
	for i, name := range u.texts(`SELECT attname::text FROM pg_attribute WHERE attrelid = 'weaver_tasks'::regclass AND attnum > 0 AND attgenerated = ''
AND attname NOT IN ('namespace', 'task_id', 'state', 'lease_id', 'task_type', 'idempotency_key') ORDER BY attnum`) {
		u.exec(fmt.Sprintf(`UPDATE weaver_tasks SET %[1]s = CASE pg_typeof(%[1]s)::text WHEN 'bytea' THEN '\x00%02[2]x' ELSE '%[2]d' END::%[3]s WHERE task_id = (SELECT task_id FROM weaver_tasks ORDER BY task_id DESC LIMIT 1)`,
			name, i, u.texts("SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'weaver_tasks'::regclass AND attname = $1", name)[0]))
	}
	u.exec("GRANT SELECT, INSERT ON weaver_tasks TO " + role)
	u.exec("GRANT UPDATE ON weaver_tasks TO " + role + " WITH GRANT OPTION")
	u.exec("GRANT SELECT (state), REFERENCES (task_id) ON weaver_tasks TO PUBLIC")
	u.exec("GRANT USAGE, CREATE ON SCHEMA weaver TO " + role + "_owner")
	u.exec("ALTER TABLE weaver_tasks OWNER TO " + role + "_owner")

	table := func() map[string][]string {
		return map[string][]string{
			"rows":          u.texts("SELECT to_jsonb(t)::text FROM weaver_tasks t ORDER BY namespace, task_id"),
			"owner":         u.texts("SELECT relowner::regrole::text FROM pg_class WHERE oid = 'weaver_tasks'::regclass"),
			"rights":        u.texts("SELECT a::text FROM pg_class c, aclexplode(relacl) a WHERE c.oid = 'weaver_tasks'::regclass ORDER BY 1"),
			"column rights": u.texts("SELECT c.attname || a::text FROM pg_attribute c, aclexplode(attacl) a WHERE c.attrelid = 'weaver_tasks'::regclass ORDER BY 1"),
			"triggers":      u.texts("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'weaver_tasks'::regclass ORDER BY 1"),
			"indexes":       u.texts("SELECT indexdef FROM pg_indexes WHERE schemaname = 'weaver' AND tablename = 'weaver_tasks' ORDER BY 1"),
			"parameters":    u.texts("SELECT reloptions::text FROM pg_class WHERE oid = 'weaver_tasks'::regclass"),
			"columns": u.texts(`SELECT format('%s %s %s %s', attname, format_type(atttypid, atttypmod), attcollation::regcollation, attnotnull) || coalesce(CASE attgenerated WHEN '' THEN pg_get_expr(adbin, adrelid) END, '')
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = 'weaver_tasks'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1`),
		}
	}
	before := table()
	u.exec("BEGIN")
	migrate(files[at])
	u.exec("COMMIT")
	after := table()
	for name, want := range before {
		if len(want) == 0 {
			t.Errorf("%s: nothing to compare", name)
		}
		if got := after[name]; !slices.Equal(got, want) {
			t.Errorf("%s: after the migration\n%s\nbefore\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if n := u.texts("SELECT count(*)::text FROM weaver_tasks WHERE end_state IS DISTINCT FROM CASE WHEN state IN ('failed', 'blocked', 'cancelled') THEN state END"); n[0] != "0" {
		t.Errorf("end_state of %s tasks is wrong", n[0])
	}
	if n := u.texts("SELECT (reltuples > 0)::text FROM pg_class WHERE oid = 'weaver_tasks'::regclass"); n[0] != "true" {
		t.Error("the server does not know how large the table is")
	}
}
