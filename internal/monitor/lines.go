package monitor

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task/event"
)

// progressEvery is how often the Lines view tells the progress of a task that
// writes no output.
const progressEvery = 10 * time.Second

// sentence is a change as a line, without the time, and its colour; "" when
// the Lines view does not tell it.
func (m *model) sentence(c change, zone *time.Location, now time.Time) (line, color string) {
	n := c.node
	switch {
	case n == nil:
		if ev, ok := c.event.(event.JobBlocked); ok {
			return m.name + ": blocked: " + blockedTasks(ev.Blocked), text.Magenta
		}
		return "", ""
	case c.note != "":
		return n.name + ": " + c.note, ""
	case c.event == nil:
		return strings.TrimRight(n.name+"| "+c.line, " "), ""
	}
	said, color := n.sentence(c.event, zone, now)
	if said == "" {
		return "", ""
	}
	return n.name + ": " + said, color
}

func blockedTasks(keys []string) string {
	if len(keys) == 0 {
		return "its tasks wait for each other"
	}
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = oneLine(key, maxName)
	}
	verb := "waits"
	if len(keys) > 1 {
		verb = "wait"
	}
	return fmt.Sprintf("%s %s for a person", strings.Join(list, ", "), verb)
}

func (n *node) sentence(ev event.Event, zone *time.Location, now time.Time) (line, color string) {
	switch ev := ev.(type) {
	case event.TaskStarted:
		return n.starts(), ""
	case event.TaskSucceeded:
		return "succeeded in " + took(ev.Duration), text.Green
	case event.TaskFailed:
		return fmt.Sprintf("failed%s after %s: %s", n.tries(), took(ev.Duration), failure(&ev.Error)), text.Red
	case event.TaskRetrying:
		return fmt.Sprintf("attempt %d failed: %s; retry in %s", max(1, n.counted), failure(&ev.Error), until(ev.Delay)), text.Yellow
	case event.TaskSuspended:
		if ev.WakeAt.IsZero() {
			return "waits", ""
		}
		return "asleep until " + ev.WakeAt.In(zone).Format(time.DateTime), ""
	case event.TaskBlocked:
		return "blocked: " + failure(&ev.Error), text.Magenta
	case event.TaskCancelled:
		if why := n.cancelled(); why != "" {
			return "cancelled: " + why, text.Yellow
		}
		return "cancelled", text.Yellow
	case event.Progress:
		if n.output || now.Sub(n.mention) < progressEvery {
			return "", ""
		}
		n.mention = now
		return progress(ev.Progress), ""
	case event.LogWritten:
		if ev.Level >= slog.LevelWarn {
			return "", "" // the engine's logger has it too: see Monitor.Logger
		}
		return logged(ev), ""
	}
	return "", ""
}

func (n *node) starts() string {
	switch try := n.try(); {
	case try > 1 && n.max > 0:
		return fmt.Sprintf("started, attempt %d of %d", try, n.max)
	case try > 1:
		return fmt.Sprintf("started, attempt %d", try)
	case n.attempt > 1:
		return "started again" // after a sleep, or when its worker was lost
	}
	return "started"
}

// tries says how often a task was tried, when that was more than once.
func (n *node) tries() string {
	if n.counted < 2 {
		return ""
	}
	return fmt.Sprintf(" in attempt %d", n.counted)
}

func logged(ev event.LogWritten) string {
	var b strings.Builder
	b.WriteString(ev.Message)
	for _, key := range slices.Sorted(maps.Keys(ev.Data)) {
		fmt.Fprintf(&b, " %s=%s", key, valueText(ev.Data[key]))
	}
	return oneLine(b.String(), maxLine)
}
