package sqlite_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store/sqlite"
)

// Every statement finds its rows by a key or an index that begins with the
// namespace, in an empty database as in a full one: there are no statistics
// that could change a plan.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	all := maps.Clone(sqlite.HotStatements)
	maps.Copy(all, sqlite.WarmStatements)
	maps.Copy(all, sqlite.ChunkStatements())
	for name, sql := range all {
		plan, err := db.Plan(t.Context(), sql)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, line := range plan {
			switch {
			case strings.HasPrefix(line, "SCAN CONSTANT ROW"), strings.Contains(line, "-ROW VALUES"):
			case strings.HasPrefix(line, "SCAN "):
				t.Errorf("%s scans: %s", name, line)
			case strings.HasPrefix(line, "SEARCH ") && !strings.Contains(line, "(namespace="):
				t.Errorf("%s does not search by the namespace first: %s", name, line)
			case strings.Contains(line, "TEMP B-TREE") && name != "steps":
				t.Errorf("%s sorts: %s", name, line)
			}
		}
	}
}

// The lane index must serve the whole order of a claim.
func TestClaimPlan(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	plan, err := db.Plan(t.Context(), sqlite.HotStatements["due of lane"])
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(plan, "\n")
	want := "SEARCH o USING COVERING INDEX weaver_outbox_events_by_lane (namespace=? AND queue=? AND task_type=? AND priority=? AND (available_at,task_id)>(?,?) AND available_at<?)\n" +
		"SEARCH t USING PRIMARY KEY (namespace=? AND task_id=?)"
	if got != want {
		t.Errorf("the plan of a claim is\n%s\nwant\n%s", got, want)
	}
}

// A temporary table per row is what made the first version half as fast.
func TestHotStatementsUseNoTemporaryTables(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	for name, sql := range sqlite.HotStatements {
		found, err := db.Ephemeral(t.Context(), sql)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found {
			t.Errorf("%s opens a temporary table each time it runs", name)
		}
	}
}
