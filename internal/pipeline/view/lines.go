package view

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task/event"
)

// progressEvery is the interval between progress lines of a task without output.
const progressEvery = 10 * time.Second

// sentence returns the line of a change, without the time, and its colour, or ""
// for changes that Lines does not show.
func (m *model) sentence(c change, zone *time.Location, now time.Time) (line, color string) {
	n := c.node
	switch {
	case n == nil:
		if ev, ok := c.event.(event.JobBlocked); ok {
			return m.name + ": blocked: " + explain.JobBlocked(ev), text.Magenta
		}
		if c.note != "" {
			return m.name + ": " + c.note, text.Yellow
		}
		return "", ""
	case c.note != "":
		return n.name + ": " + c.note, ""
	case c.event == nil:
		return strings.TrimRight(n.name+"| "+c.line, " "), ""
	}
	clock := explain.Clock{Now: now, Zone: zone, OfJob: n.of}
	if _, starts := c.event.(event.TaskStarted); starts {
		clock.Slept = m.sleeps.since(n.lapsed, now)
	}
	said := n.sentence(c.event, clock)
	if said == "" {
		return "", ""
	}
	if m.unblock != nil && asks(c.event) {
		said += " (" + m.unblock(n.key) + ")"
	}
	return n.name + ": " + said, colorOf(c.event)
}

func (n *node) sentence(ev event.Event, clock explain.Clock) string {
	switch ev := ev.(type) {
	case event.Progress:
		if n.output || clock.Now.Sub(n.mention) < progressEvery {
			return ""
		}
		n.mention = clock.Now
		return explain.Progress(&ev.Progress, text.MaxLine)
	case event.LogWritten:
		if ev.Level >= slog.LevelWarn {
			return "" // the engine logs it too: see Monitor.Logger
		}
		return logged(ev)
	}
	return clock.Event(ev, n.view())
}

// asks reports whether an event is a question to a person.
func asks(ev event.Event) bool {
	blocked, ok := ev.(event.TaskBlocked)
	return ok && explain.Question(blocked.TaskType, &blocked.Error) != ""
}

// colorOf returns the colour of an event's line, or "".
func colorOf(ev event.Event) string {
	switch ev.(type) {
	case event.TaskSucceeded:
		return text.Green
	case event.TaskFailed:
		return text.Red
	case event.TaskRetrying, event.TaskCancelled:
		return text.Yellow
	case event.TaskBlocked:
		return text.Magenta
	}
	return ""
}

func logged(ev event.LogWritten) string {
	var b strings.Builder
	b.WriteString(ev.Message)
	for _, key := range slices.Sorted(maps.Keys(ev.Data)) {
		fmt.Fprintf(&b, " %s=%s", key, valueText(ev.Data[key]))
	}
	return text.OneLine(b.String(), text.MaxLine)
}
