package soak_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is one measurement of the process and its files.
type sample struct {
	at         time.Duration
	goroutines int64
	fds        int64
	rss        int64 // bytes, as are all the following
	heap       int64 // after a garbage collection
	wal        int64
	file       int64
	rows       int64 // of the namespace whose tasks are deleted
	kept       int64 // tasks of jobs, which cannot be deleted
	done       int64 // tasks completed so far
}

const mib = 1 << 20

// column is the allowed growth of a value from the second quarter of a run to the last; the first quarter is warm-up.
type column struct {
	name  string
	of    func(s sample) int64
	slack int64 // absolute
	share int64 // in percent, in addition to slack
}

// columns lists the values that must be flat. The number of concurrent users of the store is constant. Goroutines,
// files and rows therefore depend only on the work in flight.
var columns = []column{
	{"goroutines", func(s sample) int64 { return s.goroutines }, 8, 0},
	// A reader's connection, of three files, is opened on first use; there may be four.
	{"open files", func(s sample) int64 { return s.fds }, 6 + 4*3, 0},
	{"resident memory", func(s sample) int64 { return s.rss }, 16 * mib, 25},
	{"heap", func(s sample) int64 { return s.heap }, 2 * mib, 25},
	// Readers may keep the log from restarting; it is truncated to 64 MiB then.
	{"log file", func(s sample) int64 { return max(0, s.wal-64*mib) }, 16 * mib, 25},
	// Tasks of jobs stay, with all their records.
	{"database file", func(s sample) int64 { return s.file - s.kept*keptBytes }, mib, 25},
	{"rows", func(s sample) int64 { return s.rows }, 200, 25},
}

// keptBytes is the maximum permanent size of a job's task in the file.
const keptBytes = 4 << 10

// leastSamples is the minimum number of samples for a check.
const leastSamples = 24

// growths returns the values that were not flat.
func growths(samples []sample) (found []string) {
	n := len(samples)
	if n < leastSamples {
		return []string{fmt.Sprintf("there are %d samples, too few to check", n)}
	}
	second, last := samples[n/4:n/2], samples[n-n/4:]
	for _, c := range columns {
		before, after := median(second, c.of), median(last, c.of)
		if after > before+c.slack+before*c.share/100 {
			found = append(found, fmt.Sprintf("%s grew from %d to %d (medians of the second and the last quarter)", c.name, before, after))
		}
	}
	if last[len(last)-1].done <= last[0].done {
		found = append(found, "work stood still in the last quarter")
	}
	return found
}

func median(samples []sample, of func(sample) int64) int64 {
	values := make([]int64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

const sampleHead = "    time  goroutines  files  rss MiB  heap MiB  wal MiB  file MiB   rows  kept    done"

func (s sample) String() string {
	m := func(n int64) float64 { return float64(n) / mib }
	return fmt.Sprintf("%8s  %10d  %5d  %7.1f  %8.2f  %7.1f  %8.2f  %5d  %4d  %6d",
		s.at.Round(100*time.Millisecond), s.goroutines, s.fds, m(s.rss), m(s.heap), m(s.wal), m(s.file), s.rows, s.kept, s.done)
}

// TestGrowthIsFound checks synthetic series.
func TestGrowthIsFound(t *testing.T) {
	t.Parallel()
	flat := sample{goroutines: 40, fds: 20, rss: 60 * mib, heap: 5 * mib, wal: 16 * mib, file: 2 * mib, rows: 300}
	const n = 48
	series := func(change func(i int64, s *sample)) []sample {
		all := make([]sample, n)
		for i := range all {
			all[i] = flat
			all[i].done = int64(i)
			change(int64(i), &all[i])
		}
		return all
	}
	for name, c := range map[string]struct {
		want   string // part of the report; "": no growth
		change func(i int64, s *sample)
	}{
		"all is flat": {"", func(int64, *sample) {}},
		"up and down": {"", func(i int64, s *sample) {
			s.goroutines += i % 7
			s.fds += i % 5
			s.rss += i % 2 * 40 * mib
			s.rows += i % 3 * 100
		}},
		"a peak in the end":          {"", func(i int64, s *sample) { s.goroutines += max(0, i-n+5) * 100 }},
		"it only warms up":           {"", func(i int64, s *sample) { s.rss, s.heap, s.goroutines = min(i, 11)*6*mib, min(i, 11)*mib, min(i, 11)*4 }},
		"it shrinks":                 {"", func(i int64, s *sample) { s.goroutines, s.rss, s.file = n-i, (n-i)*mib, (n-i)*mib }},
		"jobs are kept":              {"", func(i int64, s *sample) { s.kept = i * 500; s.file += i * 500 * 2048 }},
		"a goroutine in each sample": {"goroutines", func(i int64, s *sample) { s.goroutines += i }},
		"a file in each sample":      {"open files", func(i int64, s *sample) { s.fds += i }},
		"memory outside of the heap": {"resident memory", func(i int64, s *sample) { s.rss += i * 2 * mib }},
		"the heap":                   {"heap", func(i int64, s *sample) { s.heap += i * mib / 4 }},
		"a log that never restarts":  {"log file", func(i int64, s *sample) { s.wal += i * 2 * mib }},
		"rows outside of the store":  {"database file", func(i int64, s *sample) { s.file += i * mib / 10 }},
		"more than jobs can be":      {"database file", func(i int64, s *sample) { s.kept = i; s.file += i * 100_000 }},
		"rows that are not deleted":  {"rows", func(i int64, s *sample) { s.rows += 20 * i }},
		"nothing is done any more":   {"stood still", func(i int64, s *sample) { s.done = min(i, n/2) }},
	} {
		found := growths(series(c.change))
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s: found %q", name, found)
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)):
			t.Errorf("%s: found %q, want one that says %q", name, found, c.want)
		}
	}
	if found := growths(series(func(int64, *sample) {})[:leastSamples-1]); len(found) == 0 {
		t.Error("too few samples are accepted")
	}
}
