package postgres_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/sqlstore/sqltext"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

const (
	planRows = 10_000 // rows of each table; ANALYZE samples all of them
	mostRows = 3_000  // maximum of rows that one statement may read
)

var goldenPlans = filepath.Join("testdata", "plans.txt")

// hot are statements whose plans must appear.
var hot = []string{
	"sqlInsertStepsAll", "sqlInsertAlike", "sqlInsertNew", "sqlClaimLane", "sqlDueOfLane", "sqlDueOfLanes", "sqlSucceedAll", "sqlGuardAll", "sqlSucceedEach", "sqlTransitionAll", "sqlAttemptsAll", "sqlDecisionsAll", "sqlDispatchAll", "sqlRecordNow", "sqlRecordOneNow", "sqlBeatAll", "sqlGuard", "sqlTransition", "sqlLanes",
	"sqlLockTasks", "sqlLockJobs", "sqlLockKeys", "sqlLockDispatch", "sqlInsertClaim", "sqlReadTaken", "sqlReadTakenSteps", "sqlClaimTasks", "sqlInsertAttempt", "sqlHintedAll", "sqlLockSentAll", "sqlMarkSentAll", "sqlSetSentAll", "sqlUnsentOfLane", "sqlLeaveSent",
	"sqlTargets", "sqlBesideAny", "sqlBesideRetry", "sqlBesideDelete", "sqlUndispatchAll", "sqlCancelAll", "sqlReviveAll", "sqlUnblockAll", "sqlAuditAll",
}

// scanning are the statements over the due rows of lanes. They read all of them while the server
// has no statistics of the namespace.
var scanning = []string{"sqlClaimLane", "sqlDueOfLanes", "sqlFirstOfLane", "sqlFutureOfLane", "sqlUnsentOfLane", "sqlLanes", "sqlNextOfQueue"}

// counting are counts of at most store.MaxCount + 1 rows, in reads for people.
var counting = []string{"sqlCountBefore"}

// No statement of a usual call reads many rows of a table or an index. This holds for any contents
// of the database, any statistics, and any contents at the time when the connection planned.
// testdata/plans.txt holds the plans in a full database.
func TestPlans(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test runs this: it needs PostgreSQL")
	}
	names := make(map[string]string)
	for name, sql := range sqltext.All(t, postgres.Generated, ".") {
		sql = postgres.Translate(sql)
		if was := names[sql]; was == "" || name < was {
			names[sql] = name
		}
	}
	all := &plans{names: names, of: make(map[string]map[string]bool), seen: make(map[string]bool)}
	played := fills[:states]
	if os.Getenv("WEAVER_PLANS") != "" {
		played = slices.Concat(fills, moreFills)
	}
	t.Run("in", func(t *testing.T) {
		for _, state := range played {
			t.Run(state.name, func(t *testing.T) {
				t.Parallel()
				all.collect(t, state)
			})
		}
	})
	for _, name := range hot {
		if !all.seen[name] {
			t.Errorf("%s was not run: the work has to run every hot statement", name)
		}
	}
	if t.Failed() || all.version != 15 {
		return // other versions plan differently
	}
	got := all.text()
	if *update {
		if err := os.WriteFile(goldenPlans, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.ReadFile(goldenPlans)
	if err != nil {
		t.Fatal(err)
	}
	if string(held) != got {
		t.Errorf("plans differ from %s. If the new ones are right, run go test ./store/postgres -run TestPlans -update\n%s", goldenPlans, firstDiff(string(held), got))
	}
}

// firstDiff returns the first difference of two texts.
func firstDiff(held, got string) string {
	a, b := strings.Split(held, "\n\n"), strings.Split(got, "\n\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "held:\n" + a[i] + "\ngot:\n" + b[i]
		}
	}
	return fmt.Sprintf("%d statements, and %d", len(a), len(b))
}

// plans collects the plans that the server reports.
type plans struct {
	names map[string]string // names of statements by text

	mu      sync.Mutex
	version int                        // of the server
	seen    map[string]bool            // statements seen
	of      map[string]map[string]bool // shapes in a full database, by statement
}

