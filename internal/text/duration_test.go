package text_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/goweaver/weaver/internal/text"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59*time.Second + 900*time.Millisecond: "59s", time.Minute: "1m", 90 * time.Second: "1m30s",
		time.Hour: "1h", time.Hour + time.Second: "1h", time.Hour + 2*time.Minute + 3*time.Second: "1h2m",
		25 * time.Hour: "1d1h", 48 * time.Hour: "2d", 50*time.Hour + time.Minute: "2d2h",
		math.MaxInt64: "over 292 years",
	} {
		if got := text.Span(d); got != want {
			t.Errorf("Span(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestTookAndUntil(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d           time.Duration
		took, until string
	}{
		{-time.Hour, "<1ms", "a moment"},
		{math.MaxInt64, "over 292 years", "over 292 years"},
		{0, "<1ms", "a moment"},
		{time.Nanosecond, "<1ms", "<1ms"},
		{1234 * time.Microsecond, "1ms", "1ms"},
		{123456 * time.Microsecond, "123ms", "123ms"},
		{1234 * time.Millisecond, "1.2s", "2s"},
		{4 * time.Second, "4s", "4s"},
		{59970 * time.Millisecond, "59s", "1m"},
		{65 * time.Second, "1m5s", "1m5s"},
		{time.Hour + 2*time.Minute + 3*time.Second, "1h2m", "1h2m"},
		{50 * time.Hour, "2d2h", "2d2h"},
	} {
		if got := text.Took(tc.d); got != tc.took {
			t.Errorf("Took(%s) = %s, want %s", tc.d, got, tc.took)
		}
		if got := text.Until(tc.d); got != tc.until {
			t.Errorf("Until(%s) = %s, want %s", tc.d, got, tc.until)
		}
	}
}

func TestSetting(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 100 * time.Millisecond: "100ms", 30 * time.Second: "30s"} {
		if got := text.Setting(d); got != want {
			t.Errorf("Setting(%v) = %s, want %s", d, got, want)
		}
	}
}

// A configured duration is printed in a form that can be parsed again. A span has at most two units and an error of
// at most one of the smaller unit.
func FuzzSpans(f *testing.F) {
	for _, d := range []int64{0, 1, -1, 999_999_999, int64(time.Minute), int64(90 * time.Second), int64(10 * time.Minute), int64(time.Hour), int64(25 * time.Hour), int64(48 * time.Hour), math.MaxInt64, math.MinInt64, int64(time.Hour + time.Second), int64(100 * time.Minute)} {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		d := time.Duration(ns)
		if back, err := time.ParseDuration(text.Setting(d)); err != nil || back != d {
			t.Errorf("%v is printed as %s, which is %v, %v", d, text.Setting(d), back, err)
		}
		if d < 0 || d == math.MaxInt64 {
			return // callers negate negative values; the largest value has no figure
		}
		span := text.Span(d)
		days, rest := time.Duration(0), span
		if before, after, found := strings.Cut(span, "d"); found {
			if _, err := fmt.Sscanf(before, "%d", &days); err != nil {
				t.Fatalf("%v: %s: %v", d, span, err)
			}
			if rest = after; rest == "" {
				rest = "0s"
			}
		}
		got, err := time.ParseDuration(rest)
		got += days * 24 * time.Hour
		smaller := time.Second
		switch {
		case d >= 24*time.Hour:
			smaller = time.Hour
		case d >= time.Hour:
			smaller = time.Minute
		}
		if units := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, span); err != nil || got > d || d-got >= smaller || len(units) > 2 {
			t.Errorf("%v is %s: %v, %v", d, span, got, err)
		}
	})
}
