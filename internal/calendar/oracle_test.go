package calendar_test

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/calendar"
)

// clock is the civil time of a zone in one minute.
type clock struct {
	year, day, hour, minute, last int // last is the last day of the month
	month                         time.Month
	weekday                       time.Weekday
}

// oracle has the meaning of an expression, independent of the parser.
type oracle struct {
	cron            string
	matches         func(c clock) bool
	everyHour, both bool
}

var oracles = []oracle{
	{"* * * * *", func(clock) bool { return true }, true, true},
	{"*/15 * * * *", func(c clock) bool { return c.minute%15 == 0 }, true, true},
	{"0 * * * *", func(c clock) bool { return c.minute == 0 }, true, true},
	{"7,37 0-23 * * *", func(c clock) bool { return c.minute%30 == 7 }, true, true},
	{"0 */2 * * *", func(c clock) bool { return c.minute == 0 && c.hour%2 == 0 }, false, true},
	{"*/30 2 * * *", func(c clock) bool { return c.minute%30 == 0 && c.hour == 2 }, false, true},
	{"@daily", func(c clock) bool { return c.minute == 0 && c.hour == 0 }, false, false},
	{"30 2 * * *", func(c clock) bool { return c.minute == 30 && c.hour == 2 }, false, false},
	{"30 0-3,23 * * *", func(c clock) bool { return c.minute == 30 && (c.hour < 4 || c.hour == 23) }, false, false},
	{"0,15,45 1 * MAR,OCT sun", func(c clock) bool {
		return (c.minute == 0 || c.minute == 15 || c.minute == 45) && c.hour == 1 && (c.month == 3 || c.month == 10) && c.weekday == 0
	}, false, false},
	{"15 2 L * 0", func(c clock) bool {
		return c.minute == 15 && c.hour == 2 && (c.day == c.last || c.weekday == 0)
	}, false, false},
	{"45 1 * * SUNL,FRI#5", func(c clock) bool {
		return c.minute == 45 && c.hour == 1 && (c.weekday == 0 && c.day+7 > c.last || c.weekday == 5 && c.day > 28)
	}, false, false},
	{"0 12 15W,L-2 */3 ?", func(c clock) bool {
		nearest := c.day == 15 && c.weekday > 0 && c.weekday < 6 || c.day == 14 && c.weekday == 5 || c.day == 16 && c.weekday == 1
		return c.minute == 0 && c.hour == 12 && (nearest || c.day == c.last-2) && c.month%3 == 1
	}, false, false},
}

// margin is more than any fold, in minutes.
const margin = 30 * 60

// timeline has the offset of a zone in each minute of [from, to), in minutes of Unix time.
type timeline struct {
	from    int64
	offsets []int16
}

func minutesOf(loc *time.Location, from, to int64) timeline {
	offset := func(minute int64) int16 {
		_, off := time.Unix(minute*60, 0).In(loc).Zone()
		return int16(off / 60)
	}
	line := timeline{from: from}
	for m := from; m < to; m += 60 {
		first, next := offset(m), offset(m+60)
		for i := range min(60, to-m) {
			if first != next {
				first = offset(m + i)
			}
			line.offsets = append(line.offsets, first)
		}
	}
	return line
}

// fires returns the fires of oracles in [from, to), whose timeline begins a margin earlier, so that it has
// all that is repeated.
func fires(oracles []oracle, line timeline, from int64) [][]int64 {
	found := make([][]int64, len(oracles))
	base := line.from - margin
	seen := make([]bool, len(line.offsets)+2*margin)
	before := line.from + int64(line.offsets[0]) - 1
	skipped := make([]bool, len(oracles))
	for i, off := range line.offsets {
		minute := line.from + int64(i)
		civil := minute + int64(off)
		clear(skipped)
		for lost := before + 1; lost < civil; lost++ {
			if !seen[lost-base] {
				c := clockOf(lost)
				for n, o := range oracles {
					skipped[n] = skipped[n] || !o.everyHour && o.matches(c)
				}
			}
		}
		c := clockOf(civil)
		for n, o := range oracles {
			if minute >= from && (skipped[n] || o.matches(c) && (o.both || !seen[civil-base])) {
				found[n] = append(found[n], minute*60)
			}
		}
		seen[civil-base] = true
		before = civil
	}
	return found
}

func clockOf(civil int64) clock {
	t := time.Unix(civil*60, 0).UTC()
	c := clock{hour: t.Hour(), minute: t.Minute(), weekday: t.Weekday()}
	c.year, c.month, c.day = t.Date()
	c.last = 31
	switch c.month {
	case time.April, time.June, time.September, time.November:
		c.last = 30
	case time.February:
		c.last = 28
		if c.year%4 == 0 && c.year%100 != 0 || c.year%400 == 0 {
			c.last = 29
		}
	}
	return c
}

