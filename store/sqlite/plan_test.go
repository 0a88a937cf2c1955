package sqlite_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/plans.txt and schema.sql anew")

// wide lists the statements that read more rows than their keys name, each with the reason why
// that is acceptable. A page is bounded by LIMIT, in an order without a sort.
var wide = map[string]string{
	"sqlOurTables": "sqlite_schema has a row per table",
	"sqlVersions":  "a row per migration",
	"sqlPaused":    "a row per paused queue or type",

	"sqlLimitSpecs":   "a row per limit that is set, once after each change",
	"sqlQueueWaiting": bounded,

	"sqlAllWorkers": "a worker that joins compares all rows with the lock files",
	"sqlWorkerIDs":  "a row per worker",

	"sqlAllClaims":      "a row per claim call whose tasks run",
	"sqlClaimsOf":       "a row per claim call whose tasks run, once for each dead worker",
	"sqlClaimsOfSilent": "a row per worker and per claim call whose tasks run",
	"sqlForget":         "a row per worker and per claim call whose tasks run",
	"sqlForgetDead":     "a row per claim call whose tasks run, once for each dead worker",

	"sqlDueOfKey":         "a row per paused queue",
	"sqlUnstartedDue":     "100 rows of a lane and key, which it reads first",
	"sqlUnstartedWaiting": "100 rows of a lane and key, which it reads first",

	"sqlRecorded":       "the rows of one task, up to a limit",
	"sqlRecordsBetween": "the rows of a range of tasks, up to a limit for each table",

	"sqlArtifacts": "the artifacts of one task, each with its blob if it has one",

	"feed quotes 1": "a row by its keys", "feed quotes 8": "up to 8 rows by their keys", "feed quotes 32": "up to 32 rows by their keys",
	"sqlLastInFeed": "the two rows that say how far a feed is",
	"sqlPruned":     "the row of a namespace",
	"sqlPruneFeed":  "the first rows of a feed, which were counted before",

	"sqlWaitsForTask": "the tasks that one waits for, through others: those that it reached are scanned",

	"sqlCleanupBeyond": "the tasks that come back with a retried one: those that it reached are scanned",
	"sqlGivenUpBeyond": "the same",

	"sqlRescueDispatch": "what waits to be started, once after the clock was wrong",
	"sqlRescueTasks":    "the same",

	"sqlWorkers":     "a row per worker",
	"sqlTypes":       "a row per announced type, in a read",
	"sqlQueuePauses": "a row per paused queue",
	"sqlTypePauses":  "a row per paused type",

	"sqlRunning":        bounded,
	"sqlQueueDepths":    bounded,
	"sqlCountBefore":    bounded,
	"sqlCountDue":       bounded,
	"sqlCountLater":     bounded,
	"sqlCountAll":       bounded,
	"sqlCountEnded":     bounded,
	"sqlCountOrders":    bounded,
	"sqlCountHeld":      bounded,
	"sqlCountUnknown":   bounded,
	"sqlCountLedger":    bounded,
	"sqlCountLanes":     bounded,
	"sqlCountLane":      bounded,
	"sqlCountNeedy":     bounded,
	"sqlCountOldest":    bounded,
	"sqlCountChores":    bounded,
	"sqlCountParked":    bounded,
	"sqlCountSuspended": bounded,
	"sqlCountWaiters":   bounded,

	"sqlCountTasksOfJob": "the tasks of one job, in a read",

	"sqlSnapTasks": snapshot, "sqlSnapJobs": snapshot, "sqlSnapEdges": snapshot, "sqlSnapAttempts": snapshot, "sqlSnapDecisions": snapshot,
	"sqlSnapSteps": snapshot, "sqlSnapSignals": snapshot, "sqlSnapDispatch": snapshot, "sqlSnapSchedules": snapshot, "sqlSnapFires": snapshot, "sqlSnapKeys": snapshot, "sqlSnapWaiters": snapshot, "sqlSnapAudit": snapshot, "sqlSnapChores": snapshot, "sqlSnapPaused": snapshot, "sqlSnapCheckpts": snapshot, "sqlSnapArtifacts": snapshot, "sqlSnapBlobs": snapshot,

	"sqlScanEdges": part, "sqlScanAttempts": part, "sqlScanDecisions": part, "sqlScanSteps": part, "sqlScanSignals": part, "sqlScanDispatch": part, "sqlScanWaiters": part, "sqlScanPaused": part, "sqlScanCheckpts": part, "sqlScanArtifacts": part, "sqlScanReferred": part,
	"sqlScanJobSum":  "the tasks of a thousand jobs",
	"sqlScanUndoing": "the tasks with keys that are being undone, or gave that up",
}

// bounded is the reason why counts of an overview may scan: each has a limit, or jumps from
// one name to the next.
const bounded = "a bounded number of rows of an index, in a read"

const part = "the rows of a thousand tasks"

const snapshot = "a snapshot is the whole namespace"

// sorts lists the statements that sort their rows, each with the reason.
var sorts = map[string]string{
	"sqlOurTables": "a row per table",

	"sqlCountTasksOfJob": "groups the tasks of one job, in a read",
	"sqlEdgesOfNodes":    "the needs of one task at a time",
	"sqlQueueDepths":     "a bounded number of rows of a queue, in a read",
	"sqlRunning":         "groups a bounded number of tasks, in a read",

	"sqlFirstCleanup":  "the cleanups of one task",
	"sqlCleanupBeyond": "the cleanups of the tasks that come back with a retried one",
	"sqlGivenUpBeyond": "the tasks that come back with a retried one",

	"sqlSteps":     "the steps of one task",
	"sqlSnapSteps": "the steps of one task at a time",
	"sqlScanSteps": "the steps of one task at a time",

	"sqlSnapArtifacts": "the artifacts of one task at a time",
}