// collect runs the work in a state of the database.
func (p *plans) collect(t *testing.T, state fill) {
	url := pgtest.Migrated(t, "weaver", migrateURL)
	u := connect(t, url)
	u.stayUnanalyzed()
	if !state.late {
		u.fill(planRows, state.sql)
	}
	if version, err := strconv.Atoi(u.texts("SELECT (current_setting('server_version_num')::int / 10000)::text")[0]); err == nil && state.name == fullState {
		p.version = version
	}
	if state.analyze {
		u.exec("ANALYZE")
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_level": "notice",
		"auto_explain.log_format": "json", "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off", "client_min_messages": "notice",
	} {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	cfg.MaxConns = 1 // a connection keeps its plans
	cfg.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { p.notice(t, state.name, n.Message) }
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var last time.Duration // zero is the default
	if state.late {
		last = time.Nanosecond // each transaction plans again
	}
	db, err := postgres.New(t.Context(), pool, postgres.Unsafe(), postgres.LockFolder(t.TempDir()), postgres.PlansLast(last))
	if err != nil {
		t.Fatal(err)
	}
	work := &planWork{TB: t, db: db, ids: task.NewIDs(nil)}
	work.run()
	if state.late {
		u.fill(planRows, state.sql)
		work.run()
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// node is a node of a plan in the server's JSON.
type node struct {
	Kind      string  `json:"Node Type"`
	Operation string  `json:"Operation"`
	Table     string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Cond      string  `json:"Index Cond"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Plans     []node  `json:"Plans"`
}

// notice parses a message of auto_explain.
func (p *plans) notice(t *testing.T, state, text string) {
	_, text, ok := strings.Cut(text, "plan:\n")
	if !ok {
		return
	}
	var report struct {
		Text string `json:"Query Text"`
		Plan node
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Errorf("%v: %s", err, text)
		return
	}
	var shape strings.Builder
	if touched := report.Plan.write(&shape, 1); !touched {
		return
	}
	name := p.names[report.Text]
	if name == "" {
		return // a statement of the connection or of a test
	}
	if n := report.Plan.looked(); n > mostRows && (state != newNamespace || !slices.Contains(scanning, name)) && (n > store.MaxCount+1 || !slices.Contains(counting, name)) {
		t.Errorf("%s, %s: looks at %.0f rows\n%s", name, state, n, shape.String())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[name] = true
	if state != fullState {
		return
	}
	if p.of[name] == nil {
		p.of[name] = make(map[string]bool)
	}
	p.of[name][shape.String()] = true
}

// write writes the shape of a plan, and reports whether it reads a table that grows.
func (n *node) write(b *strings.Builder, depth int) (touched bool) {
	fmt.Fprint(b, strings.Repeat("  ", depth), n.Kind)
	if n.Operation != "" && n.Kind == "ModifyTable" {
		fmt.Fprint(b, " ", n.Operation)
	}
	if n.Index != "" {
		fmt.Fprint(b, " using ", n.Index)
	}
	if n.Table != "" {
		fmt.Fprint(b, " on ", n.Table)
		touched = strings.HasPrefix(n.Table, "weaver_") && !small(n.Table)
	}
	fmt.Fprintln(b)
	for i := range n.Plans {
		touched = n.Plans[i].write(b, depth+1) || touched
	}
	return touched
}

// looked returns the number of rows of tables and indexes that a plan read.
func (n *node) looked() (rows float64) {
	if n.Index != "" || n.Table != "" && n.Kind != "ModifyTable" {
		rows = (n.Rows + n.Filtered + n.Rechecked) * n.Loops
	}
	for i := range n.Plans {
		rows += n.Plans[i].looked()
	}
	return rows
}

// text lists the plans of each statement.
func (p *plans) text() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.of)) {
		for _, shape := range slices.Sorted(maps.Keys(p.of[name])) {
			list = append(list, name+"\n"+strings.TrimRight(shape, "\n"))
		}
	}
	return strings.Join(list, "\n\n") + "\n"
}
