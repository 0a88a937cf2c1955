package monitor

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/text"
)

func TestGlyphsAreOneColumnWide(t *testing.T) {
	t.Parallel()
	for s, g := range glyphs {
		if text.Width(g) != 1 {
			t.Errorf("the glyph of %s is %d columns wide", s, text.Width(g))
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d                  time.Duration
		took, until, watch string
	}{
		{-time.Hour, "<1ms", "a moment", "0:00"},
		{0, "<1ms", "a moment", "0:00"},
		{1234 * time.Microsecond, "1ms", "1ms", "0:00"},
		{123456 * time.Microsecond, "123ms", "123ms", "0:00"},
		{1234 * time.Millisecond, "1.2s", "2s", "0:01"},
		{4 * time.Second, "4s", "4s", "0:04"},
		{42 * time.Second, "42s", "42s", "0:42"},
		{59970 * time.Millisecond, "59s", "1m", "0:59"},
		{65 * time.Second, "1m5s", "1m5s", "1:05"},
		{time.Hour + 2*time.Minute + 3*time.Second, "1h2m", "1h2m", "1:02:03"},
		{50 * time.Hour, "2d2h", "2d2h", "50:00:00"},
	} {
		if got := took(tc.d); got != tc.took {
			t.Errorf("took(%s) = %s, want %s", tc.d, got, tc.took)
		}
		if got := until(tc.d); got != tc.until {
			t.Errorf("until(%s) = %s, want %s", tc.d, got, tc.until)
		}
		if got := watch(tc.d); got != tc.watch {
			t.Errorf("watch(%s) = %s, want %s", tc.d, got, tc.watch)
		}
	}
}