var goldenPlans = filepath.Join("testdata", "plans.txt")

// The plan of every statement of the package, including new ones, equals the plan in
// testdata/plans.txt. The test checks an empty database, and one that was analyzed when it was
// nearly empty, where statistics mislead most. [TestFullStore] checks full ones.
func TestPlans(t *testing.T) {
	t.Parallel()
	statements := statements(t)
	f := filledMemory(t, 0)
	plans := f.plans(statements)
	for name, plan := range plans {
		checkPlan(t, name, statements[name], plan)
	}
	if *update {
		if err := os.WriteFile(goldenPlans, []byte(planText(plans)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.wantPlans("an empty database", statements)
	f.finish(f.claim("w", len(f.enqueue(3)))...)
	f.enqueue(2)
	f.analyze()
	f.wantPlans("a database that was analyzed nearly empty", statements)
}

// wantPlans compares the plans in a database with those in testdata/plans.txt.
func (f *fixture) wantPlans(what string, statements map[string]string) {
	f.Helper()
	held, err := os.ReadFile(goldenPlans)
	if err != nil {
		f.Fatal(err)
	}
	if diff := lineDiff(string(held), planText(f.plans(statements))); diff != "" {
		f.Errorf("in %s these plans differ. A plan that depends on the data is pinned with CROSS JOIN or INDEXED BY. If those in an empty database are the right ones, run go test ./store/sqlite -run TestPlans -update\n%s", what, diff)
	}
}

// planText lists plans by the names of their statements.
func planText(plans map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		fmt.Fprintln(&text, strings.TrimRight(name+"\n  "+strings.ReplaceAll(plans[name], "\n", "\n  "), "\n "))
	}
	return text.String()
}

// plans returns the plan of each statement.
func (f *fixture) plans(statements map[string]string) map[string]string {
	f.Helper()
	plans := make(map[string]string, len(statements))
	for name, sql := range statements {
		plan, err := f.db.Plan(f.Context(), sql)
		if err != nil {
			f.Errorf("%s: %v", name, err)
		}
		plans[name] = strings.Join(plan, "\n")
	}
	return plans
}

// analyze makes the writer collect statistics, and use them.
func (f *fixture) analyze() {
	f.Helper()
	if err := f.db.Exec(f.Context(), "ANALYZE"); err != nil {
		f.Fatalf("ANALYZE: %v", err)
	}
}

var (
	// harmless matches scans of no table.
	harmless = regexp.MustCompile(`^SCAN (CONSTANT ROW|\d+-ROW VALUES CLAUSE|pragma_table_info .*)$`)
	// narrow matches a search by more than the namespace.
	narrow = regexp.MustCompile(`^SEARCH .*\((namespace=\? AND [a-z_]+=\?.*|rowid=\?)\)$`)
	limit  = regexp.MustCompile(`LIMIT (1|\?\d)\b`)
)

// checkPlan checks that a plan reads few rows, by the namespace first, and sorts no rows, or
// that its statement is listed with the reason.
func checkPlan(t *testing.T, name, sql, plan string) {
	t.Helper()
	isWide, isSorted := false, false
	for line := range strings.SplitSeq(plan, "\n") {
		switch {
		case strings.HasPrefix(line, "USE TEMP B-TREE"):
			isSorted = true
		case strings.HasPrefix(line, "SCAN "):
			isWide = isWide || !harmless.MatchString(line)
		case strings.HasPrefix(line, "SEARCH ") && !strings.Contains(line, "(namespace=?") && !narrow.MatchString(line):
			t.Errorf("%s does not search by the namespace first: %s", name, line)
		case strings.HasPrefix(line, "SEARCH ") && !narrow.MatchString(line):
			isWide = isWide || !limit.MatchString(sql)
		}
	}
	if isWide && wide[name] == "" {
		t.Errorf("%s looks at a whole table or namespace:\n%s", name, plan)
	}
	if isSorted && sorts[name] == "" {
		t.Errorf("%s sorts:\n%s", name, plan)
	}
	if !isWide && wide[name] != "" || !isSorted && sorts[name] != "" {
		t.Errorf("%s is listed and need not be:\n%s", name, plan)
	}
}

// lineDiff returns the lines that only one of two lists of plans has, each with its statement.
func lineDiff(held, got string) string {
	lines := func(text string) (list []string) {
		statement := ""
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, " ") {
				statement = strings.TrimSpace(line)
			}
			list = append(list, statement+": "+strings.TrimSpace(line))
		}
		return list
	}
	var diff strings.Builder
	only := func(mark string, in, not []string) {
		for _, line := range in {
			if !slices.Contains(not, line) {
				fmt.Fprintln(&diff, mark, line)
			}
		}
	}
	only("-", lines(held), lines(got))
	only("+", lines(got), lines(held))
	return diff.String()
}

// A temporary table per row made the first version half as fast.
func TestHotStatementsUseNoTemporaryTables(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	statements := statements(t)
	for _, name := range []string{
		"sqlInsertTask", "sqlInsertDispatch", "sqlDueOfLane", "sqlClaimTask", "sqlDeleteDispatch", "sqlInsertAttempt", "sqlGuard", "sqlTransition",
		"sqlStepGuard", "sqlInsertStep", "sqlBeat", "sqlFirstOfLane", "sqlFutureOfLane",
	} {
		sql := statements[name]
		if sql == "" {
			t.Fatalf("there is no statement %s", name)
		}
		found, err := db.Ephemeral(t.Context(), sql)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found {
			t.Errorf("%s opens a temporary table each time it runs", name)
		}
	}
}
