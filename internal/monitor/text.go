package monitor

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/text"
)

// took is how long something lasted: "120ms", "1.2s", "1m5s".
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(100*time.Millisecond) < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return text.Span(d)
}

// until is the time left to an instant: "2s", rounded up, or "a moment".
func until(d time.Duration) string {
	if d <= 0 {
		return "a moment"
	}
	if d < time.Second {
		return took(d)
	}
	return text.Span(d + time.Second - 1)
}

// watch is an elapsed time as clocks show it: "0:42", "1:02:03".
func watch(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
