package explain_test

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	for at, want := range map[time.Time]string{
		{}:                         "",
		ago(time.Millisecond):      "just now (2026-11-20T11:59:59Z)",
		ago(2 * time.Second):       "2s ago (2026-11-20T11:59:58Z)",
		now:                        "in a moment (2026-11-20T12:00:00Z)",
		in(500 * time.Microsecond): "in a moment (2026-11-20T12:00:00Z)",
		in(3 * time.Hour):          "in 3h (2026-11-20T15:00:00Z)",
	} {
		if got := clock.When(at); got != want {
			t.Errorf("when %v: got %q, want %q", at, got, want)
		}
		if got, want := clock.Passed(at), !at.IsZero() && !at.After(now); got != want {
			t.Errorf("%v is over: %v, want %v", at, got, want)
		}
	}
}
