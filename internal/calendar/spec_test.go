package calendar_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
)

func TestSpec_JSON(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, out, text string }{
		{`{"cron":" 0  3 * * *","timezone":"Europe/Berlin"}`, `{"cron":"0 3 * * *","timezone":"Europe/Berlin"}`, "0 3 * * * in Europe/Berlin"},
		{`{"cron":"@daily"}`, `{"cron":"@daily","timezone":"UTC"}`, "@daily in UTC"},
		{
			`{"every":"90m","anchor":"2026-01-01T02:30:00.5+02:00","jitter":"60s","not_before":"2026-01-01T00:00:00+01:00"}`,
			`{"every":"1h30m","anchor":"2026-01-01T00:30:00Z","jitter":"1m","not_before":"2025-12-31T23:00:00Z"}`, "every 1h30m",
		},
	} {
		var s calendar.Spec
		if err := json.Unmarshal([]byte(tc.in), &s); err != nil {
			t.Fatal(err)
		}
		s = mustNew(t, s).Spec()
		if out, err := json.Marshal(s); err != nil || string(out) != tc.out {
			t.Errorf("%s became %s (%v), want %s", tc.in, out, err, tc.out)
		}
		if s.String() != tc.text {
			t.Errorf("String() = %q, want %q", s, tc.text)
		}
	}
	var s calendar.Spec
	if err := json.Unmarshal([]byte(`{"every":"15"}`), &s); err == nil || !strings.Contains(err.Error(), `"15" is not a duration such as 30s, 15m or 1h30m`) {
		t.Errorf("a duration without a unit: %v", err)
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)
	const week = 7 * 24 * time.Hour
	r := mustNew(t, calendar.Spec{Every: calendar.Duration(week), Anchor: anchor})
	for k := -3; k < 3; k++ {
		fire := anchor.Add(time.Duration(k) * week)
		if next, ok := r.Next(fire.Add(-1)); !ok || !next.Equal(fire) {
			t.Errorf("Next just before %s = %s", fire, next)
		}
		if next, ok := r.Next(fire); !ok || !next.Equal(fire.Add(week)) {
			t.Errorf("Next(%s) = %s", fire, next)
		}
		if last, ok := r.Latest(fire); !ok || !last.Equal(fire) {
			t.Errorf("Latest(%s) = %s", fire, last)
		}
		if last, ok := r.Latest(fire.Add(-1)); !ok || !last.Equal(fire.Add(-week)) {
			t.Errorf("Latest just before %s = %s", fire, last)
		}
		if n := r.Count(anchor.Add(-3*week), fire); n != int64(k+3) {
			t.Errorf("Count to %s = %d, want %d", fire, n, k+3)
		}
	}
	if v := r.ZoneVersion(); v != "" {
		t.Errorf("ZoneVersion() = %q, want none", v)
	}
}

func TestRecurrence_Bounds(t *testing.T) {
	t.Parallel()
	first, last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for _, s := range []calendar.Spec{{Cron: "@daily"}, {Every: duration("24h")}} {
		s.NotBefore, s.NotAfter = first, last
		r := mustNew(t, s)
		if next, ok := r.Next(time.Time{}); !ok || !next.Equal(first) {
			t.Errorf("%s: first fire %s, want %s", s, next, first)
		}
		if next, ok := r.Next(last); ok {
			t.Errorf("%s: fires at %s, after NotAfter", s, next)
		}
		if at, ok := r.Latest(last.AddDate(100, 0, 0)); !ok || !at.Equal(last) {
			t.Errorf("%s: last fire %s, want %s", s, at, last)
		}
		if at, ok := r.Latest(first.Add(-1)); ok {
			t.Errorf("%s: fires at %s, before NotBefore", s, at)
		}
		if n := r.Count(first.AddDate(-1, 0, 0), last.AddDate(1, 0, 0)); n != 10 {
			t.Errorf("%s: Count = %d, want 10", s, n)
		}
	}
}

// From any instant, Next and Latest return only fires that RFC 3339 can express.
func TestRecurrence_EndOfTime(t *testing.T) {
	t.Parallel()
	for _, s := range []calendar.Spec{{Cron: "* * * * *", Timezone: "Pacific/Kiritimati"}, {Cron: "@yearly", Timezone: "Pacific/Pago_Pago"}, {Every: duration("2562047h")}} {
		r := mustNew(t, s)
		for _, at := range []time.Time{time.Unix(1<<40, 0), time.Unix(1<<62, 0)} {
			if next, ok := r.Next(at); ok {
				t.Errorf("%s: fires at %s", s, next)
			}
			if last, ok := r.Latest(at); !ok || last.Year() < 9700 || last.Year() > 9999 {
				t.Errorf("%s: last fire %s", s, last)
			}
		}
		for _, at := range []time.Time{time.Unix(-1<<40, 0), time.Unix(-1<<62, 0)} {
			if next, ok := r.Next(at); !ok || next.Year() < 1 || next.Year() > 300 {
				t.Errorf("%s: first fire %s", s, next)
			}
			if last, ok := r.Latest(at); ok {
				t.Errorf("%s: fires at %s", s, last)
			}
		}
	}
}

