package cli

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
)

// clock tells people when things are, seen from one instant.
type clock struct {
	now  time.Time
	zone *time.Location
}

// abs is the instant itself, in the zone of the machine.
func (c clock) abs(t time.Time) string { return t.In(c.zone).Format(time.RFC3339) }

// rel is the distance: "3m ago", "in 4s".
func (c clock) rel(t time.Time) string {
	d := t.Sub(c.now)
	switch {
	case d <= -time.Second:
		return text.Span(-d) + " ago"
	case d < 0:
		return "just now"
	case d < time.Second:
		return "in a moment"
	}
	return "in " + text.Span(d)
}

// when is both: "3m ago (2026-11-20T12:00:03Z)"; "" for the zero instant.
func (c clock) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return c.rel(t) + " (" + c.abs(t) + ")"
}

// passed reports whether an instant is known and over.
func (c clock) passed(t time.Time) bool { return !t.IsZero() && !t.After(c.now) }

// took is how long something lasted, to three digits or so.
func took(from, to time.Time) string {
	d := to.Sub(from)
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d >= time.Minute:
		return text.Span(d)
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// setting is a duration that somebody chose, without zero units.
func setting(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
