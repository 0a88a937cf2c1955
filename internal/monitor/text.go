package monitor

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// painter colours text, when it is on.
type painter struct{ on bool }

// The colours in use, as ANSI codes; those of package cli.
const (
	bold    = "1"
	faint   = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	magenta = "35"
	cyan    = "36"
)

func (p painter) paint(color, text string) string {
	if !p.on || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// width is how many columns of a terminal a printable text takes.
func width(text string) int {
	if isASCII(text) {
		return len(text)
	}
	return uniseg.StringWidth(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cut makes a text fit into limit columns. What is cut off leaves a "…".
func cut(text string, limit int) string {
	switch {
	case limit <= 0:
		return ""
	case width(text) <= limit:
		return text
	}
	var b strings.Builder
	rest, state, used := text, -1, 0
	for rest != "" {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > limit-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	return b.String() + "…"
}

// plural counts things: "1 task", "2 tasks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// span is a duration in whole seconds, with at most two units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big, small time.Duration, b, s string) string {
		if rest := d % big / small; rest != 0 {
			return fmt.Sprintf("%d%s%d%s", d/big, b, rest, s)
		}
		return fmt.Sprintf("%d%s", d/big, b)
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
	return span(d)
}

// until is the time left to an instant: "2s", rounded up, or "a moment".
func until(d time.Duration) string {
	if d <= 0 {
		return "a moment"
	}
	if d < time.Second {
		return took(d)
	}
	return span(d + time.Second - 1)
}

// watch is an elapsed time as clocks show it: "0:42", "1:02:03".
func watch(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// stop ends a sentence, which may end in a quoted message with a stop of its own.
func stop(sentence string) string {
	if strings.HasSuffix(sentence, ".") || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "!") {
		return sentence
	}
	return sentence + "."
}