// Ten years of minutes are counted, not stepped through.
func TestCount_LongRange(t *testing.T) {
	t.Parallel()
	r := mustNew(t, calendar.Spec{Cron: "* * * * *", Timezone: "Europe/Berlin"})
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if n, want := r.Count(from, from.AddDate(10, 0, 0)), int64(3653*24*60); n != want {
		t.Errorf("Count = %d, want %d", n, want)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	r := mustNew(t, calendar.Spec{Every: duration("1m"), Jitter: duration("1h")})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var quarters [4]int
	for i := range 400 {
		fire := at.Add(time.Duration(i) * time.Minute)
		d := r.Delay("nightly", fire)
		if d < 0 || d >= time.Minute {
			t.Fatalf("Delay = %s: later than the next fire", d)
		}
		quarters[d/(15*time.Second)]++
	}
	for _, n := range quarters {
		if n < 60 {
			t.Errorf("400 delays in quarters of their range: %v", quarters)
		}
	}
	hourly := mustNew(t, calendar.Spec{Cron: "0 * * * *", Jitter: duration("10m")})
	// Delays of a stored fire may not change with a release.
	if a, b := hourly.Delay("nightly", at), hourly.Delay("weekly", at); a != 474106*time.Millisecond || b != 497560*time.Millisecond {
		t.Errorf("delays %s and %s changed", a, b)
	}
	if d := mustNew(t, calendar.Spec{Cron: "0 * * * *"}).Delay("nightly", at); d != 0 {
		t.Errorf("Delay without jitter = %s", d)
	}
}

func TestZoneVersion(t *testing.T) {
	t.Parallel()
	versions := make(map[string]string)
	for _, zone := range []string{"UTC", "Europe/Berlin", "Europe/London", "Asia/Kathmandu"} {
		v := mustNew(t, calendar.Spec{Cron: "@daily", Timezone: zone}).ZoneVersion()
		if other := versions[v]; other != "" || len(v) != 16 {
			t.Errorf("ZoneVersion of %s = %q, %s has the same", zone, v, other)
		}
		versions[v] = zone
	}
	// It does not depend on the release or the form of the database, as long as the European Union keeps its rule.
	if v := versions["eeae09569dc51f4f"]; v != "Europe/Berlin" {
		t.Errorf("the versions changed: %v", versions)
	}
	// Zones of equal rules have equal versions: names do not matter.
	a, b := mustNew(t, calendar.Spec{Cron: "@daily", Timezone: "Etc/UTC"}), mustNew(t, calendar.Spec{Cron: "0 5 * * *"})
	if a.ZoneVersion() != b.ZoneVersion() {
		t.Errorf("Etc/UTC has version %s, UTC %s", a.ZoneVersion(), b.ZoneVersion())
	}
}

// FuzzCron checks that what is accepted fires, in order, and that all searches agree.
func FuzzCron(f *testing.F) {
	for _, cron := range []string{"*/15 * * * *", "30 2 * * *", "0 0 29 2 *", "0 12 15W,L-2,LW */3 ?", "5/7 8-18/2 * JAN-mar SUNL,FRI#5,5-7", "@daily", "0 0 30 2 *"} {
		f.Add(cron, "Europe/Berlin", int64(1774745999))
		f.Add(cron, "Australia/Lord_Howe", int64(1e9))
	}
	f.Fuzz(func(t *testing.T, cron, zone string, unix int64) {
		r, err := calendar.New(calendar.Spec{Cron: cron, Timezone: zone})
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' && c != '\n' }) {
				t.Errorf("New(%q, %q): control characters in %q", cron, zone, err)
			}
			return
		}
		at := time.Unix(unix%4e9, 0)
		next, ok := r.Next(at)
		if !ok || !next.After(at) {
			t.Fatalf("Next(%s) = %s, %t", at, next, ok)
		}
		if last, ok := r.Latest(next); !ok || !last.Equal(next) {
			t.Errorf("Latest(%s) = %s", next, last)
		}
		if last, ok := r.Latest(next.Add(-1)); !ok || last.After(at) {
			t.Errorf("Latest just before %s = %s, but Next(%s) did not find it", next, last, at)
		}
		if n := r.Count(at.Add(time.Second), next.Add(1)); n != 1 {
			t.Errorf("Count from %s to %s = %d, want 1", at, next, n)
		}
		if again, err := calendar.New(r.Spec()); err != nil || again.Spec() != r.Spec() {
			t.Errorf("New(%+v) = %+v, %v", r.Spec(), again, err)
		}
	})
}

func BenchmarkRecurrence(b *testing.B) {
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	for _, cron := range []string{"* * * * *", "0 3 * * *", "0 0 29 2 *"} {
		r := mustNew(b, calendar.Spec{Cron: cron, Timezone: "Europe/Berlin"})
		b.Run("Next/"+cron, func(b *testing.B) {
			for b.Loop() {
				r.Next(at)
			}
		})
		b.Run("Latest/"+cron, func(b *testing.B) {
			for b.Loop() {
				r.Latest(at)
			}
		})
		b.Run("CountTenYears/"+cron, func(b *testing.B) {
			for b.Loop() {
				r.Count(at, at.AddDate(10, 0, 0))
			}
		})
		b.Run("New/"+cron, func(b *testing.B) {
			for b.Loop() {
				mustNew(b, r.Spec())
			}
		})
		b.Run("ZoneVersion/"+cron, func(b *testing.B) {
			for b.Loop() {
				r.ZoneVersion()
			}
		})
	}
}
