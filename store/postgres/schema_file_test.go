package postgres_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

const schemaHeader = "-- What the migrations 0001 to %04d make.\n"

// sqlListing lists a schema as SQL, from the catalog: for each table its columns, constraints and
// parameters, then its indexes.
const sqlListing = `
SELECT E'\nCREATE TABLE ' || c.relname || E' (\n' || (
    SELECT string_agg(line, E',\n' ORDER BY kind, n, line) FROM (
      SELECT 1 AS kind, a.attnum AS n, '  ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || coalesce(' COLLATE "' || (SELECT collname FROM pg_collation l JOIN pg_type t ON t.oid = a.atttypid WHERE l.oid = a.attcollation AND l.oid <> t.typcollation) || '"', '')
        || CASE WHEN d.adbin IS NULL THEN '' WHEN a.attgenerated = 's' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, c.oid) || ') STORED'
           ELSE ' DEFAULT ' || pg_get_expr(d.adbin, c.oid) END
        || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END AS line
      FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL
      SELECT 2, 0, '  ' || pg_get_constraintdef(k.oid, true) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'c', 'f', 'x')) lines)
  || E'\n)' || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || E';\n'
  || coalesce((SELECT string_agg(E'\n' || pg_get_indexdef(i.indexrelid, 0, true) || E';\n', '' ORDER BY i.indexrelid::regclass::text)
    FROM pg_index i WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)), '')
FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' ORDER BY c.relname`

// sqlSequences lists the sequences.
const sqlSequences = `SELECT E'\nCREATE SEQUENCE ' || relname || E';\n' FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'S' ORDER BY relname`

// sqlFunctions lists the functions, each as it is created in the schema weaver.
const sqlFunctions = `
SELECT E'\n' || replace(replace(pg_get_functiondef(oid), pronamespace::regnamespace || '.', ''),
  'SET search_path TO ''' || pronamespace::regnamespace || ''', ''pg_temp''', 'SET search_path TO ''weaver'', ''pg_temp''') || E';\n' FROM pg_proc WHERE pronamespace = $1::regnamespace ORDER BY proname, oid::regprocedure::text`

// listing returns all tables, indexes and functions of a schema.
func listing(u *user, schema string) string {
	u.Helper()
	u.exec("SET search_path TO " + schema) // makes its names unqualified
	defer u.exec("SET search_path TO weaver")
	if others := u.texts(`
SELECT 'relation ' || relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind NOT IN ('r', 'i', 'S')
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = $1::regnamespace
UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = $1::regnamespace AND typtype NOT IN ('c', 'b')`, schema); len(others) > 0 {
		u.Errorf("the listing leaves out %q: extend it", others)
	}
	return strings.Join(slices.Concat(u.texts(sqlListing, schema), u.texts(sqlSequences, schema), u.texts(sqlFunctions, schema)), "")
}

