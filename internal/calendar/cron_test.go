package calendar_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
)

// TestCron_ClockChanges has the rules for gaps and folds, as the package comment states them.
func TestCron_ClockChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ cron, zone, from, to, want string }{
		// 02:00-03:00 is skipped.
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T23:00", "03:00+02"},
		{"30 1-3 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T23:00", "01:30+01 03:00+02 03:30+02"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T23:00", "03:00+02"},
		{"0 */2 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T05:00", "00:00+01 03:00+02 04:00+02"},
		{"0 * * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T05:00", "00:00+01 01:00+01 03:00+02 04:00+02"},
		{"*/15 * * * *", "Europe/Berlin", "2026-03-29T01:30", "2026-03-29T03:30", "01:30+01 01:45+01 03:00+02 03:15+02"},
		{"0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T23:00", "03:00+02 03:30+02"},
		{"30 2 30 3 *", "Europe/Berlin", "2026-03-29T00:00", "2026-03-31T00:00", "02:30+02"},
		// 02:00-03:00 is repeated.
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T23:00", "02:30+02"},
		{"30 1-3 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T23:00", "01:30+02 02:30+02 03:30+01"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T23:00", "02:00+02 02:30+02 02:00+01 02:30+01"},
		{"0 */2 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T05:00", "00:00+02 02:00+02 02:00+01 04:00+01"},
		{"0 * * * *", "Europe/Berlin", "2026-10-25T01:00", "2026-10-25T04:00", "01:00+02 02:00+02 02:00+01 03:00+01"},
		{"*/20 * * * *", "Europe/Berlin", "2026-10-25T01:50", "2026-10-25T03:10", "02:00+02 02:20+02 02:40+02 02:00+01 02:20+01 02:40+01 03:00+01"},
		{"0 3 * * *", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T23:00", "03:00+01"},
		// 02:00-02:30 is skipped, 01:30-02:00 repeated.
		{"10 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00", "2026-10-04T23:00", "02:30+11"},
		{"0,45 1,2 * * *", "Australia/Lord_Howe", "2026-04-05T00:00", "2026-04-05T23:00", "01:00+11 01:45+11 02:00+1030 02:45+1030"},
		{"45 * * * *", "Australia/Lord_Howe", "2026-04-05T01:00", "2026-04-05T02:50", "01:45+11 01:45+1030 02:45+1030"},
		// The 30th of December 2011 is skipped.
		{"0 9 * * *", "Pacific/Apia", "2011-12-29T00:00", "2011-12-31T23:00", "09:00-10 00:00+14 09:00+14"},
		{"0 9 30 12 *", "Pacific/Apia", "2011-12-29T00:00", "2011-12-31T23:00", "00:00+14"},
		{"30 * * * *", "Pacific/Apia", "2011-12-29T22:00", "2011-12-31T02:00", "22:30-10 23:30-10 00:30+14 01:30+14"},
		// Standard time is +01, and the clocks go back by an hour in Ramadan: a "summer time" that is negative.
		{"30 2 * * *", "Africa/Casablanca", "2026-02-15T00:00", "2026-02-15T23:00", "02:30+01"},
		{"30 2 * * *", "Africa/Casablanca", "2026-03-22T00:00", "2026-03-22T23:00", "03:00+01"},
		{"0 3 * * *", "Asia/Kathmandu", "2026-03-29T00:00", "2026-03-29T23:00", "03:00+0545"},
		// Midnight is skipped.
		{"@daily", "America/Sao_Paulo", "2018-11-03T12:00", "2018-11-05T12:00", "01:00-02 00:00-02"},
		{"@daily", "Asia/Beirut", "2026-03-28T12:00", "2026-03-30T12:00", "01:00+03 00:00+03"},
		{"@daily", "Africa/Cairo", "2026-04-23T12:00", "2026-04-25T12:00", "01:00+03 00:00+03"},
		// A change of the zone in the middle of winter, and the last day of a leap year, after the last listed change.
		{"30 23 * * *", "America/Ciudad_Juarez", "2022-11-29T12:00", "2022-12-01T12:00", "23:30-06 23:30-07"},
		{"0 */8 * * *", "Europe/Berlin", "2040-12-31T00:00", "2041-01-01T01:00", "00:00+01 08:00+01 16:00+01 00:00+01"},
		// The hour before or after midnight is repeated.
		{"30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00", "2018-02-18T12:00", "23:30-02"},
		{"@daily", "America/Sao_Paulo", "2018-02-17T12:00", "2018-02-18T12:00", "00:00-03"},
		{"@daily", "America/Havana", "2026-10-31T12:00", "2026-11-01T12:00", "00:00-04"},
	} {
		r := mustNew(t, calendar.Spec{Cron: tc.cron, Timezone: tc.zone})
		var got []string
		for at := range r.Fires(civil(t, r, tc.from), civil(t, r, tc.to)) {
			got = append(got, at.In(r.Location()).Format("15:04Z07"))
			if _, off := at.In(r.Location()).Zone(); off%3600 != 0 {
				got[len(got)-1] = at.In(r.Location()).Format("15:04Z0700")
			}
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%s in %s from %s to %s fires at\n%s, want\n%s", tc.cron, tc.zone, tc.from, tc.to, text, tc.want)
		}
	}
}

func civil(t *testing.T, r *calendar.Recurrence, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02T15:04", text, r.Location())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestCron_Dates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ cron, after, want string }{
		{"0 0 29 2 *", "2026-01-01", "2028-02-29 2032-02-29"},
		{"0 0 29 2 *", "2096-01-01", "2096-02-29 2104-02-29"},
		{"0 0 * 2 MON#5", "2026-01-01", "2044-02-29 2072-02-29"},
		{"0 0 L * *", "2026-01-01", "2026-01-31 2026-02-28 2026-03-31"},
		{"0 0 L-30 * *", "2026-01-01", "2026-01-01 2026-03-01"},
		{"0 0 LW * *", "2026-01-01", "2026-01-30 2026-02-27 2026-03-31"},
		{"0 0 1W * *", "2026-01-01", "2026-01-01 2026-02-02 2026-03-02 2026-04-01 2026-05-01 2026-06-01 2026-07-01 2026-08-03"},
		{"0 0 31w * *", "2026-01-01", "2026-01-30 2026-03-31 2026-05-29"},
		{"0 0 13 * FRI", "2026-02-01", "2026-02-06 2026-02-13 2026-02-20"},
		{"0 0 ? * FRI#2", "2026-02-01", "2026-02-13 2026-03-13"},
		{"0 0 ? * 5l", "2026-02-01", "2026-02-27 2026-03-27"},
		{"0 0 */10 * MON", "2026-01-01", "2026-05-11 2026-06-01"}, // both, as crontab has it
		{"0 0 * * sat-sun", "2026-01-01", "2026-01-03 2026-01-04 2026-01-10"},
		{"0 0 * * 5-7", "2026-01-01", "2026-01-02 2026-01-03 2026-01-04 2026-01-09"},
		{"0 0 1 4/4 *", "2026-01-01", "2026-04-01 2026-08-01 2026-12-01"},
		{"@yearly", "2026-01-02", "2027-01-01 2028-01-01"},
		{"@Monthly", "2026-01-02", "2026-02-01 2026-03-01"},
		{"@weekly", "2026-01-02", "2026-01-04 2026-01-11"},
	} {
		r := mustNew(t, calendar.Spec{Cron: tc.cron})
		at, err := time.Parse(time.DateOnly, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(-1)
		for _, want := range strings.Fields(tc.want) {
			next, ok := r.Next(at)
			if got := next.Format(time.DateOnly); !ok || got != want {
				t.Errorf("%s after %s: next fire %s, want %s", tc.cron, at, got, want)
				break
			}
			at = next
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	const never = ": never fires: no date has the day of month "
	for cron, want := range map[string]string{
		"61 * * * *":      `: minute 61 is not between 0 and 59`,
		"x * * * *":       `: minute "x" is not a number from 0 to 59`,
		"-1 * * * *":      `: minute "" is not a number from 0 to 59`,
		"5,, * * * *":     `: minute has an empty element`,
		"*/90 * * * *":    `: minute step 90 is more than its 60 values; for another interval, use every`,
		"*/0 * * * *":     `: minute step "0" is not a number from 1 to 60`,
		"? * * * *":       `: minute "?" is not a number from 0 to 59`,
		"0 24 * * *":      `: hour 24 is not between 0 and 23`,
		"0 22-2 * * *":    `: hour range 22-2 runs backwards; write two ranges, from 22 to 23 and from 0 to 2`,
		"0 0 0 * *":       `: day of month 0 is not between 1 and 31`,
		"0 0 L-31 * *":    `: day of month "L-31": the number after L- is not between 1 and 30`,
		"0 0 W * *":       `: day of month "W": the day before W is not a number from 1 to 31`,
		"0 0 1 FOO *":     `: month "FOO" is not a number from 1 to 12 or a name from JAN to DEC`,
		"0 0 1 13 *":      `: month 13 is not between 1 and 12`,
		"0 0 * * 8":       `: day of week 8 is not between 0 and 7`,
		"0 0 * * FRI-MON": `: day of week range FRI-MON runs backwards; write two ranges, from FRI to SAT and from SUN to MON`,
		"0 0 * * L":       `: day of week L has no weekday; for the last Friday of a month write FRIL, for its last day write L as day of month`,
		"0 0 * * MON#6":   `: day of week "MON#6": the number after # is not between 1 and 5`,
		"0 0 30 2 *":      never + `30, the month 2 and the day of week *`,
		"0 0 31 4,6 *":    never + `31, the month 4,6 and the day of week *`,
		"0 0 31W 2 *":     never + `31W, the month 2 and the day of week *`,
		"* * * *":         `: has 4 fields, want 5: minute, hour, day of month, month, day of week`,
		"0 0 3 * * *": `: has 6 fields, want 5: minute, hour, day of month, month, day of week (no seconds and no year; ` +
			`for an interval below a minute, use every)`,
		"@reboot":                   `: unknown name; the names are @hourly, @daily, @weekly, @monthly and @yearly (for an interval, use every)`,
		"CRON_TZ=UTC 0 3 * * *":     `: has a time zone in it; give it as timezone`,
		strings.Repeat("0", 1001):   `: longer than 1000 bytes`,
		"0 \x1b[2J * * *":           `: hour "\x1b[2J" is not a number from 0 to 23`,
		"0 99999999999999999 * * *": `: hour "99999999999999999" is not a number from 0 to 23`,
	} {
		refuse(t, calendar.Spec{Cron: cron}, "cron "+quote(cron)+want)
	}
	for zone, want := range map[string]string{
		"Europe/berlin":       `unknown time zone; did you mean "Europe/Berlin"?`,
		"Berlin":              `unknown time zone; did you mean "Europe/Berlin"?`,
		"new york":            `unknown time zone; did you mean "America/New_York"?`,
		"Europe/Berln":        `unknown time zone; did you mean "Europe/Berlin"?`,
		"Local":               `the zone of the machine differs between machines; name it, as in Europe/Berlin`,
		"CEST":                `unknown time zone; use a name of the IANA time zone database, as in Europe/Berlin or UTC`,
		"right/Europe/Berlin": `unknown time zone; use a name of the IANA time zone database, as in Europe/Berlin or UTC`,
		"../Europe/Berlin":    `unknown time zone; use a name of the IANA time zone database, as in Europe/Berlin or UTC`,
		"+02:00":              `unknown time zone; use a name of the IANA time zone database, as in Europe/Berlin or UTC`,
	} {
		refuse(t, calendar.Spec{Cron: "0 3 * * *", Timezone: zone}, "timezone "+quote(zone)+": "+want)
	}
	a, b := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for want, s := range map[string]calendar.Spec{
		"neither cron nor every is given":                                                                          {},
		`cron "0 3 * * *" and every 1h: give one of them`:                                                          {Cron: "0 3 * * *", Every: duration("1h")},
		"every 999ms is shorter than 1s":                                                                           {Every: duration("999ms")},
		"every -1h is shorter than 1s":                                                                             {Every: duration("-1h")},
		"every 1.5s is not a whole number of seconds":                                                              {Every: duration("1500ms")},
		"jitter -1s is negative":                                                                                   {Every: duration("1h"), Jitter: duration("-1s")},
		"anchor belongs to every, and cron is given":                                                               {Cron: "0 3 * * *", Anchor: a},
		"not_after 2026-01-01T00:00:01Z is before not_before 2026-06-01T00:00:00Z":                                 {Cron: "0 3 * * *", NotBefore: b, NotAfter: a},
		"0 0 1 1 * in UTC never fires between not_before and not_after":                                            {Cron: "0 0 1 1 *", NotBefore: a, NotAfter: b},
		"timezone \"Asia/Tokyo\" belongs to cron: every is elapsed time, which is the same in all zones":           {Every: duration("1h"), Timezone: "Asia/Tokyo"},
		"cron \"x\": has 1 fields, want 5: minute, hour, day of month, month, day of week\njitter -1s is negative": {Cron: "x", Jitter: duration("-1s")},
		"not_before and not_after have to be between the years 1 and 9999":                                         {Every: duration("1h"), NotAfter: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		refuse(t, s, want)
	}
}

func refuse(t *testing.T, s calendar.Spec, want string) {
	t.Helper()
	if _, err := calendar.New(s); err == nil || err.Error() != want {
		t.Errorf("New(%+v) returned the error\n%v, want\n%s", s, err, want)
	}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return strings.ReplaceAll(string(quoted), `\u001b`, `\x1b`)
}

func duration(text string) calendar.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return calendar.Duration(d)
}
