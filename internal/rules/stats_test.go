package rules_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

func TestSlotOf(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		at    string
		width time.Duration
		want  string
	}{
		{"2026-01-02T03:04:05.999999Z", 10 * time.Second, "2026-01-02T03:04:00Z"},
		{"2026-01-02T03:04:10Z", 10 * time.Second, "2026-01-02T03:04:10Z"},
		{"2026-01-02T05:04:10+02:00", time.Hour, "2026-01-02T03:00:00Z"},
		{"1969-12-31T23:59:59Z", time.Minute, "1969-12-31T23:59:00Z"},
		{"1970-01-01T00:00:00Z", time.Hour, "1970-01-01T00:00:00Z"},
	} {
		if got := store.SlotOf(at(c.at), c.width); got != at(c.want) {
			t.Errorf("the slot of %v with %s is %v, want %s", c.width, c.at, got, c.want)
		}
	}
}

// A worker never writes a slot that a collector may have merged already.
func TestStatsAreMergedWhenTheyAreNotWrittenAnyMore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fine, minute := rules.StatLevels[0], rules.StatLevels[1]
	for s := range 3600 {
		now := now.Add(time.Duration(s) * time.Second)
		oldest := now.Add(-store.StatsLate)
		if rules.StatLate(oldest, now) || !rules.StatLate(oldest.Add(-time.Microsecond), now) {
			t.Fatalf("at %v the oldest slot that is written is not %v", now, oldest)
		}
		if before := fine.MergeBefore(minute.Width, now); oldest.Sub(before) < 5*time.Minute || before != before.Truncate(time.Minute) {
			t.Fatalf("at %v slots before %v are merged and those from %v on are written", now, before, oldest)
		}
	}
	if got := rules.StatsDropBefore(-1, now); !got.IsZero() {
		t.Errorf("statistics that are kept for ever go before %v", got)
	}
	if got := now.Sub(rules.StatsDropBefore(0, now)); got != store.StatsKept {
		t.Errorf("by default statistics are kept for %v", got)
	}
}
