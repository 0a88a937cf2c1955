package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
)

// boundedTexts maps each indexed text to the bound of its length: an index row has 2,700 bytes at
// most. A new one needs a check in internal/rules/text.go.
var boundedTexts = map[string]string{
	"namespace":       "ClientConfig.Namespace",
	"queue":           "rules.CheckEnqueue, rules.CheckCommand",
	"task_type":       "rules.CheckEnqueue, rules.CheckCommand, rules.CheckTypes",
	"concurrency_key": "rules.CheckEnqueue",
	"idempotency_key": "rules.CheckEnqueue",

	"weaver_conc_keys.key":            "rules.CheckEnqueue",
	"weaver_conc_waiters.key":         "rules.CheckEnqueue",
	"weaver_conc_waiters.lane_group":  "rules.CheckEnqueue: the parts of store.LaneGroup",
	"weaver_task_labels.key":          "rules.CheckEnqueue",
	"weaver_task_labels.value":        "rules.CheckEnqueue",
	"weaver_jobs.name":                "rules.CheckEnqueue",
	"weaver_job_bases.base":           "the ID of a job",
	"weaver_steps.name":               "rules.CheckRecord",
	"weaver_steps.awaits":             "rules.CheckRecord: the name of a signal",
	"weaver_checkpoints.name":         "rules.CheckRecord",
	"weaver_signals.name":             "rules.CheckCommand",
	"weaver_signals.key":              "rules.CheckCommand",
	"weaver_audit.target":             "an ID, or rules.CheckCommand",
	"weaver_stats.worker":             "an ID that engines make",
	"weaver_workers.worker_id":        "an ID that engines make",
	"weaver_claims.worker_id":         "an ID that engines make",
	"weaver_stats.outcome":            "task.Outcome",
	"weaver_stats.error_kind":         "task.ErrorKind",
	"weaver_tasks.end_state":          "task.State",
	"weaver_outbox_orders.status":     "order.State",
	"weaver_schedules.name":           "rules.CheckCommand",
	"weaver_schedule_fires.schedule":  "rules.CheckCommand",
	"weaver_limits.name":              "store.CheckLimitName",
	"weaver_rates.name":               "store.CheckLimitName, or rules.CheckEnqueue: the key of a rate",
	"weaver_outbox_events.lane_group": "rules.CheckEnqueue: the parts of store.LaneGroup",
	"weaver_artifacts.kind":           "a constant",
	"weaver_chores.kind":              "a constant",
	"weaver_payloads.kind":            "a constant",
	"weaver_store_meta.key":           "a constant",
	"weaver_blobs.sha256":             "a hash",
}

// Each text in an index or a key has a length limit.
func TestIndexedTextsAreBounded(t *testing.T) {
	t.Parallel()
	u := connect(t, pgtest.Migrated(t, "weaver", migrateURL))
	found := u.texts(`
SELECT DISTINCT c.relname || '.' || a.attname FROM pg_index i
JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
WHERE n.nspname = 'weaver' AND a.atttypid = 'text'::regtype`)
	if len(found) < len(boundedTexts) {
		t.Errorf("%d texts are indexed, and %d are said to be", len(found), len(boundedTexts))
	}
	for _, column := range found {
		_, name, _ := strings.Cut(column, ".")
		if boundedTexts[column] == "" && boundedTexts[name] == "" {
			t.Errorf("%s is indexed: say what bounds it, and check it in internal/rules/text.go", column)
		}
	}
	for column := range boundedTexts {
		if slices.Contains([]string{"namespace", "queue", "task_type", "concurrency_key", "idempotency_key"}, column) {
			continue
		}
		if !slices.Contains(found, column) {
			t.Errorf("%s is not indexed any more", column)
		}
	}
}
