package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/store"
)

// The error of Migrate names any object of the user with a name that the schema needs, and an
// instruction. The object and the schema stay unchanged.
func TestMigrateNamesWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	for ddl, named := range map[string]string{
		"CREATE TABLE weaver_audit (what TEXT)":                               "the table weaver_audit exists, but Weaver did not create it",
		"CREATE VIEW weaver_steps AS SELECT 1":                                "the view weaver_steps exists, but Weaver did not create it",
		"CREATE TABLE mine (a); CREATE INDEX weaver_tasks_by_job ON mine (a)": "the index weaver_tasks_by_job exists, but Weaver did not create it",
		"CREATE TABLE mine (a); CREATE INDEX weaver_payloads ON mine (a)":     "the index weaver_payloads exists, but Weaver did not create it",
		"CREATE TABLE weaver_tasks_by_job (what TEXT)":                        "the table weaver_tasks_by_job exists, but Weaver did not create it",
	} {
		f := unmigrated(t, filepath.Join(t.TempDir(), "w.db"))
		f.exec(ddl)
		before := f.count("SELECT count(*) FROM sqlite_schema")
		says(t, f.db.Migrate(t.Context()), store.ErrForeignDatabase, f.db.Path(), named, "rename it", "file of its own")
		if after := f.count("SELECT count(*) FROM sqlite_schema"); after != before {
			t.Errorf("%s: %d entries in the schema after the refusal, %d before", ddl, after, before)
		}
	}
}
