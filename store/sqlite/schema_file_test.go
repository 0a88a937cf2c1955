package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store/sqlite"
)

// schema.sql is the schema that the migrations create in an empty database: its tables and
// indexes, and its one row, the generation.
func TestSchemaFile(t *testing.T) {
	t.Parallel()
	known, err := migrate.Load(os.DirFS("."), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	f := unmigrated(t, filepath.Join(t.TempDir(), "w.db"))
	for _, m := range known {
		f.exec(m.SQL)
	}
	var want strings.Builder
	fmt.Fprintf(&want, sqlite.SchemaHeader, len(known))
	for _, sql := range f.texts("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_stat%' ORDER BY rowid") {
		fmt.Fprintf(&want, "\n%s;\n", sql)
	}
	for _, table := range f.texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%'") {
		if n := f.count("SELECT count(*) FROM " + table); n > 0 && (table != "weaver_store_meta" || n > 1) {
			t.Errorf("the migrations put %d rows into %s, which schema.sql does not have", n, table)
		}
	}
	want.WriteString("\nINSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'generation', lower(hex(randomblob(16))));\n")
	if *update {
		if err := os.WriteFile("schema.sql", []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if diff := lineDiff(string(held), want.String()); diff != "" {
		t.Errorf("schema.sql is not what the migrations make: run go test ./store/sqlite -run TestSchemaFile -update\n%s", diff)
	}
}

// texts returns the only column of a query of the user.
func (f *fixture) texts(query string) (all []string) {
	f.Helper()
	rows, err := f.db.DB().QueryContext(f.Context(), query)
	if err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			f.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	return all
}
