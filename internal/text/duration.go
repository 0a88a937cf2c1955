package text

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Span formats a duration in whole seconds with at most two units.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big, small time.Duration, b, s string) string {
		if rest := d % big / small; rest != 0 {
			return fmt.Sprintf("%d%s%d%s", d/big, b, rest, s)
		}
		return fmt.Sprintf("%d%s", d/big, b)
	}
	if d == math.MaxInt64 { // the largest difference of two times
		return "over 292 years"
	}
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "m")
	}
	return two(day, time.Hour, "d", "h")
}

// Took formats an elapsed time: "120ms", "1.2s", "1m5s".
func Took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(100*time.Millisecond) < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return Span(d)
}

// Until formats the remaining time, rounded up: "2s", or "a moment" if no time remains.
func Until(d time.Duration) string {
	switch {
	case d <= 0:
		return "a moment"
	case d < time.Second:
		return Took(d)
	}
	if d > math.MaxInt64-time.Second {
		return Span(math.MaxInt64)
	}
	return Span(d + time.Second - 1)
}

// Setting formats a configured duration like Go, without zero units.
func Setting(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