// schema.sql is the result of the migrations, for readers and tests.
func TestSchemaFile(t *testing.T) {
	t.Parallel()
	_, u := migrated(t)
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(schemaHeader, len(files)) + listing(u, "weaver")
	if *update {
		if err := os.WriteFile("schema.sql", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if string(held) == want {
		return
	}
	a, b := strings.Split(string(held), "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	t.Errorf("schema.sql is not what the migrations make: run go test ./store/postgres -run TestSchemaFile -update\nline %d is\n%s\nwant\n%s",
		i+1, strings.Join(a[i:min(i+1, len(a))], ""), strings.Join(b[i:min(i+1, len(b))], ""))
}

// table is a table of either store.
type table struct {
	columns map[string]string // type, default and NOT NULL, by name
	keys    []string          // constraints
}

var (
	createTable = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \(\n(.*?)\n\)[^\n]*;`)
	createIndex = regexp.MustCompile(`(?m)^CREATE (UNIQUE )?INDEX (\w+) ON (.*);$`)
	comment     = regexp.MustCompile(`(?m)--.*$`)
	inner       = regexp.MustCompile(`\([^()]*\)`)
)

// readSchema parses the tables and indexes of a schema.sql.
func readSchema(t *testing.T, file string) (tables map[string]table, indexes map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tables, indexes = make(map[string]table), make(map[string]string)
	for _, m := range createTable.FindAllStringSubmatch(string(text), -1) {
		body := comment.ReplaceAllString(m[2], "")
		// Commas in parentheses do not separate columns.
		for inner.MatchString(body) {
			body = inner.ReplaceAllStringFunc(body, func(s string) string {
				return strings.NewReplacer("(", "⟨", ")", "⟩", ",", "‚").Replace(s)
			})
		}
		made := table{columns: make(map[string]string)}
		for _, item := range strings.Split(body, ",") {
			item = strings.Join(strings.Fields(strings.NewReplacer("⟨", "(", "⟩", ")", "‚", ",").Replace(item)), " ")
			name, rest, _ := strings.Cut(item, " ")
			if name == "PRIMARY" || name == "CHECK" {
				made.keys = append(made.keys, plainSQL(item))
				continue
			}
			made.columns[name] = rest
		}
		slices.Sort(made.keys)
		tables[m[1]] = made
	}
	for _, m := range createIndex.FindAllStringSubmatch(string(text), -1) {
		indexes[m[2]] = m[1] + plainSQL(m[3])
	}
	if len(tables) == 0 || len(indexes) == 0 {
		t.Fatalf("%s: %d tables, %d indexes", file, len(tables), len(indexes))
	}
	return tables, indexes
}

// plainSQL removes the differences in syntax between the two databases.
func plainSQL(sql string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("USING btree", "", "::text", "", "(", " ", ")", " ").Replace(sql)), " ")
}

// onlyHere are the intended differences.
var onlyHere = map[string]bool{
	"weaver_schema_versions": true, "weaver_tasks.end_state": true, "weaver_tasks_by_end": true,
	"weaver_workers.idle_since": true, "weaver_workers.session_grace": true, "weaver_workers.lock_host": true, "weaver_workers.lock_path": true, "weaver_workers.lock_file": true,
}

// onlyThere are constraints of SQLite that pgtest.CheckTasks adds to the databases of tests.
var onlyThere = map[string]bool{"CHECK lease_id IS NOT NULL = state = 'running'": true}

// Every table, column, key and index of the SQLite store exists here with a fitting type, and no
// other: statements are shared. The test needs no server.
func TestSchemasAreInStep(t *testing.T) {
	t.Parallel()
	theirs, theirIndexes := readSchema(t, "../sqlite/schema.sql")
	ours, ourIndexes := readSchema(t, "schema.sql")
	for name, their := range theirs {
		our, ok := ours[name]
		if !ok {
			t.Errorf("there is no table %s", name)
			continue
		}
		their.keys = slices.DeleteFunc(their.keys, func(key string) bool { return onlyThere[key] })
		if fmt.Sprint(our.keys) != fmt.Sprint(their.keys) {
			t.Errorf("%s has the constraints %q, on SQLite %q", name, our.keys, their.keys)
		}
		for column, want := range their.columns {
			got, ok := our.columns[column]
			if !ok {
				t.Errorf("there is no column %s.%s", name, column)
			} else if !fits(got, want) {
				t.Errorf("%s.%s is %s, on SQLite %s", name, column, got, want)
			}
		}
		for column := range our.columns {
			if _, ok := their.columns[column]; !ok && !onlyHere[name+"."+column] {
				t.Errorf("SQLite has no column %s.%s", name, column)
			}
		}
	}
	for name := range ours {
		if _, ok := theirs[name]; !ok && !onlyHere[name] {
			t.Errorf("SQLite has no table %s", name)
		}
	}
	for name, want := range theirIndexes {
		if got, ok := ourIndexes[name]; got != want && !(ok && onlyHere[name]) {
			t.Errorf("the index %s is %q, on SQLite %q", name, got, want)
		}
	}
	for name := range ourIndexes {
		if _, ok := theirIndexes[name]; !ok {
			t.Errorf("SQLite has no index %s", name)
		}
	}
}

// fits reports whether a column can hold the values of a SQLite column.
func fits(got, want string) bool {
	types := map[string][]string{
		"INTEGER": {"bigint", "smallint"}, "TEXT": {`text COLLATE "C"`}, "BLOB": {"bytea"},
		"": {"bytea"}, // any bytes: an ID, or the bytes of a name
	}
	var kind, rest string
	for sqlite := range types {
		if after, ok := strings.CutPrefix(want, sqlite); ok && len(sqlite) >= len(kind) {
			kind, rest = sqlite, strings.TrimSpace(after)
		}
	}
	has := func(s, what string) bool { return strings.Contains(s, what) }
	_, theirDefault, _ := strings.Cut(rest, "DEFAULT ")
	_, ourDefault, _ := strings.Cut(got, "DEFAULT ")
	theirDefault, ourDefault = strings.Fields(theirDefault + " -")[0], strings.Fields(strings.ReplaceAll(ourDefault, "::text", "") + " -")[0]
	return slices.ContainsFunc(types[kind], func(t string) bool { return got == t || strings.HasPrefix(got, t+" ") }) &&
		has(got, "NOT NULL") == has(rest, "NOT NULL") && theirDefault == ourDefault
}

// Differences in type, default and NOT NULL are detected.
func TestFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got, want string
		fits      bool
	}{
		{"bigint", "INTEGER", true},
		{"bigint DEFAULT 0", "INTEGER DEFAULT 0", true},
		{"bigint DEFAULT 0 NOT NULL", "INTEGER NOT NULL DEFAULT 0", true},
		{"bigint", "INTEGER DEFAULT 0", false},
		{"bigint DEFAULT 1", "INTEGER DEFAULT 0", false},
		{"bigint", "INTEGER NOT NULL", false},
		{"integer", "INTEGER", false},
		{"text", "TEXT", false},
		{`text COLLATE "C" DEFAULT ''::text NOT NULL`, "TEXT NOT NULL DEFAULT ''", true},
		{"bytea NOT NULL", "NOT NULL", true},
		{"bytea NOT NULL", "BLOB NOT NULL", true},
		{`text COLLATE "C"`, "BLOB", false},
	} {
		if fits(c.got, c.want) != c.fits {
			t.Errorf("fits(%q, %q) = %v", c.got, c.want, !c.fits)
		}
	}
}
