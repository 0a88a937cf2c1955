package monitor

import (
	"strings"
	"testing"
	"time"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "plain": 5, "日本": 4, "e\u0301": 1, "👩\u200d💻": 2, "🇯🇵": 2, "├─ ": 3, "✓●○✗⊘↻": 6, "…": 1, "ｶﾅ": 2,
	} {
		if got := width(text); got != want {
			t.Errorf("width(%q) = %d, want %d", text, got, want)
		}
	}
	for s, g := range glyphs {
		if width(g) != 1 {
			t.Errorf("the glyph of %s is %d columns wide", s, width(g))
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"a👩\u200d💻b", 3, "a…"},
	} {
		if got := cut(tc.text, tc.limit); got != tc.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
	for limit := range 12 {
		if got := cut("日本e\u0301語🇯🇵x", limit); width(got) > limit {
			t.Errorf("cut to %d columns: %q has %d", limit, got, width(got))
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d                        time.Duration
		took, span, until, watch string
	}{
		{-time.Hour, "<1ms", "0s", "a moment", "0:00"},
		{0, "<1ms", "0s", "a moment", "0:00"},
		{1234 * time.Microsecond, "1ms", "0s", "1ms", "0:00"},
		{123456 * time.Microsecond, "123ms", "0s", "123ms", "0:00"},
		{1234 * time.Millisecond, "1.2s", "1s", "2s", "0:01"},
		{4 * time.Second, "4s", "4s", "4s", "0:04"},
		{42 * time.Second, "42s", "42s", "42s", "0:42"},
		{59970 * time.Millisecond, "59s", "59s", "1m", "0:59"},
		{65 * time.Second, "1m5s", "1m5s", "1m5s", "1:05"},
		{time.Hour + 2*time.Minute + 3*time.Second, "1h2m", "1h2m", "1h2m", "1:02:03"},
		{50 * time.Hour, "2d2h", "2d2h", "2d2h", "50:00:00"},
	} {
		if got := took(tc.d); got != tc.took {
			t.Errorf("took(%s) = %s, want %s", tc.d, got, tc.took)
		}
		if got := span(tc.d); got != tc.span {
			t.Errorf("span(%s) = %s, want %s", tc.d, got, tc.span)
		}
		if got := until(tc.d); got != tc.until {
			t.Errorf("until(%s) = %s, want %s", tc.d, got, tc.until)
		}
		if got := watch(tc.d); got != tc.watch {
			t.Errorf("watch(%s) = %s, want %s", tc.d, got, tc.watch)
		}
	}
}

func TestPainter(t *testing.T) {
	t.Parallel()
	if got := (painter{}).paint(red, "x"); got != "x" {
		t.Errorf("without colour: %q", got)
	}
	if got := (painter{on: true}).paint(red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("with colour: %q", got)
	}
	if got := (painter{on: true}).paint(red, ""); strings.Contains(got, "\x1b") {
		t.Errorf("nothing is painted: %q", got)
	}
}
