package mcpserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

func TestScheduleTools(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	put := weaver.NewSchedule("nightly", pay.With(card{"4111-22", "visible"}), weaver.Cron("0 3 * * *", "UTC"))
	if _, err := c.Client.PutSchedule(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	c.AllowWrites, c.Actor = true, "ann"
	cs := connect(t, c)
	now := time.Now().UTC()
	span := func(dry bool) map[string]any {
		return map[string]any{"name": "nightly", "reason": "x", "from": now.AddDate(0, 0, -3).Format(time.RFC3339), "to": now.Format(time.RFC3339), "dry_run": dry}
	}
	because := map[string]any{"name": "nightly", "reason": "migration"}
	for _, step := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"list_schedules", map[string]any{"limit": 1}, `"next":"nightly"`},
		{"list_schedules", map[string]any{"after": "nightly"}, `"items":[]`},
		{"pause_schedule", because, `"paused":{"at":"`},
		{"show_schedule", map[string]any{"name": "nightly"}, `"by":"ann","reason":"migration"}`},
		{"trigger_schedule", because, `"last":{"at":"`},
		{"resume_schedule", because, `"when":"0 3 * * * in UTC"`},
		{"backfill_schedule", span(true), `{"times":3,"fired":0}`},
		{"backfill_schedule", span(false), `{"times":3,"fired":3}`},
		{"backfill_schedule", span(false), `{"times":3,"fired":0}`},
		{"show_schedule", map[string]any{"name": "nightly"}, `"fires":[{`},
	} {
		if answer, isError := call(t, cs, step.tool, step.args); isError || !strings.Contains(answer, step.want) || strings.Contains(answer, "4111") {
			t.Errorf("%s %v: %s, want %s", step.tool, step.args, answer, step.want)
		}
	}
	for tool, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"list_schedules":    {map[string]any{"limit": 101}, "limit 101"},
		"show_schedule":     {map[string]any{"name": "none"}, "list_schedules"},
		"pause_schedule":    {map[string]any{"name": "nightly", "reason": ""}, "reason is empty"},
		"resume_schedule":   {because, "is not paused"},
		"backfill_schedule": {map[string]any{"name": "nightly", "reason": "x", "from": "1900-01-01T00:00:00Z", "to": now.Format(time.RFC3339)}, "scheduled times"},
	} {
		if answer, isError := call(t, cs, tool, c.args); !isError || !strings.Contains(answer, c.want) {
			t.Errorf("%s %v: %s, want an error with %q", tool, c.args, answer, c.want)
		}
	}
	if entries, _, err := c.Client.Audit(t.Context(), store.AuditFilter{Actor: "ann"}); err != nil || len(entries) != 5 {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
	c.AllowWrites = false
	if answer, isError := call(t, connect(t, c), "pause_schedule", because); !isError || !strings.Contains(answer, "--allow-writes") {
		t.Errorf("without writes: %s", answer)
	}
}