// odd are the zones whose clock changes every run checks: their gaps and folds have unusual lengths or times.
var odd = []string{
	"Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "Asia/Beirut", "Africa/Cairo",
	"America/Ciudad_Juarez", "America/Havana", "America/Santiago", "America/Sao_Paulo", "Asia/Gaza", "America/Scoresbysund", "Antarctica/Troll", "Pacific/Chatham", "UTC",
}

// TestFires_AgreeWithOracle compares the fires of many expressions with a search minute by minute, from 2020 to 2040:
// around all changes of the odd zones and of a sample of the others. The full size has the changes of all zones, and all
// minutes of the odd ones (5 minutes):
//
//	WEAVER_SWEEP=full go test ./internal/calendar -run Oracle -timeout 1h
func TestFires_AgreeWithOracle(t *testing.T) {
	t.Parallel()
	full := os.Getenv("WEAVER_SWEEP") == "full"
	names, others, until := slices.Clone(odd), listedZones(t), 2040
	every := 50
	switch {
	case full:
		others, every = databaseZones(t), 1
	case testing.Short():
		others, until = nil, 2023
	}
	for i, name := range others {
		if i%every == 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 60
	end := time.Date(until, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 60
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loc, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			const hour, day = 60, 24 * 60
			agree(t, loc, oracles, start, start+day) // a day without a change
			for at := start; at < end; at += day {
				if minutesOf(loc, at, at+1).offsets[0] != minutesOf(loc, at+day, at+day+1).offsets[0] {
					agree(t, loc, oracles, at-6*hour, at+30*hour)
				}
			}
			for at := start; full && slices.Contains(odd, name) && at < end; at += 61 * day {
				agree(t, loc, oracles[1:], at, min(end, at+61*day)) // without * * * * *
			}
		})
	}
}

// agree compares all expressions in [from, to), in minutes of Unix time.
func agree(t *testing.T, loc *time.Location, oracles []oracle, from, to int64) {
	t.Helper()
	line := minutesOf(loc, from-margin, to)
	first, end := time.Unix(from*60, 0), time.Unix(to*60, 0)
	for n, want := range fires(oracles, line, from) {
		r := mustNew(t, calendar.Spec{Cron: oracles[n].cron, Timezone: loc.String()})
		var got []int64
		for at := range r.Fires(first, end) {
			got = append(got, at.Unix())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s in %s from %s to %s: %s", oracles[n].cron, loc, first.UTC(), end.UTC(), difference(loc, got, want))
		}
		if count := r.Count(first, end); count != int64(len(want)) {
			t.Errorf("%s in %s: Count = %d from %s to %s, want %d", oracles[n].cron, loc, count, first.UTC(), end.UTC(), len(want))
		}
		for i, at := range want {
			if len(want) > 5000 && i%11 > 0 {
				continue
			}
			if got, ok := r.Latest(time.Unix(at, 999)); !ok || got.Unix() != at {
				t.Fatalf("%s in %s: Latest(%s) = %s", oracles[n].cron, loc, time.Unix(at, 999).In(loc), got.In(loc))
			}
			if i == 0 {
				continue
			}
			if got, ok := r.Latest(time.Unix(at, -1)); !ok || got.Unix() != want[i-1] {
				t.Fatalf("%s in %s: Latest(%s) = %s", oracles[n].cron, loc, time.Unix(at, -1).In(loc), got.In(loc))
			}
		}
	}
}

// difference names the first fire that only one of two lists has.
func difference(loc *time.Location, got, want []int64) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got) || i < len(want) && want[i] < got[i]:
			return fmt.Sprintf("no fire at %s", time.Unix(want[i], 0).In(loc))
		case i >= len(want) || got[i] < want[i]:
			return fmt.Sprintf("fires at %s", time.Unix(got[i], 0).In(loc))
		}
	}
	return "no difference"
}

func mustNew(t testing.TB, s calendar.Spec) *calendar.Recurrence {
	t.Helper()
	r, err := calendar.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listedZones returns the names that the package suggests.
func listedZones(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// database is the path of the database of the Go release, which package time/tzdata embeds.
var database string

// The tests use the database of the Go release, so that they say the same on all machines: systems may have another
// release of it, and list changes to which Go's has a rule.
func TestMain(m *testing.M) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err == nil {
		database = filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip")
		err = os.Setenv("ZONEINFO", database)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "look for the time zone database of Go:", err)
		os.Exit(1)
	}
	m.Run()
}

// databaseZones returns the names in the database.
func databaseZones(t *testing.T) []string {
	t.Helper()
	files, err := zip.OpenReader(database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}()
	var names []string
	for _, f := range files.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	return names
}
